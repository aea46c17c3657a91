package laml

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// inTurn wraps content that is encoded while it is read. Each read waits for a turn, which limits
// how many pieces are encoded at the same time. A disconnected client gets no more turns.
func (a *API) inTurn(w http.ResponseWriter, r *http.Request, content io.ReadSeeker) io.ReadSeeker {
	t := &inTurn{ReadSeeker: content, turn: func() (func(), error) { return a.turn(r.Context()) }}
	// For a request with several ranges, http.ServeContent reads in its own goroutine, which must
	// not flush.
	if !strings.Contains(r.Header.Get("Range"), ",") {
		t.flush = http.NewResponseController(w).Flush
	}
	return t
}

type inTurn struct {
	io.ReadSeeker
	turn  func() (done func(), err error)
	flush func() error // sends the first piece; nil afterwards
	began bool
}

// Read waits for a turn and reads a piece. Before the second piece, it flushes the first.
func (t *inTurn) Read(p []byte) (int, error) {
	if t.began && t.flush != nil {
		_ = t.flush() // if this fails, the first piece is sent with the second
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

// turn waits for a turn, which lasts until the caller calls done. A disconnected client gets no
// turn.
func (a *API) turn(ctx context.Context) (done func(), err error) {
	select {
	case a.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	// If both cases were ready, select chose one at random. Check the context again.
	done = func() { <-a.turns }
	if err := ctx.Err(); err != nil {
		done()
		return nil, err
	}
	return done, nil
}
