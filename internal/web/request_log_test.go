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
	now := time.Now()
	l.now = func() time.Time { return now }

	refuse := func(err error) {
		r, v := withVisit(httptest.NewRequest(http.MethodGet, "/", nil))
		ctx, cancel := context.WithCancel(r.Context()) // handlers derive their own contexts
		Refuse(ctx, err)
		cancel()
		l.write(r, &recorder{status: http.StatusUnauthorized}, v, 0)
	}

	for range refusalBurst + 7 {
		refuse(problem.NoCredentials().Because("the cause"))
	}
	if n := strings.Count(b.String(), "level=INFO msg=request"); n != refusalBurst {
		t.Errorf("%d refusals in an instant were logged, want %d", n, refusalBurst)
	}
	if n := strings.Count(b.String(), `cause="the cause" code=unauthorized`); n != refusalBurst {
		t.Errorf("%d lines have the cause and the code, want %d", n, refusalBurst)
	}

	b.Reset()
	now = now.Add(time.Second)
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
	_, v := withVisit(httptest.NewRequest(http.MethodGet, "/", nil))
	v.refusal = problem.NoCredentials().Because(strings.Repeat("é", maxCause))
	cause := v.describeRefusal()[0].Value.String()
	if most := maxCause + len("…"); len(cause) > most {
		t.Errorf("the logged cause has %d bytes, want at most %d", len(cause), most)
	}
	if !strings.HasSuffix(cause, "é…") {
		t.Errorf("the logged cause is %q, want a whole character and an ellipsis at the end", cause)
	}
}

// TestClientLeft shows that a request whose client has closed the connection is not a server error:
// it is logged at level info and counted with status 499. A request that fails for a different
// reason is still a server error.
func TestClientLeft(t *testing.T) {
	tests := []struct {
		name   string
		leaves bool
		err    error
		status int
		level  string
	}{
		{
			name:   "the client leaves",
			leaves: true,
			err:    context.Canceled,
			status: 499,
			level:  "INFO",
		},
		{
			name:   "the client leaves, but something else failed",
			leaves: true,
			err:    errors.New("no space"),
			status: 500,
			level:  "ERROR",
		},
		{
			name:   "only a part of the work is canceled",
			err:    context.Canceled,
			status: 500,
			level:  "ERROR",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			log := slog.New(slog.NewTextHandler(&b, nil))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			counted := 0
			observe := func(_ string, status int, _ time.Duration) { counted = status }
			failing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.leaves {
					leave()
				}
				err := fmt.Errorf("reading a client: %w", tt.err)
				Refuse(r.Context(), err)
				LogInternal(r, log, err)
				w.WriteHeader(http.StatusInternalServerError)
			})

			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/oauth/token", nil)
			Outer(failing, log, observe).ServeHTTP(httptest.NewRecorder(), r)

			if counted != tt.status {
				t.Errorf("the request is counted with status %d, want %d", counted, tt.status)
			}
			logged := b.String()
			if want := "level=" + tt.level + " msg=request"; !strings.Contains(logged, want) {
				t.Errorf("the log is %s, want it to contain %q", logged, want)
			}
			if tt.level != "ERROR" && strings.Contains(logged, "ERROR") {
				t.Errorf("the log is %s, want it without errors", logged)
			}
			if strings.Contains(logged, `cause=""`) {
				t.Errorf("the log is %s, want it without an empty cause", logged)
			}
		})
	}
}
