package laml

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// inTurn wraps content that is encoded while it is read. Each read waits for its turn, so that
// only a fixed number of pieces are encoded at once. A disconnected client gets no more turns.
func (a *API) inTurn(w http.ResponseWriter, r *http.Request, content io.ReadSeeker) io.ReadSeeker {
	t := &inTurn{ReadSeeker: content, turn: func() (func(), error) { return a.turn(r.Context()) }}
	// With several ranges, http.ServeContent reads in a goroutine of its own, which must not flush.
	if !strings.Contains(r.Header.Get("Range"), ",") {
		t.flush = http.NewResponseController(w).Flush
	}
	return t
}

type inTurn struct {
	io.ReadSeeker
	turn  func() (done func(), err error)
	flush func() error // sends the first piece; nil after that
	began bool
}

// Read reads a piece once it has a turn. It flushes the first piece before it reads the second.
func (t *inTurn) Read(p []byte) (int, error) {
	if t.began && t.flush != nil {
		_ = t.flush() // if this fails, the piece is sent with the next one
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

// turn waits for a turn, which lasts until done is called. A disconnected client gets none.
func (a *API) turn(ctx context.Context) (done func(), err error) {
	select {
	case a.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	// A select with both cases ready chooses at random, so the context is checked again.
	done = func() { <-a.turns }
	if err := ctx.Err(); err != nil {
		done()
		return nil, err
	}
	return done, nil
}
