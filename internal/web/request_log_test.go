package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// TestRefusalFlood shows that a flood of refused requests writes a bounded number of lines at level
// info, and that a later line counts the omitted ones.
func TestRefusalFlood(t *testing.T) {
	var b bytes.Buffer
	l := newRequestLog(slog.New(slog.NewTextHandler(&b, nil)))
	at := time.Now()
	l.now = func() time.Time { return at }

	refuse := func(err error) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		v := newVisit(r)
		ctx, cancel := context.WithCancel(v) // handlers derive their own contexts
		Refuse(ctx, err)
		cancel()
		l.write(r.WithContext(v), &recorder{status: http.StatusUnauthorized}, v, 0)
	}

	for range refusalBurst + 7 {
		refuse(problem.NoCredentials().Because("the cause"))
	}
	if n := strings.Count(b.String(), "level=INFO msg=request"); n != refusalBurst {
		t.Errorf("%d refusals in an instant were logged, want %d", n, refusalBurst)
	}
	if strings.Count(b.String(), `cause="the cause" code=unauthorized`) != refusalBurst {
		t.Error("not every line has the cause and the code")
	}

	b.Reset()
	at = at.Add(time.Second)
	refuse(problem.NoCredentials())
	if !strings.Contains(b.String(), "refusals_not_logged=7") {
		t.Errorf("after a second: %q, want a line that counts 7 refusals", b.String())
	}

	// Errors that are part of normal operation are not logged at level info.
	b.Reset()
	refuse(problem.New(problem.Invalid, "authorization_pending", "wait"))
	if b.Len() > 0 {
		t.Errorf("polling was logged: %s", b.String())
	}
}

// TestRefusalLength shows that a long cause is truncated.
func TestRefusalLength(t *testing.T) {
	v := newVisit(httptest.NewRequest(http.MethodGet, "/", nil))
	v.refusal = problem.NoCredentials().Because(strings.Repeat("é", maxCause))
	cause := v.describeRefusal()[0].Value.String()
	if len(cause) > maxCause+len("…") || !strings.HasSuffix(cause, "é…") {
		t.Errorf("a cause of %d bytes is logged, want at most maxCause bytes and an ellipsis", len(cause))
	}
}

// TestClientLeft shows that a request whose client has closed the connection is not a server error:
// it is logged at level info and counted with status 499. A request that fails for a different
// reason is still a server error.
func TestClientLeft(t *testing.T) {
	tests := []struct {
		name       string
		leaves     bool
		err        error
		wantStatus int
		wantLog    string
	}{
		{"the client leaves", true, context.Canceled, 499, "level=INFO msg=request"},
		{"the client leaves, but something else failed", true, errors.New("no space"), 500, "level=ERROR msg=request"},
		{"only a part of the work is canceled", false, context.Canceled, 500, "level=ERROR msg=request"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			log := slog.New(slog.NewTextHandler(&b, nil))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			counted := 0
			fails := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.leaves {
					leave()
				}
				err := fmt.Errorf("reading a client: %w", tt.err)
				Refuse(r.Context(), err)
				LogInternal(r, log, err)
				w.WriteHeader(http.StatusInternalServerError)
			})

			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/oauth/token", nil)
			Outer(fails, log, func(_ string, status int, _ time.Duration) { counted = status }).
				ServeHTTP(httptest.NewRecorder(), r)

			if counted != tt.wantStatus || !strings.Contains(b.String(), tt.wantLog) {
				t.Errorf("counted %d and logged %s, want %d and %s", counted, b.String(), tt.wantStatus, tt.wantLog)
			}
			if failed := strings.Contains(b.String(), "ERROR"); failed != (tt.wantStatus == 500) {
				t.Errorf("logged %s, want the level ERROR only for status 500", b.String())
			}
			if strings.Contains(b.String(), `cause=""`) {
				t.Errorf("logged an empty cause: %s", b.String())
			}
		})
	}
}
