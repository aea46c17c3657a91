package web_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

func TestRetryAfter(t *testing.T) {
	tests := []struct {
		p    problem.Error
		want string
	}{
		{problem.Error{Kind: problem.Unavailable}, "1"},
		{problem.Error{Kind: problem.RateLimited}, "1"},
		{problem.Error{Kind: problem.RateLimited, RetryAfter: 1500 * time.Millisecond}, "2"},
		{problem.Error{Kind: problem.NotFound, RetryAfter: 5 * time.Second}, "5"},
		{problem.Error{Kind: problem.NotFound}, ""},
	}

	for _, tt := range tests {
		w := httptest.NewRecorder()
		web.RetryAfter(w, &tt.p)
		if got := w.Header().Get("Retry-After"); got != tt.want {
			t.Errorf("RetryAfter(%v, %v) = %q, want %q", tt.p.Kind, tt.p.RetryAfter, got, tt.want)
		}
	}
}
