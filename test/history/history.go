package history

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/selvage/selvage/test/harness"
)

// grace is the time during which a used refresh token still returns its successor.
const grace = 10 * time.Second

// A History records the requests about one login and their answers.
type History struct {
	began time.Time

	mu     sync.Mutex
	all    []porcupine.Operation
	faults []error
}

// New returns an empty History.
func New() *History { return &History{began: time.Now()} }

// Ask makes a request for a client, records it and returns its output. If the request got no answer
// or an error other than invalid_grant, its output is Unknown. Such an error is a fault of the
// server unless its status is 503.
func (h *History) Ask(client int, in Use, do func() (harness.Tokens, error)) string {
	call := time.Since(h.began)
	tokens, err := do()
	done := time.Since(h.began)

	var r *harness.Refusal
	out := tokens.RefreshToken
	h.mu.Lock()
	defer h.mu.Unlock()
	switch refused := errors.As(err, &r); {
	case err == nil:
	case refused && r.Code == "invalid_grant":
		out = Refused
	case refused && r.Status != 503:
		out = Unknown
		h.faults = append(h.faults, fmt.Errorf("a use of %+v: %w", in, err))
	default:
		out = Unknown
	}

	op := porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(call), Return: int64(done)}
	if out == Unknown {
		op.Return = math.MaxInt64 // the request may still take effect
	}
	h.all = append(h.all, op)
	return out
}

// Check returns an error unless some order of the uses explains all answers.
func (h *History) Check(m Model) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.faults != nil {
		return errors.Join(h.faults...)
	}

	m.Graceful = time.Since(h.began) < grace
	few := merged(h.all)
	if got := porcupine.CheckOperationsTimeout(m.model(), few, time.Minute); got != porcupine.Ok {
		return fmt.Errorf("no order of the uses explains %d answers (%s): %+v", len(h.all), got, few)
	}
	return nil
}

// merged returns at most two operations for each pair of input and output, because more make no
// difference. The first ends when the earliest of the merged operations ended. The second begins
// when the latest of them began. All others fit in between.
func merged(all []porcupine.Operation) (few []porcupine.Operation) {
	type same struct{ in, out any }
	first, last := map[same]porcupine.Operation{}, map[same]porcupine.Operation{}

	for _, op := range all {
		key := same{op.Input, op.Output}
		f, seen := first[key]
		if !seen {
			first[key] = op
			continue
		}
		l, twice := last[key]
		if !twice {
			l = f
		}
		f.Call, f.Return = min(f.Call, op.Call), min(f.Return, op.Return)
		l.Call, l.Return = max(l.Call, op.Call), max(l.Return, op.Return)
		first[key], last[key] = f, l
	}

	for key, op := range first {
		op.ClientId = len(few) // the operations of one client must not overlap
		few = append(few, op)
		if l, twice := last[key]; twice {
			l.ClientId = len(few)
			few = append(few, l)
		}
	}
	return few
}
