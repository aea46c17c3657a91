package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store"
)

func newAPIKey(t *testing.T, rows *store.Store, p fabric.Project, hash string) fabric.APIKey {
	t.Helper()
	key := fabric.APIKey{
		ID:        newID(),
		ProjectID: p.ID,
		Name:      "key",
		Hash:      hash,
		Scopes:    []fabric.Scope{fabric.Voice},
		Created:   time.Now().Truncate(time.Microsecond),
	}
	if err := rows.CreateAPIKey(t.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
	return key
}

// changeOf returns the revocation for a change of a key.
func changeOf(key fabric.APIKey) revocation.Revocation {
	return revocation.Revocation{
		Kind:    revocation.KeyChange,
		ID:      key.ID,
		Until:   time.Now(),
		Expires: time.Now().Add(time.Hour),
	}
}

func TestExpiringAPIKeys(t *testing.T) { store.EachDatabase(t, testExpiringAPIKeys) }

// testExpiringAPIKeys shows that only usable keys of the project that expire between the given times
// are returned, in the order in which they expire.
func testExpiringAPIKeys(t *testing.T, c store.Config) {
	ctx := t.Context()
	rows, p := fabricRows(t, c)
	other := newProject(t, rows)
	now := time.Now().Truncate(time.Microsecond).UTC()
	create := func(p fabric.Project, name string, expires time.Time) fabric.APIKey {
		t.Helper()
		key := newAPIKey(t, rows, p, name)
		in := fabric.APIKeyInput{Name: &name, Expires: &expires}
		updated, err := rows.UpdateAPIKey(ctx, p.ID, key.ID, in, nil, changeOf(key))
		if err != nil {
			t.Fatal(err)
		}
		return updated
	}

	create(p, "third", now.Add(3*time.Hour))
	create(p, "first", now.Add(time.Hour))
	create(p, "second", now.Add(2*time.Hour))
	create(p, "expired", now)
	create(p, "late", now.Add(24*time.Hour))
	create(p, "forever", time.Time{})
	create(other, "foreign", now.Add(time.Hour))
	revoked := create(p, "revoked", now.Add(time.Hour))
	r := changeOf(revoked)
	r.Kind = revocation.Key
	if err := rows.RevokeAPIKey(ctx, p.ID, r, now); err != nil {
		t.Fatal(err)
	}

	for most, want := range map[int][]string{2: {"first", "second"}, 9: {"first", "second", "third"}} {
		found, err := rows.ExpiringAPIKeys(ctx, p.ID, now, now.Add(24*time.Hour), most)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, k := range found {
			names = append(names, k.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("at most %d keys: the keys are %q, want %q", most, names, want)
		}
	}
}

func TestUpdateAPIKey(t *testing.T) { store.EachDatabase(t, testUpdateAPIKey) }

// testUpdateAPIKey shows that an update changes only the given fields, and that a revoked key or
// another project's key cannot be updated.
func testUpdateAPIKey(t *testing.T, c store.Config) {
	ctx := t.Context()
	rows, p := fabricRows(t, c)
	key := newAPIKey(t, rows, p, "hash")
	update := func(in fabric.APIKeyInput) fabric.APIKey {
		t.Helper()
		updated, err := rows.UpdateAPIKey(ctx, p.ID, key.ID, in, nil, changeOf(key))
		if err != nil {
			t.Fatal(err)
		}
		return updated
	}

	name := "other"
	expires := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	scopes := []fabric.Scope{fabric.Fax, fabric.Video}
	want := key
	for _, tt := range []struct {
		what string
		in   fabric.APIKeyInput
		set  func()
	}{
		{what: "nothing", set: func() {}},
		{what: "the name", in: fabric.APIKeyInput{Name: &name}, set: func() { want.Name = name }},
		{what: "the scopes", in: fabric.APIKeyInput{Scopes: scopes}, set: func() { want.Scopes = scopes }},
		{what: "the expiry", in: fabric.APIKeyInput{Expires: &expires}, set: func() { want.Expires = expires }},
	} {
		tt.set()
		if diff := cmp.Diff(want, update(tt.in)); diff != "" {
			t.Errorf("changing %s with UpdateAPIKey (-want +got):\n%s", tt.what, diff)
		}
	}

	never := time.Time{}
	if got := update(fabric.APIKeyInput{Expires: &never}); !got.Expires.IsZero() {
		t.Errorf("after UpdateAPIKey without an expiry, the key expires at %v, want never", got.Expires)
	}

	other := newProject(t, rows)
	rename := fabric.APIKeyInput{Name: &name}
	_, err := rows.UpdateAPIKey(ctx, other.ID, key.ID, rename, nil, changeOf(key))
	if !errors.Is(err, problem.Conflict) {
		t.Errorf("UpdateAPIKey of another project's key = %v, want a conflict", err)
	}
	if _, err := rows.FindAPIKey(ctx, other.ID, key.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindAPIKey of another project's key = %v, want not found", err)
	}

	if err := rows.RevokeAPIKey(ctx, p.ID, changeOf(key), time.Now()); err != nil {
		t.Fatal(err)
	}
	_, err = rows.UpdateAPIKey(ctx, p.ID, key.ID, rename, nil, changeOf(key))
	if !errors.Is(err, problem.Conflict) {
		t.Errorf("UpdateAPIKey of a revoked key = %v, want a conflict", err)
	}
}

func TestRotateAPIKey(t *testing.T) { store.EachDatabase(t, testRotateAPIKey) }

// testRotateAPIKey shows that only one of several concurrent rotations succeeds, that the old and the new
// secret find the same key, and that the last use of each is recorded.
func testRotateAPIKey(t *testing.T, c store.Config) {
	ctx := t.Context()
	rows, p := fabricRows(t, c)
	key := newAPIKey(t, rows, p, "first")
	newAPIKey(t, rows, p, "another")
	won := race(t, problem.Conflict, func(i int) error {
		next := key
		next.Hash = fmt.Sprint("next", i)
		next.Rotated = time.Now()
		next.OldHash = key.Hash
		next.OldUntil = time.Now().Add(time.Hour)
		return rows.RotateAPIKey(ctx, next, "first", nil, changeOf(key))
	})
	if won != 1 {
		t.Errorf("%d of %d concurrent rotations succeeded, want 1", won, crowd)
	}

	rotated, err := rows.FindAPIKeyByHash(ctx, "first")
	if err != nil {
		t.Fatal(err)
	}
	if rotated.ID != key.ID {
		t.Errorf("the old secret finds the key %s, want %s", rotated.ID, key.ID)
	}
	if rotated.OldHash != "first" {
		t.Errorf("the hash of the old secret is %q, want first", rotated.OldHash)
	}
	if rotated.Hash == "first" {
		t.Error("the hash of the new secret is that of the old one")
	}
	if !slices.Equal(rotated.Scopes, key.Scopes) {
		t.Errorf("the scopes are %v, want %v", rotated.Scopes, key.Scopes)
	}
	same, err := rows.FindAPIKeyByHash(ctx, rotated.Hash)
	if err != nil || same.ID != key.ID {
		t.Errorf("the new secret finds the key %q, %v, want %s", same.ID, err, key.ID)
	}
	if _, err := rows.FindAPIKeyByHash(ctx, ""); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindAPIKeyByHash of an empty hash = %v, want not found", err)
	}

	now := time.Now().Add(time.Minute).Truncate(time.Microsecond).UTC()
	for _, tt := range []struct {
		name    string
		hash    string
		used    time.Time
		oldUsed time.Time // when the old secret was last used
	}{
		{name: "the new secret", hash: rotated.Hash, used: now},
		{name: "the old secret", hash: "first", used: now, oldUsed: now},
		{name: "the old secret, reported late", hash: "first", used: now.Add(-time.Hour), oldUsed: now},
	} {
		if err := rows.TouchAPIKey(ctx, key.ID, tt.hash, tt.used); err != nil {
			t.Fatal(err)
		}
		touched, err := rows.FindAPIKey(ctx, p.ID, key.ID)
		if err != nil {
			t.Fatal(err)
		}
		if touched.LastUsed != now {
			t.Errorf("after a use of %s, the key was last used at %v, want %v", tt.name, touched.LastUsed, now)
		}
		if touched.OldUsed != tt.oldUsed {
			t.Errorf("after a use of %s, the old secret was last used at %v, want %v",
				tt.name, touched.OldUsed, tt.oldUsed)
		}
	}
}
