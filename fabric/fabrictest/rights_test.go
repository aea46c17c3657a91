package fabrictest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// TestRightsLost shows that credentials cannot pass on rights that they have lost since the request was
// authenticated, because the change checks the rights again.
func TestRightsLost(t *testing.T) {
	all := []fabric.Scope{fabric.Management, fabric.Voice}
	few := []fabric.Scope{fabric.Management}
	for name, lose := range map[string]func(context.Context, *fabric.Fabric, fabric.APIKey) error{
		"revoked": func(ctx context.Context, f *fabric.Fabric, k fabric.APIKey) error {
			return f.APIKeys.Revoke(ctx, k.ProjectID, k.ID)
		},
		"without Voice": func(ctx context.Context, f *fabric.Fabric, k fabric.APIKey) error {
			_, err := f.APIKeys.Update(ctx, k.ProjectID, k.ID, fabric.APIKeyInput{Scopes: few}, nil)
			return err
		},
		"with an expiry": func(ctx context.Context, f *fabric.Fabric, k fabric.APIKey) error {
			end := time.Now().Add(time.Hour)
			_, err := f.APIKeys.Update(ctx, k.ProjectID, k.ID, fabric.APIKeyInput{Expires: &end}, nil)
			return err
		},
		"rotated without an overlap": func(ctx context.Context, f *fabric.Fabric, k fabric.APIKey) error {
			_, _, err := f.APIKeys.Rotate(ctx, k.ProjectID, k.ID, 0, nil)
			return err
		},
		"rotated with an overlap": func(ctx context.Context, f *fabric.Fabric, k fabric.APIKey) error {
			_, _, err := f.APIKeys.Rotate(ctx, k.ProjectID, k.ID, time.Hour, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, p := projectOf(t)
			maker, secret, err := f.APIKeys.Create(t.Context(), p.ID, fabric.APIKeyInput{Scopes: all}, nil)
			if err != nil {
				t.Fatal(err)
			}
			by := maker.Rights(secret)
			wantPassed(t, f, p, by, nil)
			if err := lose(t.Context(), f, maker); err != nil {
				t.Fatal(err)
			}
			wantPassed(t, f, p, by, problem.Unauthenticated)
		})
	}

	t.Run("a revoked service token", func(t *testing.T) {
		f, p := projectOf(t)
		token := fabric.Token{
			Kind:      fabric.Service,
			ID:        "jti",
			ProjectID: p.ID,
			ClientID:  "client",
			Scope:     []string{"Management", "Voice"},
			IssuedAt:  time.Now(),
			ExpiresAt: time.Now().Add(time.Hour),
		}
		by := token.Rights(f.Tokens.Known())
		wantPassed(t, f, p, by, nil)
		other := token
		other.ID = "another"
		if err := f.Tokens.Revoke(t.Context(), other); err != nil {
			t.Fatal(err)
		}

		wantPassed(t, f, p, by, nil)
		if err := f.Tokens.Revoke(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		wantPassed(t, f, p, by, problem.Unauthenticated)
	})
}

// wantPassed makes each change that passes rights on, and checks that its error is want.
func wantPassed(t *testing.T, f *fabric.Fabric, p fabric.Project, by *fabric.Rights, want error) {
	t.Helper()
	ctx, voice := t.Context(), []fabric.Scope{fabric.Voice}
	target, _, err := f.APIKeys.Create(ctx, p.ID, fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Management}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	email := target.ID + "@example.com"
	s, err := f.Subscribers.Create(ctx, p.ID, fabric.SubscriberInput{Email: &email})
	if err != nil {
		t.Fatal(err)
	}

	password := "fathom lantern"
	_, _, made := f.APIKeys.Create(ctx, p.ID, fabric.APIKeyInput{Scopes: voice}, by)
	_, changed := f.APIKeys.Update(ctx, p.ID, target.ID, fabric.APIKeyInput{Scopes: voice}, by)
	_, _, rotated := f.APIKeys.Rotate(ctx, p.ID, target.ID, 0, by)
	_, taken := f.Subscribers.Update(ctx, p.ID, s.ID, fabric.SubscriberInput{Password: &password, Rights: by})

	for what, err := range map[string]error{
		"a new key":           made,
		"a scope for a key":   changed,
		"the secret of a key": rotated,
		"a password":          taken,
	} {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}
