package oidc_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/limit"
)

// TestTokenRequestNotCounted shows that a request whose client has left gets no tokens, because it
// cannot be counted against the limit. Otherwise, clients could guess secrets without a limit.
func TestTokenRequestNotCounted(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.TokenPerClient: limit.Of(50, time.Hour)})
	c, clientSecret := w.client(func(n *idp.Client) {
		n.Type, n.RedirectURIs, n.Scopes = idp.Service, nil, []string{"Voice"}
	})
	ask := func(ctx context.Context) int {
		form := url.Values{"grant_type": {"client_credentials"}}
		body := strings.NewReader(form.Encode())
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, w.url+"/oauth/token", body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth(c.ID, clientSecret)
		recorded := httptest.NewRecorder()
		w.handler.ServeHTTP(recorded, r)
		return recorded.Code
	}

	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := w.idp.Clients.Find(t.Context(), c.ID); err != nil { // the client is then in the cache
		t.Fatal(err)
	}
	if got := ask(left); got != http.StatusServiceUnavailable {
		t.Errorf("a request whose client has left returns %d, want 503", got)
	}
	if got := ask(t.Context()); got != http.StatusOK {
		t.Errorf("a counted request returns %d, want 200", got)
	}
}
