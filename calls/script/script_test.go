package script

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// TestAnswered shows that requests are counted with their result. A request during which the caller
// hangs up counts neither as answered nor as failed.
func TestAnswered(t *testing.T) {
	ctx, hangUp := context.WithCancel(t.Context())
	step := calls.ScriptStep{Script: fabric.Resource{ID: "s"}}
	answers := map[string]http.HandlerFunc{
		"ok":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"verbs":[]}`)) },
		"failed": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // from then on, the server notices that the client leaves
			hangUp()
			<-r.Context().Done()
		},
	}

	for _, want := range []string{"ok", "failed", ""} {
		srv := httptest.NewServer(answers[want])
		got := ""
		answered := func(_ time.Duration, err error) {
			if got = "ok"; err != nil {
				got = "failed"
			}
		}
		hook, err := New(Config{URL: srv.URL, Secret: "a secret for scripts", Answered: answered})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hook.Next(ctx, step); (err == nil) != (want == "ok") || got != want {
			t.Errorf("Next = %v, counted as %q, want %q", err, got, want)
		}
		srv.Close()
	}
}
