package fabrictest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

func TestAPIKeySecret(t *testing.T) {
	f, p := projectOf(t)
	_, _, err := f.APIKeys.Create(t.Context(), p.ID, fabric.APIKeyInput{}, nil)
	if !errors.Is(err, problem.Invalid) {
		t.Errorf("Create without scopes: got %v, want Invalid", err)
	}

	in := fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Voice}}
	key, secret, err := f.APIKeys.Create(t.Context(), p.ID, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(secret, "PT") {
		t.Errorf("the secret is %q, want it to begin with PT", secret)
	}
	if len(secret) != 66 {
		t.Errorf("the secret %q has %d characters, want 66", secret, len(secret))
	}
	if !strings.HasPrefix(secret, key.Prefix) {
		t.Errorf("the secret is %q, want it to begin with the key's prefix %q", secret, key.Prefix)
	}
	if strings.Contains(key.Hash, secret[2:]) {
		t.Errorf("the hash %q contains the secret", key.Hash)
	}
}

func TestAuthenticate(t *testing.T) {
	f, p := projectOf(t)
	name := "backend"
	in := fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice, fabric.Fax}}
	key, secret, err := f.APIKeys.Create(t.Context(), p.ID, in, nil)
	if err != nil {
		t.Fatal(err)
	}

	refused := []struct{ name, projectID, secret string }{
		{"a longer secret", p.ID, secret + "0"},
		{"no secret", p.ID, ""},
		{"no project", "", secret},
		{"an unknown project", key.ID, secret},
		{"the project in capitals", strings.ToUpper(p.ID), secret},
	}
	for _, source := range []string{"the row", "the cache"} { // the first use fills the cache
		got, err := f.APIKeys.Authenticate(t.Context(), p.ID, secret)
		if err != nil {
			t.Fatalf("Authenticate from %s: %v", source, err)
		}
		if got.ID != key.ID {
			t.Errorf("from %s, the key is %s, want %s", source, got.ID, key.ID)
		}
		if !got.Has(fabric.Fax) {
			t.Errorf("from %s, the key has the scopes %v, want Fax among them", source, got.Scopes)
		}
		if got.Has(fabric.Video) {
			t.Errorf("from %s, the key has the scopes %v, want no Video", source, got.Scopes)
		}
		if got.LastUsed.IsZero() {
			t.Errorf("from %s, the key has no time of last use", source)
		}

		for _, tt := range refused {
			_, err := f.APIKeys.Authenticate(t.Context(), tt.projectID, tt.secret)
			if !errors.Is(err, problem.Unauthenticated) {
				t.Errorf("Authenticate with %s from %s: got %v, want Unauthenticated", tt.name, source, err)
			}
		}
	}

	if err := f.APIKeys.Settle(t.Context()); err != nil { // the use is recorded in the background
		t.Fatal(err)
	}
	listed, err := f.APIKeys.List(t.Context(), p.ID, page.Query{Size: 10})
	if err != nil || len(listed.Items) != 1 {
		t.Fatalf("List = %+v, %v, want one key", listed, err)
	}
	if listed.Items[0].LastUsed.IsZero() {
		t.Error("the listed key has no time of last use")
	}
}

// TestSeenSecrets shows that a caller replaces or ends only the secrets that it has read.
func TestSeenSecrets(t *testing.T) {
	f, p := projectOf(t)
	ctx := t.Context()
	in := fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Voice}}
	first, _, err := f.APIKeys.Create(ctx, p.ID, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := f.APIKeys.RotateSeen(ctx, first, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.APIKeys.RotateSeen(ctx, first, time.Hour, nil); !errors.Is(err, problem.Conflict) {
		t.Errorf("replacing a secret that was replaced: %v, want Conflict", err)
	}

	third, _, err := f.APIKeys.RotateSeen(ctx, second, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.APIKeys.EndOldSecret(ctx, second); !errors.Is(err, problem.Conflict) {
		t.Errorf("ending an old secret that was replaced: %v, want Conflict", err)
	}
	if _, err := f.APIKeys.EndOldSecret(ctx, third); err != nil {
		t.Errorf("ending the old secret: %v, want no error", err)
	}
}
