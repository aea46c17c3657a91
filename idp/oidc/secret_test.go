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

// TestOldSecretNotedOnce shows that concurrent uses of an old secret are recorded once. A server
// waits for this record before it stops.
func TestOldSecretNotedOnce(t *testing.T) {
	w := newWorld(t)
	c, secret := w.client(func(c *idp.Client) { c.Type = idp.Web })
	_, _, err := w.idp.Clients.RotateSecret(t.Context(), c.ID, time.Hour, nil)
	must(t, err)

	// Use the secret while recording is blocked.
	slow := &slowNote{ClientStore: w.rows, release: make(chan struct{})}
	node := w.idp.Config
	node.Store.Clients = slow
	p := idp.New(node)
	c, err = p.Clients.Find(t.Context(), c.ID)
	must(t, err)
	for range 50 {
		if !p.Clients.VerifySecret(t.Context(), c, secret) {
			t.Fatal("the old secret is refused")
		}
	}

	close(slow.release)
	must(t, p.Clients.Settle(t.Context()))
	c, err = w.rows.FindClient(t.Context(), c.ID)
	must(t, err)
	if n := slow.notes.Load(); n != 1 || c.Old.Used.IsZero() {
		t.Errorf("50 uses of an old secret were recorded %d times, the last one at %v, want once", n, c.Old.Used)
	}
}

// A secretService is a service whose secret is rotated.
type secretService struct {
	*world
	idp.Client
}

func newSecretService(t *testing.T) (s secretService, secret string) {
	t.Helper()
	w := newWorld(t)
	c, secret := w.client(func(n *idp.Client) {
		n.Type, n.RedirectURIs, n.Scopes = idp.Service, nil, []string{"Voice"}
	})
	return secretService{w, c}, secret
}

// try requests a token with secret, and checks the status of the response.
func (s secretService) try(when, secret string, want int) {
	s.t.Helper()
	got := s.post("/oauth/token", url.Values{"grant_type": {"client_credentials"}}, "Authorization",
		basic(s.ID, secret))
	if got.status != want {
		s.t.Errorf("%s: %d %s, want %d", when, got.status, got.body, want)
	}
}

// rotate replaces the secret and returns the new one. Before it returns, it writes settings that
// were read before the rotation.
func (s secretService) rotate(overlap time.Duration) string {
	s.t.Helper()
	after, secret, err := s.idp.Clients.RotateSecret(s.t.Context(), s.ID, overlap, nil)
	must(s.t, err)
	if (after.Old.Hash != "") != (overlap > 0) {
		s.t.Errorf("after an overlap of %s the old secret is %+v", overlap, after.Old)
	}
	must(s.t, s.rewrite(s.Client))
	return secret
}

// TestRotateSecret shows that a new secret is kept when settings are written that were read before
// the rotation. The old secret is valid until the overlap ends or an operator ends it.
func TestRotateSecret(t *testing.T) {
	c, first := newSecretService(t)

	// The old secret is valid during the overlap.
	second := c.rotate(time.Hour)
	c.try("the first in its overlap", first, 200)
	c.try("the second", second, 200)
	c.pass(time.Hour)
	c.try("the first after its overlap", first, 401)
	c.try("the second after the overlap of the first", second, 200)

	// Only one old secret is kept, and it can be ended early.
	third := c.rotate(time.Hour)
	fourth := c.rotate(time.Hour)
	c.try("the second, after the third replaced it without overlap", second, 401)
	c.try("the third in its overlap", third, 200)
	if _, err := c.idp.Clients.EndSeenSecret(t.Context(), c.Client); !errors.Is(err, problem.Conflict) {
		t.Errorf("ending an old secret that was replaced: %v, want Conflict", err)
	}
	if _, _, err := c.idp.Clients.RotateSeen(t.Context(), c.Client, 0, nil); !errors.Is(err, problem.Conflict) {
		t.Errorf("replacing a secret that was replaced: %v, want Conflict", err)
	}
	_, err := c.idp.Clients.EndOldSecret(t.Context(), c.ID)
	must(t, err)
	c.try("the third, after it was ended", third, 401)
	if _, err := c.idp.Clients.EndOldSecret(t.Context(), c.ID); !errors.Is(err, problem.Conflict) {
		t.Errorf("ending the old secret again: %v, want Conflict", err)
	}

	// Without an overlap, the old secret becomes invalid immediately.
	fifth := c.rotate(0)
	c.try("the fourth without overlap", fourth, 401)
	c.try("the fifth", fifth, 200)
}

// TestRotateSecretRefused shows that excessive overlaps are refused. Callers are refused if they
// have fewer rights than the client, or have them for a shorter time. Keys that are revoked between
// their check and the rotation are also refused.
func TestRotateSecretRefused(t *testing.T) {
	c, secret := newSecretService(t)
	made, key, err := c.fabric.APIKeys.Create(t.Context(), c.ProjectID,
		fabric.APIKeyInput{Scopes: fabric.Scopes()}, nil)
	must(t, err)
	revoked := made.Rights(key)
	must(t, c.fabric.APIKeys.Revoke(t.Context(), made.ProjectID, made.ID))

	for _, tt := range []struct {
		what    string
		overlap time.Duration
		by      *fabric.Rights
		want    problem.Kind
	}{
		{"an overlap that is too long", fabric.MaxOverlap + 1, nil, problem.Invalid},
		{"by a key without Voice, which the client has", 0,
			&fabric.Rights{Scopes: []fabric.Scope{fabric.Management}}, problem.Forbidden},
		{"by a key that expires", 0,
			&fabric.Rights{Scopes: []fabric.Scope{fabric.Voice}, Expires: c.now().Add(time.Hour)}, problem.Forbidden},
		{"by a key that was revoked in the meantime", 0, revoked, problem.Unauthenticated},
	} {
		if _, _, err := c.idp.Clients.RotateSecret(t.Context(), c.ID, tt.overlap, tt.by); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want a refusal", tt.what, err)
		}
	}
	c.try("after the refused rotations", secret, 200)
}
