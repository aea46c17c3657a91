package once

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// lostAfter is how old a node's record that it is handling a form can be before the node must have
// stopped. It is longer than the time between two records (maxHandling or renewEvery), plus the
// difference between the clocks of two nodes, each of which may be wrong by a minute.
const lostAfter = 3 * time.Minute

// Forms remembers which forms were handled, or are being handled, on any node.
type Forms struct {
	Sessions session.Store // nil means that nothing is remembered
	Kind     string        // kind of the entries in Sessions
	Kept     time.Duration // how long a form is remembered
	Now      func() time.Time
}

func (a Forms) key(id string) session.Key { return session.Key{Kind: a.Kind, ID: session.Digest(id)} }

// While a form is being handled, its entry in the session store consists of formBegan and the time
// in seconds since 1970. Afterwards, the entry consists of formEnded and the result.
const (
	formBegan = "began:"
	formEnded = "ended:"
)

// began returns the entry of a form that is being handled.
func (a Forms) began() []byte { return []byte(formBegan + strconv.FormatInt(a.Now().Unix(), 10)) }

// Sent describes a form that was sent before.
type Sent struct {
	Ended  bool   // the form was handled
	Result string // path of the page that shows what the form made; "" if it was shown only once
	Lost   bool   // the node that was handling the form has stopped, perhaps before it was done
}

// Begin records that the form with this id is being handled. If it was handled before, or is being
// handled on another node, Begin returns what is known about it, and problem.Conflict.
func (a Forms) Begin(ctx context.Context, id string) (sent Sent, err error) {
	if a.Sessions == nil {
		return sent, nil
	}
	err = a.Sessions.Add(ctx, a.key(id), a.began(), a.Kept)
	if !errors.Is(err, problem.Conflict) {
		return sent, err
	}

	conflict := err
	entry, err := a.Sessions.Get(ctx, a.key(id))
	if problem.IgnoreNotFound(err) != nil {
		return sent, err
	}
	if seconds, ok := strings.CutPrefix(string(entry), formBegan); ok {
		began, _ := strconv.ParseInt(seconds, 10, 64)
		return Sent{Lost: a.Now().Sub(time.Unix(began, 0)) > lostAfter}, conflict
	}
	result, ended := strings.CutPrefix(string(entry), formEnded)
	return Sent{Ended: ended, Result: result}, conflict
}

// Renew records that the form is still being handled.
func (a Forms) Renew(ctx context.Context, id string) error {
	if a.Sessions == nil {
		return nil
	}
	return a.Sessions.Put(ctx, a.key(id), a.began(), a.Kept)
}

// End records the result of a form that succeeded.
func (a Forms) End(ctx context.Context, id, result string) error {
	if a.Sessions == nil {
		return nil
	}
	return a.Sessions.Put(ctx, a.key(id), []byte(formEnded+result), a.Kept)
}

// Forget lets a form that failed be handled again.
func (a Forms) Forget(ctx context.Context, id string) error {
	if a.Sessions == nil {
		return nil
	}
	return a.Sessions.Delete(ctx, a.key(id))
}
