package laml

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// inTurn returns content that is encoded while it is read as one that takes turns
// with the others: so many at a time, a piece each. A client that is gone gets no
// more turns.
func (a *API) inTurn(w http.ResponseWriter, r *http.Request, content io.ReadSeeker) io.ReadSeeker {
	t := &inTurn{ReadSeeker: content, turn: func() (func(), error) { return a.turn(r.Context()) }}
	if !strings.Contains(r.Header.Get("Range"), ",") { // else another goroutine reads than writes
		t.flush = http.NewResponseController(w).Flush
	}
	return t
}

type inTurn struct {
	io.ReadSeeker
	turn  func() (done func(), err error)
	flush func() error // sends what was read first; nil once that is done
	began bool
}

// Read reads a piece once it is its turn. What was read first is on its way before
// there is more.
func (t *inTurn) Read(p []byte) (int, error) {
	if t.began && t.flush != nil {
		_ = t.flush() // where it cannot, the rest goes with it
		t.flush = nil
	}
	t.began = true
	done, err := t.turn()
	if err != nil {
		return 0, err
	}
	defer done()
	return t.ReadSeeker.Read(p)
}

// turn waits for a turn, which lasts until done is called. A client that is gone gets
// none.
func (a *API) turn(ctx context.Context) (done func(), err error) {
	select {
	case a.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done = func() { <-a.turns }
	if err := ctx.Err(); err != nil {
		done()
		return nil, err
	}
	return done, nil
}
