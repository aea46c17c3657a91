package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store"
)

func apiKey(t *testing.T, rows *store.Store, p fabric.Project, hash string) fabric.APIKey {
	t.Helper()
	k := fabric.APIKey{
		ID:        newID(),
		ProjectID: p.ID,
		Name:      "key",
		Hash:      hash,
		Scopes:    []fabric.Scope{fabric.Voice},
		Created:   time.Now().Truncate(time.Microsecond),
	}
	if err := rows.CreateAPIKey(context.Background(), k, nil); err != nil {
		t.Fatal(err)
	}
	return k
}

func news(k fabric.APIKey) revocation.Revocation {
	return revocation.Revocation{
		Kind:    revocation.KeyChange,
		ID:      k.ID,
		Until:   time.Now(),
		Expires: time.Now().Add(time.Hour),
	}
}

func TestUpdateAPIKey(t *testing.T) { store.EachDatabase(t, testUpdateAPIKey) }

func testUpdateAPIKey(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, p := fabricRows(t, c)
	k := apiKey(t, rows, p, "hash")
	name, at, never := "other", time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC(), time.Time{}
	for i, in := range []fabric.APIKeyInput{{}, {Name: &name},
		{Scopes: []fabric.Scope{fabric.Fax, fabric.Video}}, {Expires: &at}} {
		got, err := rows.UpdateAPIKey(ctx, p.ID, k.ID, in, nil, news(k))
		if err != nil || got.Hash != "hash" || (got.Name == name) != (i > 0) ||
			(len(got.Scopes) == 2) != (i > 1) || (got.Expires == at) != (i > 2) {
			t.Errorf("UpdateAPIKey(%+v) = %+v, %v, want only the given fields changed", in, got, err)
		}
	}

	if got, err := rows.UpdateAPIKey(ctx, p.ID, k.ID,
		fabric.APIKeyInput{Expires: &never}, nil, news(k)); err != nil || !got.Expires.IsZero() {
		t.Errorf("UpdateAPIKey without an expiry = %+v, %v, want no expiry", got, err)
	}
	other := newProject(t, rows)
	_, err := rows.UpdateAPIKey(ctx, other.ID, k.ID, fabric.APIKeyInput{Name: &name}, nil, news(k))
	_, err2 := rows.FindAPIKey(ctx, other.ID, k.ID)
	if !errors.Is(err, problem.Conflict) || !errors.Is(err2, problem.NotFound) {
		t.Errorf("another project's key: UpdateAPIKey = %v, FindAPIKey = %v, want conflict, not found", err, err2)
	}

	if err := rows.RevokeAPIKey(ctx, p.ID, news(k), time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := rows.UpdateAPIKey(ctx, p.ID, k.ID,
		fabric.APIKeyInput{Name: &name}, nil, news(k)); !errors.Is(err, problem.Conflict) {
		t.Errorf("UpdateAPIKey of a revoked key = %v, want a conflict", err)
	}
}

func TestRotateAPIKey(t *testing.T) { store.EachDatabase(t, testRotateAPIKey) }

func testRotateAPIKey(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, p := fabricRows(t, c)
	k := apiKey(t, rows, p, "first")
	apiKey(t, rows, p, "another")
	won, errs := race(func(i int) (bool, error) {
		next := k
		next.Hash, next.Rotated = fmt.Sprint("next", i), time.Now()
		next.OldHash, next.OldUntil = k.Hash, time.Now().Add(time.Hour)
		err := rows.RotateAPIKey(ctx, next, "first", nil, news(k))
		if errors.Is(err, problem.Conflict) {
			return false, nil
		}
		return err == nil, err
	})
	if won != 1 || len(errs) > 0 {
		t.Errorf("RotateAPIKey: %d of %d won with errors %v, want 1", won, crowd, errs)
	}

	got, err := rows.FindAPIKeyByHash(ctx, "first")
	if err != nil || got.ID != k.ID || got.OldHash != "first" || got.Hash == "first" ||
		!slices.Equal(got.Scopes, k.Scopes) {
		t.Errorf("FindAPIKeyByHash of the old secret = %+v, %v, want the key with both secrets", got, err)
	}
	if same, err := rows.FindAPIKeyByHash(ctx, got.Hash); err != nil || same.ID != k.ID {
		t.Errorf("FindAPIKeyByHash of the new secret = %+v, %v, want the same key", same, err)
	}

	if _, err := rows.FindAPIKeyByHash(ctx, ""); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindAPIKeyByHash of an unknown secret = %v, want not found", err)
	}
	at := time.Now().Add(time.Minute).Truncate(time.Microsecond).UTC()
	for _, use := range []struct {
		hash string
		at   time.Time
		old  bool
	}{{got.Hash, at, false}, {"first", at, true}, {"first", at.Add(-time.Hour), true}} {
		if err := rows.TouchAPIKey(ctx, k.ID, use.hash, use.at); err != nil {
			t.Fatal(err)
		}
		if touched, err := rows.FindAPIKey(ctx, p.ID, k.ID); err != nil || touched.LastUsed != at ||
			(touched.OldUsed == at) != use.old {
			t.Errorf("after TouchAPIKey of %q: %+v, %v, want the last use", use.hash, touched, err)
		}
	}
}
