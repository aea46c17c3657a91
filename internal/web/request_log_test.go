package web

import (
	"bytes"
	"context"
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
		t.Error("lines have no cause")
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
		t.Errorf("a cause of %d bytes is logged", len(cause))
	}
}
