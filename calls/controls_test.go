package calls

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
)

// A failingControls is a store that fails to write the controls of calls a few times. After that, it
// sends what it writes to the channel written.
type failingControls struct {
	Store
	failures int
	written  chan Controls
}

func (s *failingControls) SaveControls(_ context.Context, r Record) error {
	if s.failures == 0 {
		s.written <- r.CallerControls
		return nil
	}
	s.failures--
	return errors.New("the database is unavailable")
}

func (s *failingControls) FindCall(context.Context, string, string) (Record, error) {
	return Record{Node: "node"}, nil
}

// TestControlsFailing shows that the controls of a ringing call are written once the database works
// again, that later changes are also written, and that only the first error is logged.
func TestControlsFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := &failingControls{failures: 3, written: make(chan Controls)}
		log := &bytes.Buffer{}
		c := New(Config{Node: "node", Store: rows, Log: slog.New(slog.NewTextHandler(log, nil))})
		k := newBareCall(c, "1")
		k.record.ID = k.id
		k.state = Ringing
		k.recordings.init(c, k, Recorded{CallID: k.id})
		for _, held := range []bool{true, false} {
			k.post(func() {
				k.legs[0].held = held
				k.keepControls()
			})
			if got := <-rows.written&OnHold != 0; got != held {
				t.Errorf("the stored caller is on hold: %v, want %v", got, held)
			}
		}

		synctest.Wait()
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("%d errors were logged, want 1:\n%s", n, log)
		}
	})
}
