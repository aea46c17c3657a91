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
	now := func() time.Time { return began.Add(time.Duration(minutes.Load()) * time.Minute) }
	forms := nodes(t, now)
	handling, other := forms[0], forms[1]
	g := once.New(handling, slog.New(slog.DiscardHandler))
	g.RenewEvery(time.Millisecond)

	handle := func(w http.ResponseWriter, r *http.Request) (bool, error) {
		minutes.Store(10)
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		for isLost := true; isLost; { // until the node has renewed it
			sent, err := other.Begin(ctx, "upload")
			if !errors.Is(err, problem.Conflict) {
				return false, fmt.Errorf("the upload was not renewed: %w", err)
			}
			isLost = sent.Lost
		}
		w.WriteHeader(http.StatusOK)
		return true, nil
	}
	upload := once.Form{
		ID:       "upload",
		IsUpload: true,
		Refuse:   func(once.Sent) error { return errors.New("refused") },
		Handle:   handle,
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("a file"))
	must(t, g.Serve(httptest.NewRecorder(), r, upload))
	if sent, _ := other.Begin(t.Context(), "upload"); !sent.Ended {
		t.Errorf("after the upload, the form is %+v, want ended", sent)
	}
}

// send sends a form with this id to g. The form's handler responds with status.
func send(t *testing.T, g *once.Guard, id string, status int) {
	t.Helper()
	f := once.Form{ID: id, Handle: func(w http.ResponseWriter, _ *http.Request) (bool, error) {
		w.Header().Set("Location", "/result")
		w.WriteHeader(status)
		return true, nil
	}}
	must(t, g.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil), f))
}

// TestReplay shows that the response to an accepted form is sent again on request. A refusal is not
// sent again, and a different form gets no response.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := once.New(once.Forms{Now: time.Now}, slog.New(slog.DiscardHandler))
		send(t, g, "good", http.StatusSeeOther)
		send(t, g, "refused", http.StatusUnprocessableEntity)

		w := httptest.NewRecorder()
		replayed, err := g.Replay(w, httptest.NewRequest(http.MethodPost, "/", nil), "good")
		must(t, err)
		if !replayed {
			t.Error("the response is not sent again")
		}
		if w.Code != http.StatusSeeOther {
			t.Errorf("the response is sent again with status %d, want 303", w.Code)
		}
		if location := w.Header().Get("Location"); location != "/result" {
			t.Errorf("the response is sent again with the location %q, want /result", location)
		}

		for _, id := range []string{"refused", "other"} {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			replayed, err := g.Replay(httptest.NewRecorder(), r, id)
			must(t, err)
			if replayed {
				t.Errorf("a response to the form %q is sent again, want none", id)
			}
		}
	})
}

// TestResponsesAreLimited shows that a Guard keeps many small responses, but only the latest large
// ones, which would use too much memory.
func TestResponsesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := once.New(once.Forms{Now: time.Now}, slog.New(slog.DiscardHandler))
		wantReplayed := func(id string, want bool) {
			t.Helper()
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			replayed, err := g.Replay(httptest.NewRecorder(), r, id)
			must(t, err)
			if replayed != want {
				t.Errorf("the response to %s is sent again: %t, want %t", id, replayed, want)
			}
		}

		const many, large = 1000, 20
		for i := range many {
			send(t, g, fmt.Sprint("form ", i), http.StatusSeeOther)
		}
		wantReplayed("form 0", true)
		wantReplayed(fmt.Sprint("form ", many-1), true)

		for i := range large {
			f := once.Form{ID: fmt.Sprint("large ", i)}
			f.Handle = func(w http.ResponseWriter, _ *http.Request) (bool, error) {
				_, err := w.Write(make([]byte, 1<<20))
				return true, err
			}
			must(t, g.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil), f))
		}
		wantReplayed("form 0", false)
		wantReplayed("large 0", false)
		wantReplayed(fmt.Sprint("large ", large-1), true)
		if n := g.Kept(); n > 16 {
			t.Errorf("%d responses of 1 MiB are in memory, want at most 16", n)
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

				keptAfter := func(age time.Duration) int {
					time.Sleep(age*slow - time.Since(began))
					synctest.Wait()
					return g.Kept()
				}
				if n := keptAfter(2900 * time.Millisecond); n != 1 {
					t.Errorf("after 2.9 seconds, %d responses are in memory, want 1", n)
				}
				if n := keptAfter(3 * time.Second); n != 0 {
					t.Errorf("after 3 seconds, %d responses are in memory, want 0", n)
				}
			})
		})
	}
}
