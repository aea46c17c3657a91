// Package fabrictest tests package fabric with the store; see docs/testing.md.
package fabrictest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store/storetest"
)

// newFabric returns a fabric on real storage, and a fabric with another issuer on the same storage.
func newFabric(t *testing.T) (ours, theirs *fabric.Fabric) {
	t.Helper()
	dir := storetest.Dir(t)
	rows := storetest.Open(t, dir, nil)
	revoked := revocation.New(rows, nil)
	if err := revoked.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}

	c := fabric.Config{
		Stores:      rows.Fabric(),
		Ring:        storetest.Ring(t, dir, rows, nil),
		Passwords:   password.Weak(1),
		Revocations: revoked,
		Host:        "h",
		Issuer:      "http://ours/",
	}
	ours = fabric.New(c)
	c.Issuer = "http://theirs/"
	return ours, fabric.New(c)
}

func TestNormalizeEmail(t *testing.T) {
	tests := []struct{ email, want string }{
		{" Ada@Example.COM ", "ada@example.com"},
		{"e\u0301@example.com", "\u00e9@example.com"},
		{"E\u0301@example.com", "\u00e9@example.com"},
		{"", ""},
	}
	for _, tt := range tests {
		if got := fabric.NormalizeEmail(tt.email); got != tt.want {
			t.Errorf("NormalizeEmail(%q) = %q, want %q", tt.email, got, tt.want)
		}
	}
}

func FuzzNormalizeEmail(f *testing.F) {
	for _, seed := range []string{"Ada@Example.com", "İ@x", "ΑΣ@x", "\xff", "e\u0301", strings.Repeat("a\u0301", 1<<12),
		"a" + strings.Repeat("\u0301\u0316", 1<<12), strings.Repeat("\ufdfa", 1<<12) + "@" + strings.Repeat(".", 1<<12),
		"a@" + strings.Repeat("xn--a.", 1<<10), "a@" + strings.Repeat("\u00fc.", 1<<12)} {
		f.Add(seed)
	}

	bound := fuzzcost.Bound{CPU: 2 * time.Millisecond, Heap: 256 << 10} // for input of any length
	f.Fuzz(func(t *testing.T, email string) {
		bound.Check(t, len(email), func() {
			once := fabric.NormalizeEmail(email)
			if twice := fabric.NormalizeEmail(once); twice != once {
				t.Errorf("NormalizeEmail(%q) = %q, and of that %q", email, once, twice)
			}
		})
	})
}

func TestParseScope(t *testing.T) {
	for _, s := range fabric.Scopes() {
		if got, ok := fabric.ParseScope(strings.ToUpper(string(s))); !ok || got != s {
			t.Errorf("ParseScope of %s in capitals = %q, %v, want the scope", s, got, ok)
		}
	}

	if got, ok := fabric.ParseScope("Calling"); !ok || got != fabric.Voice {
		t.Errorf("ParseScope(Calling) = %q, %v, want Voice", got, ok)
	}
	if got, ok := fabric.ParseScope("openid"); ok {
		t.Errorf("ParseScope(openid) = %q, want none", got)
	}

	token := fabric.Token{Scope: []string{"openid", "calling"}}
	if !token.Has(fabric.Fax, fabric.Voice) || token.Has(fabric.Fax) || token.Has() {
		t.Errorf("Has of %v does not report exactly Voice", token.Scope)
	}
}

// TestTokenKinds shows that a token of one kind cannot be opened as a token of a different kind.
func TestTokenKinds(t *testing.T) {
	ctx := context.Background()
	ours, theirs := newFabric(t)
	kinds := []fabric.TokenKind{fabric.SAT, fabric.Guest, fabric.Invite, fabric.Refresh, fabric.Service}
	for _, kind := range kinds {
		raw, err := ours.Tokens.Seal(fabric.Token{
			Kind:      kind,
			ProjectID: "p",
			Scope:     []string{"a"},
			ExpiresAt: time.Now().Add(time.Hour),
		})
		if err != nil {
			t.Fatalf("Seal(%s): %v", kind, err)
		}

		for _, as := range kinds {
			got, err := ours.Tokens.Open(ctx, raw, as)
			if as == kind && (err != nil || got.Kind != kind || got.ID == "" || got.IssuedAt.IsZero()) {
				t.Errorf("Open(%s) = %+v, %v, want the token", kind, got, err)
			}
			if as != kind && !errors.Is(err, problem.Unauthenticated) {
				t.Errorf("Open of a %s as a %s: got %v, want unauthenticated", kind, as, err)
			}
		}

		if got, err := ours.Tokens.Open(ctx, raw, kinds...); err != nil || got.Kind != kind {
			t.Errorf("Open of a %s as any kind = %s, %v", kind, got.Kind, err)
		}
		if _, err := ours.Tokens.Open(ctx, raw); !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("Open of a %s as no kind: got %v, want Unauthenticated", kind, err)
		}

		if _, err := theirs.Tokens.Open(ctx, raw, kind); !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("Open of a %s of another issuer: got %v, want Unauthenticated", kind, err)
		}
	}

	for _, kind := range []fabric.TokenKind{fabric.Access, ""} {
		if _, err := ours.Tokens.Seal(fabric.Token{Kind: kind}); err == nil {
			t.Errorf("Seal(%q): got nil, want an error", kind)
		}
	}
}

func TestTokenTimes(t *testing.T) {
	ours, _ := newFabric(t)
	now := time.Now()
	tests := []struct {
		name            string
		issued, expires time.Time
		good            bool
	}{
		{"valid", now.Add(-time.Hour), now.Add(time.Hour), true},
		{"expired", now.Add(-time.Hour), now.Add(-time.Second), false},
		{"of a clock a little ahead", now.Add(30 * time.Second), now.Add(time.Hour), true},
		{"issued in the future", now.Add(2 * time.Minute), now.Add(time.Hour), false},
		{"without an expiry", now, time.Time{}, false},
	}

	for _, tt := range tests {
		raw, err := ours.Tokens.Seal(fabric.Token{Kind: fabric.SAT, IssuedAt: tt.issued, ExpiresAt: tt.expires})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Tokens.Open(context.Background(), raw, fabric.SAT); (err == nil) != tt.good {
			t.Errorf("Open of a token %s: got %v", tt.name, err)
		}
	}
}

func TestProjectRules(t *testing.T) {
	ctx := context.Background()
	f, _ := newFabric(t)
	for _, name := range []string{"", "  ", "a\x00b", "\xff", strings.Repeat("n", 256)} {
		if _, err := f.Projects.Create(ctx, name); !errors.Is(err, problem.Invalid) {
			t.Errorf("Projects.Create(%.10q): got %v, want invalid", name, err)
		}
	}

	p, err := f.Projects.Create(ctx, "one")
	if err != nil || p.RecordRate != fabric.DefaultRecordRate {
		t.Fatalf("Projects.Create = %+v, %v, want a project with the default rate", p, err)
	}

	rate, negative, name := int64(5000), int64(-1), "uno"
	_, err = f.Projects.Update(ctx, p.ID, fabric.ProjectChange{RecordRate: &negative})
	if !errors.Is(err, problem.Invalid) {
		t.Errorf("Projects.Update(rate -1): got %v, want invalid", err)
	}

	for _, c := range []fabric.ProjectChange{{RecordRate: &rate}, {Name: &name}, {}} {
		if p, err = f.Projects.Update(ctx, p.ID, c); err != nil {
			t.Fatal(err)
		}
	}

	if found, err := f.Projects.Find(ctx, strings.ToUpper(p.ID)); err != nil || found != p || p.Name != "uno" ||
		p.RecordRate != 5000 {
		t.Errorf("Projects.Find = %+v, %v, want %+v", found, err, p)
	}

	if all, err := f.Projects.List(ctx, page.Query{Size: 10}); err != nil || len(all.Items) != 1 {
		t.Errorf("Projects.List = %+v, %v, want one project", all, err)
	}
	if err := f.Projects.Delete(ctx, p.ID); err != nil {
		t.Fatal(err)
	}

	_, err = f.Projects.Update(ctx, p.ID, fabric.ProjectChange{Name: &name})
	_, err2 := f.Projects.Find(ctx, "nonsense")
	_, _, err3 := f.APIKeys.Create(ctx, p.ID, fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Voice}}, nil)
	for _, err := range []error{err, err2, err3, f.Projects.Delete(ctx, p.ID)} {
		if !errors.Is(err, problem.NotFound) {
			t.Errorf("of a deleted project: got %v, want not found", err)
		}
	}
}

func TestAPIKeys(t *testing.T) {
	ctx := context.Background()
	f, _ := newFabric(t)
	p, err := f.Projects.Create(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.APIKeys.Create(ctx, p.ID, fabric.APIKeyInput{}, nil); !errors.Is(err, problem.Invalid) {
		t.Errorf("APIKeys.Create without scopes: got %v, want invalid", err)
	}

	name := "backend"
	k, secret, err := f.APIKeys.Create(ctx, p.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice, fabric.Fax}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(secret, "PT") || len(secret) != 66 || !strings.HasPrefix(secret, k.Prefix) ||
		strings.Contains(k.Hash, secret[2:]) {
		t.Errorf("APIKeys.Create returned %q with %+v, want a secret with the key's prefix and hash", secret, k)
	}

	for range 2 { // first from the row, then from the cache
		got, err := f.APIKeys.Authenticate(ctx, p.ID, secret)
		if err != nil || got.ID != k.ID || !got.Has(fabric.Fax) || got.Has(fabric.Video) || got.LastUsed.IsZero() {
			t.Errorf("Authenticate = %+v, %v, want the key", got, err)
		}
		for _, wrong := range [][2]string{{p.ID, secret + "0"}, {p.ID, ""}, {"", secret}, {k.ID, secret},
			{strings.ToUpper(p.ID), secret}} {
			if _, err := f.APIKeys.Authenticate(ctx, wrong[0], wrong[1]); !errors.Is(err, problem.Unauthenticated) {
				t.Errorf("Authenticate(%q, …): got %v, want unauthenticated", wrong[0], err)
			}
		}
	}

	if err := f.APIKeys.Settle(ctx); err != nil { // the use is recorded in the background
		t.Fatal(err)
	}

	all, err := f.APIKeys.List(ctx, p.ID, page.Query{Size: 10})
	if err != nil || len(all.Items) != 1 || all.Items[0].LastUsed.IsZero() {
		t.Errorf("APIKeys.List = %+v, %v, want the key shown as used", all, err)
	}
}

func TestSubscriberOf(t *testing.T) {
	ctx := context.Background()
	f, _ := newFabric(t)
	p, err := f.Projects.Create(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}

	email := "ada@example.com"
	ada, err := f.Subscribers.Create(ctx, p.ID, fabric.SubscriberInput{Email: &email})
	if err != nil {
		t.Fatal(err)
	}

	tests := []struct{ path, want string }{
		{"/private/ada", ada.ID},
		{"/private/ada?channel=audio", ada.ID},
		{"+15550100", ""},
		{"/public/ada", ""},
		{"/private/eve", ""},
		{"ada", ""},
		{"", ""},
		{"/private/\x00", ""},
		{"/", ""},
	}

	for _, tt := range tests {
		if got, err := f.Addresses.SubscriberOf(ctx, p.ID, tt.path); err != nil || got != tt.want {
			t.Errorf("SubscriberOf(%q) = %q, %v, want %q", tt.path, got, err, tt.want)
		}
	}
}
