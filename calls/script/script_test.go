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
	for _, tt := range []struct {
		name    string
		answer  http.HandlerFunc
		fails   bool   // Next returns an error
		counted string // answered, failed, or "" for neither
	}{
		{
			name:    "an answer",
			answer:  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"verbs":[]}`)) },
			counted: "answered",
		},
		{
			name:    "an error",
			answer:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
			fails:   true,
			counted: "failed",
		},
		{
			name: "a caller who hangs up",
			answer: func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // from then on, the server notices that the client leaves
				hangUp()
				<-r.Context().Done()
			},
			fails: true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.answer)
			defer server.Close()
			counted := ""
			count := func(_ time.Duration, err error) {
				counted = "answered"
				if err != nil {
					counted = "failed"
				}
			}
			hook, err := New(Config{URL: server.URL, Secret: "a secret for scripts", Answered: count})
			if err != nil {
				t.Fatal(err)
			}

			_, err = hook.Next(ctx, calls.ScriptStep{Script: fabric.Resource{ID: "s"}})
			if failed := err != nil; failed != tt.fails {
				t.Errorf("Next = %v, want an error: %v", err, tt.fails)
			}
			if counted != tt.counted {
				t.Errorf("the request is counted as %q, want %q", counted, tt.counted)
			}
		})
	}
}
