package fabrictest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

func TestParseScope(t *testing.T) {
	for _, scope := range fabric.Scopes() {
		name := strings.ToUpper(string(scope))
		if got, ok := fabric.ParseScope(name); !ok || got != scope {
			t.Errorf("ParseScope(%s) = %q, %v, want %q", name, got, ok, scope)
		}
	}

	if got, ok := fabric.ParseScope("Calling"); !ok || got != fabric.Voice {
		t.Errorf("ParseScope(Calling) = %q, %v, want Voice", got, ok)
	}
	if got, ok := fabric.ParseScope("openid"); ok {
		t.Errorf("ParseScope(openid) = %q, want none", got)
	}
}

func TestTokenHas(t *testing.T) {
	token := fabric.Token{Scope: []string{"openid", "calling"}}
	if !token.Has(fabric.Fax, fabric.Voice) {
		t.Errorf("a token with the scopes %v has neither Fax nor Voice, want Voice", token.Scope)
	}
	if token.Has(fabric.Fax) {
		t.Errorf("a token with the scopes %v has Fax, want only Voice", token.Scope)
	}
	if token.Has() {
		t.Error("Has without scopes = true, want false")
	}
}

// TestTokenKinds shows that a token of one kind cannot be opened as a token of a different kind.
func TestTokenKinds(t *testing.T) {
	ours, theirs := newFabric(t)
	kinds := []fabric.TokenKind{fabric.SAT, fabric.Guest, fabric.Invite, fabric.Refresh, fabric.Service}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			raw, err := ours.Tokens.Seal(fabric.Token{
				Kind:      kind,
				ProjectID: "p",
				Scope:     []string{"a"},
				ExpiresAt: time.Now().Add(time.Hour),
			})
			if err != nil {
				t.Fatal(err)
			}

			wantOpened(t, ours, raw, kind, kind)
			wantOpened(t, ours, raw, kind, kinds...)
			wantNotOpened(t, ours, raw, "one of no kinds")
			wantNotOpened(t, theirs, raw, "a token of our own issuer", kind)
			for _, other := range kinds {
				if other != kind {
					wantNotOpened(t, ours, raw, string(other), other)
				}
			}
		})
	}

	for _, kind := range []fabric.TokenKind{fabric.Access, ""} {
		if _, err := ours.Tokens.Seal(fabric.Token{Kind: kind}); err == nil {
			t.Errorf("Seal(%q): got nil, want an error", kind)
		}
	}
}

// wantOpened opens a token as one of the accepted kinds, and checks its kind.
func wantOpened(t *testing.T, f *fabric.Fabric, raw string, want fabric.TokenKind, accepted ...fabric.TokenKind) {
	t.Helper()
	token, err := f.Tokens.Open(t.Context(), raw, accepted...)
	if err != nil {
		t.Errorf("Open as one of %s: %v", accepted, err)
		return
	}
	if token.Kind != want {
		t.Errorf("Open as one of %s returned a %q, want %q", accepted, token.Kind, want)
	}
	if token.ID == "" {
		t.Errorf("Open as one of %s returned a token without an id", accepted)
	}
	if token.IssuedAt.IsZero() {
		t.Errorf("Open as one of %s returned a token without a time of issue", accepted)
	}
}

// wantNotOpened fails the test if a token opens as one of the accepted kinds.
func wantNotOpened(t *testing.T, f *fabric.Fabric, raw, as string, accepted ...fabric.TokenKind) {
	t.Helper()
	if _, err := f.Tokens.Open(t.Context(), raw, accepted...); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("Open as %s: got %v, want Unauthenticated", as, err)
	}
}

func TestTokenTimes(t *testing.T) {
	ours, _ := newFabric(t)
	now := time.Now()
	tests := []struct {
		name      string
		issued    time.Time
		expires   time.Time
		wantValid bool
	}{
		{"valid", now.Add(-time.Hour), now.Add(time.Hour), true},
		{"expired", now.Add(-time.Hour), now.Add(-time.Second), false},
		{"issued by a clock that is slightly ahead", now.Add(30 * time.Second), now.Add(time.Hour), true},
		{"issued in the future", now.Add(2 * time.Minute), now.Add(time.Hour), false},
		{"without an expiry", now, time.Time{}, false},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw, err := ours.Tokens.Seal(fabric.Token{
				Kind:      fabric.SAT,
				IssuedAt:  tt.issued,
				ExpiresAt: tt.expires,
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = ours.Tokens.Open(t.Context(), raw, fabric.SAT)
			if valid := err == nil; valid != tt.wantValid {
				t.Errorf("valid = %v (%v), want %v", valid, err, tt.wantValid)
			}
		})
	}
}
