package once_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/internal/once"
	"github.com/selvage/selvage/internal/problem"
)

// TestUploadIsRenewed shows that a node records that it still handles an upload, so that the upload
// does not count as lost.
func TestUploadIsRenewed(t *testing.T) {
	var minutes atomic.Int64
	began := time.Now()
	all := nodes(t, func() time.Time { return began.Add(time.Duration(minutes.Load()) * time.Minute) })
	g := once.New(all[0], slog.New(slog.DiscardHandler))
	g.RenewEvery(time.Millisecond)

	upload := once.Form{ID: "upload", IsUpload: true, Refuse: func(once.Sent) error { return errors.New("refused") },
		Handle: func(w http.ResponseWriter, r *http.Request) (bool, error) {
			minutes.Store(10)
			ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
			defer cancel()
			for isLost := true; isLost; { // until the node has renewed it
				sent, err := all[1].Begin(ctx, "upload")
				if !errors.Is(err, problem.Conflict) {
					return false, fmt.Errorf("the upload was not renewed: %w", err)
				}
				isLost = sent.Lost
			}
			w.WriteHeader(http.StatusOK)
			return true, nil
		}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("a file"))
	must(t, g.Serve(httptest.NewRecorder(), r, upload))
	if sent, _ := all[1].Begin(t.Context(), "upload"); !sent.Ended {
		t.Errorf("after the upload, the form is %+v, want ended", sent)
	}
}

// send has g handle the form with this id, which responds with status.
func send(t *testing.T, g *once.Guard, id string, status int) {
	t.Helper()
	f := once.Form{ID: id, Handle: func(w http.ResponseWriter, _ *http.Request) (bool, error) {
		w.Header().Set("Location", "/result")
		w.WriteHeader(status)
		return true, nil
	}}
	must(t, g.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil), f))
}

// TestReplay shows that the response to a form is sent again on request, but not the response that
// refused it, and not to a different form.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := once.New(once.Forms{Now: time.Now}, slog.New(slog.DiscardHandler))
		send(t, g, "good", http.StatusSeeOther)
		send(t, g, "refused", http.StatusUnprocessableEntity)

		for id, want := range map[string]bool{"good": true, "refused": false, "other": false} {
			w := httptest.NewRecorder()
			ok, err := g.Replay(w, httptest.NewRequest(http.MethodPost, "/", nil), id)
			must(t, err)
			if ok != want || ok && (w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/result") {
				t.Errorf("Replay of the form %s: %t, %d %v", id, ok, w.Code, w.Header())
			}
		}
	})
}

// TestResponseIsDropped shows that a response, which may contain a secret, stays in memory for three
// seconds, as measured by the clock of the Forms.
func TestResponseIsDropped(t *testing.T) {
	for name, slow := range map[string]time.Duration{"timely": 1, "with a slow clock": 4} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				now := func() time.Time { return began.Add(time.Since(began) / slow) }
				g := once.New(once.Forms{Now: now}, slog.New(slog.DiscardHandler))
				send(t, g, "form", http.StatusSeeOther)

				for _, at := range []struct {
					after time.Duration
					want  int
				}{{2900 * time.Millisecond, 1}, {3 * time.Second, 0}} {
					time.Sleep(at.after*slow - time.Since(began))
					synctest.Wait()
					if n := g.Kept(); n != at.want {
						t.Errorf("after %v, %d responses are in memory, want %d", at.after, n, at.want)
					}
				}
			})
		})
	}
}
