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

// TestReplay shows that the response to a form is sent again on request, but not the response that
// refused it, and not to a different form.
func TestReplay(t *testing.T) {
	g := once.New(nodes(t, time.Now)[0], slog.New(slog.DiscardHandler))
	send := func(id string, status int) {
		t.Helper()
		f := once.Form{ID: id, Handle: func(w http.ResponseWriter, _ *http.Request) (bool, error) {
			w.Header().Set("Location", "/result")
			w.WriteHeader(status)
			return true, nil
		}}
		must(t, g.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil), f))
	}
	send("good", http.StatusSeeOther)
	send("refused", http.StatusUnprocessableEntity)

	for id, want := range map[string]bool{"good": true, "refused": false, "other": false} {
		w := httptest.NewRecorder()
		ok, err := g.Replay(w, httptest.NewRequest(http.MethodPost, "/", nil), id)
		must(t, err)
		if ok != want || ok && (w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/result") {
			t.Errorf("Replay of the form %s: %t, %d %v", id, ok, w.Code, w.Header())
		}
	}
}
