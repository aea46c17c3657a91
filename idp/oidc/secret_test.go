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

// A slowNote is a store that blocks while the use of an old secret is recorded.
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

// TestOldSecretNotedOnce shows that concurrent uses of an old secret are recorded once, and that
// the record is complete before a server stops.
func TestOldSecretNotedOnce(t *testing.T) {
	w := newWorld(t)
	c, secret := w.client(func(c *idp.Client) { c.Type = idp.Web })
	_, _, err := w.idp.Clients.RotateSecret(t.Context(), c.ID, time.Hour, nil)
	must(t, err)

	// Use the secret while the record is blocked.
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
		t.Errorf("50 uses of an old secret were recorded %d times, the last one at %v", n, c.Old.Used)
	}
}

// TestRotateSecret shows that a new secret survives an update of settings that were read before
// it. The old one is valid until the overlap ends or it is ended.
func TestRotateSecret(t *testing.T) {
	w := newWorld(t)
	c, first := w.client(func(n *idp.Client) {
		n.Type, n.RedirectURIs, n.Scopes = idp.Service, nil, []string{"Voice"}
	})

	try := func(when, secret string, want int) {
		t.Helper()
		got := w.post("/oauth/token", url.Values{"grant_type": {"client_credentials"}}, "Authorization",
			basic(c.ID, secret))
		if got.status != want {
			t.Errorf("%s: %d %s, want %d", when, got.status, got.body, want)
		}
	}

	// rotate also writes back settings that were read before the rotation.
	rotate := func(overlap time.Duration) string {
		t.Helper()
		after, secret, err := w.idp.Clients.RotateSecret(t.Context(), c.ID, overlap, nil)
		must(t, err)
		if (after.Old.Hash != "") != (overlap > 0) {
			t.Errorf("after an overlap of %s the old secret is %+v", overlap, after.Old)
		}
		must(t, w.rewrite(c))
		return secret
	}

	// The old secret is valid for the overlap.
	second := rotate(time.Hour)
	try("the first in its overlap", first, 200)
	try("the second", second, 200)
	w.pass(time.Hour)
	try("the first after its overlap", first, 401)
	try("the second after the overlap of the first", second, 200)

	// Only one old secret is kept, and it can be ended.
	third := rotate(time.Hour)
	fourth := rotate(time.Hour)
	try("the second, after the third replaced it without overlap", second, 401)
	try("the third in its overlap", third, 200)
	_, err := w.idp.Clients.EndOldSecret(t.Context(), c.ID)
	must(t, err)
	try("the third, after it was ended", third, 401)
	if _, err := w.idp.Clients.EndOldSecret(t.Context(), c.ID); !errors.Is(err, problem.Conflict) {
		t.Errorf("ending it again: %v", err)
	}

	// Without an overlap the old secret ends at once.
	fifth := rotate(0)
	try("the fourth without overlap", fourth, 401)
	try("the fifth", fifth, 200)

	// Excessive overlaps are refused, and so are callers with fewer or shorter rights than the
	// client.
	if _, _, err := w.idp.Clients.RotateSecret(t.Context(), c.ID, fabric.MaxOverlap+1, nil); !errors.Is(err,
		problem.Invalid) {
		t.Errorf("an overlap that is too long: %v", err)
	}
	if _, _, err := w.idp.Clients.RotateSecret(t.Context(), c.ID, 0,
		&fabric.Rights{Scopes: []fabric.Scope{fabric.Management}}); !errors.Is(err, problem.Forbidden) {
		t.Errorf("by a key without Voice, which the client has: %v", err)
	}
	if _, _, err := w.idp.Clients.RotateSecret(t.Context(), c.ID, 0,
		&fabric.Rights{Scopes: []fabric.Scope{fabric.Voice}, Expires: w.now().Add(time.Hour)}); !errors.Is(err,
		problem.Forbidden) {
		t.Errorf("by a key that expires: %v", err)
	}

	// So is a key that is revoked between its check and the rotation.
	made, secret, err := w.fabric.APIKeys.Create(t.Context(), c.ProjectID,
		fabric.APIKeyInput{Scopes: fabric.Scopes()}, nil)
	must(t, err)
	by := made.Rights(secret)
	must(t, w.fabric.APIKeys.Revoke(t.Context(), made.ProjectID, made.ID))
	if _, _, err := w.idp.Clients.RotateSecret(t.Context(), c.ID, 0, by); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("by a key that was revoked meanwhile: %v", err)
	}

	try("the fifth after the refused rotations", fifth, 200)
}
