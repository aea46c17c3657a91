package oidc_test

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// A slowNote is a store that blocks when the use of an old secret is recorded.
type slowNote struct {
	idp.ClientStore
	release chan struct{}
	notes   atomic.Int64
}

func (s *slowNote) TouchOldSecret(ctx context.Context, id, hash string, now time.Time) error {
	s.notes.Add(1)
	<-s.release
	return s.ClientStore.TouchOldSecret(ctx, id, hash, now)
}

// TestOldSecretNotedOnce shows that while a use of an old secret is being recorded, further uses are
// not recorded. Settle waits until the use is recorded.
func TestOldSecretNotedOnce(t *testing.T) {
	w := newWorld(t)
	c, clientSecret := w.client(func(c *idp.Client) { c.Type = idp.Web })
	_, _, err := w.idp.Clients.RotateSecret(t.Context(), c.ID, time.Hour, nil)
	must(t, err)

	// Use the secret while recording is blocked.
	slow := &slowNote{ClientStore: w.rows, release: make(chan struct{})}
	config := w.idp.Config
	config.Store.Clients = slow
	node := idp.New(config)
	c, err = node.Clients.Find(t.Context(), c.ID)
	must(t, err)
	for range 50 {
		if !node.Clients.VerifySecret(t.Context(), c, clientSecret) {
			t.Fatal("the old secret is refused")
		}
	}

	close(slow.release)
	must(t, node.Clients.Settle(t.Context()))
	if n := slow.notes.Load(); n != 1 {
		t.Errorf("50 uses of an old secret were recorded %d times, want once", n)
	}
	c, err = w.rows.FindClient(t.Context(), c.ID)
	must(t, err)
	if c.Old.Used.IsZero() {
		t.Error("the use of the client's old secret has no time, want one")
	}
}

// A secretService is a service whose secret is rotated.
type secretService struct {
	*world
	idp.Client
}

// newSecretService returns a service, and its first secret.
func newSecretService(t *testing.T) (s secretService, secret string) {
	t.Helper()
	w := newWorld(t)
	c, secret := w.client(func(n *idp.Client) {
		n.Type, n.RedirectURIs, n.Scopes = idp.Service, nil, []string{"Voice"}
	})
	return secretService{world: w, Client: c}, secret
}

// wantToken requests a token with a secret, and checks the status of the response.
func (s secretService) wantToken(when, secret string, status int) {
	s.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}}
	got := s.post("/oauth/token", form, "Authorization", basic(s.ID, secret))
	wantStatus(s.t, when, got, status)
}

// rotate replaces the secret and returns the new one. Before it returns, it writes settings that
// were read before the rotation.
func (s secretService) rotate(overlap time.Duration) string {
	s.t.Helper()
	after, secret, err := s.idp.Clients.RotateSecret(s.t.Context(), s.ID, overlap, nil)
	must(s.t, err)
	isKept, wantKept := after.Old.Hash != "", overlap > 0
	if isKept != wantKept {
		s.t.Errorf("with an overlap of %s the old secret is kept: %t, want %t", overlap, isKept, wantKept)
	}
	must(s.t, s.rewrite(s.Client))
	return secret
}

// TestRotateSecret shows that settings that were read before a rotation can be written after it, and
// do not undo it. The old secret is valid until the overlap ends or an operator ends it.
func TestRotateSecret(t *testing.T) {
	c, first := newSecretService(t)

	// The old secret is valid during the overlap.
	second := c.rotate(time.Hour)
	c.wantToken("the first in its overlap", first, 200)
	c.wantToken("the second", second, 200)
	c.pass(time.Hour)
	c.wantToken("the first after its overlap", first, 401)
	c.wantToken("the second after the overlap of the first", second, 200)

	// Only one old secret is kept, and it can be ended early.
	third := c.rotate(time.Hour)
	fourth := c.rotate(time.Hour)
	c.wantToken("the second, after the third replaced it without overlap", second, 401)
	c.wantToken("the third in its overlap", third, 200)
	if _, err := c.idp.Clients.EndSeenSecret(t.Context(), c.Client); !errors.Is(err, problem.Conflict) {
		t.Errorf("ending an old secret that was replaced: %v, want Conflict", err)
	}
	if _, _, err := c.idp.Clients.RotateSeen(t.Context(), c.Client, 0, nil); !errors.Is(err, problem.Conflict) {
		t.Errorf("replacing a secret that was replaced: %v, want Conflict", err)
	}
	_, err := c.idp.Clients.EndOldSecret(t.Context(), c.ID)
	must(t, err)
	c.wantToken("the third, after it was ended", third, 401)
	if _, err := c.idp.Clients.EndOldSecret(t.Context(), c.ID); !errors.Is(err, problem.Conflict) {
		t.Errorf("ending the old secret again: %v, want Conflict", err)
	}

	// Without an overlap, the old secret becomes invalid immediately.
	fifth := c.rotate(0)
	c.wantToken("the fourth without overlap", fourth, 401)
	c.wantToken("the fifth", fifth, 200)
}

// TestRotateSecretRefused shows that excessive overlaps are refused. Callers are refused if they
// have fewer rights than the client, or have them for a shorter time. Keys that are revoked between
// their check and the rotation are also refused.
func TestRotateSecretRefused(t *testing.T) {
	c, secret := newSecretService(t)
	key, apiSecret, err := c.fabric.APIKeys.Create(t.Context(), c.ProjectID,
		fabric.APIKeyInput{Scopes: fabric.Scopes()}, nil)
	must(t, err)
	revoked := key.Rights(apiSecret)
	must(t, c.fabric.APIKeys.Revoke(t.Context(), key.ProjectID, key.ID))

	for _, tt := range []struct {
		name    string
		overlap time.Duration
		caller  *fabric.Rights
		want    problem.Kind
	}{
		{
			name:    "an overlap that is too long",
			overlap: fabric.MaxOverlap + 1,
			want:    problem.Invalid,
		},
		{
			name:   "by a key without Voice, which the client has",
			caller: &fabric.Rights{Scopes: []fabric.Scope{fabric.Management}},
			want:   problem.Forbidden,
		},
		{
			name:   "by a key that expires",
			caller: &fabric.Rights{Scopes: []fabric.Scope{fabric.Voice}, Expires: c.now().Add(time.Hour)},
			want:   problem.Forbidden,
		},
		{
			name:   "by a key that was revoked in the meantime",
			caller: revoked,
			want:   problem.Unauthenticated,
		},
	} {
		_, _, err := c.idp.Clients.RotateSecret(t.Context(), c.ID, tt.overlap, tt.caller)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	c.wantToken("after the refused rotations", secret, 200)
}
