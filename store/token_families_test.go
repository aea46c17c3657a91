package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store"
)

// families holds ada and her two families of refresh tokens. The first family was used twice. A
// guest and an unknown subscriber have one family each.
type families struct {
	*store.Store
	project       fabric.Project
	ada           fabric.Subscriber
	first, second string
	now           time.Time
}

func newFamilies(t *testing.T, c store.Config) families {
	t.Helper()
	rows, p := fabricRows(t, c)
	ada, a := subscriber(p, "ada@example.com", "", "ada")
	if err := rows.CreateSubscriber(t.Context(), ada, a); err != nil {
		t.Fatal(err)
	}

	f := families{rows, p, ada, newID(), newID(), time.Now().Truncate(time.Microsecond).UTC()}
	use := func(id, subscriberID string, generation int64, used time.Time) {
		t.Helper()
		u := fabric.FamilyUse{
			ID:           id,
			ProjectID:    p.ID,
			SubscriberID: subscriberID,
			ClientID:     "app",
			Generation:   generation,
			Created:      f.now,
			Used:         used,
			Expires:      f.now.Add(time.Hour),
		}
		if ok, err := rows.RotateFamily(t.Context(), u); !ok || err != nil {
			t.Fatalf("RotateFamily(%+v) = %v, %v", u, ok, err)
		}
	}

	use(f.first, ada.ID, 0, f.now)
	use(f.second, ada.ID, 0, f.now)
	use(f.first, ada.ID, 1, f.now.Add(time.Minute))
	use(newID(), "", 0, f.now)      // of a guest
	use(newID(), newID(), 0, f.now) // of another subscriber
	return f
}

// list returns ada's families. The second one comes first.
func (f families) list(t *testing.T) []fabric.Family {
	t.Helper()
	found, err := f.ListFamilies(t.Context(), f.project.ID, f.ada.ID, page.Query{Size: 10})
	if err != nil || len(found.Items) != 2 {
		t.Fatalf("ListFamilies = %+v, %v, want two", found, err)
	}
	return found.Items
}

func TestListFamilies(t *testing.T) { store.EachDatabase(t, testListFamilies) }

func testListFamilies(t *testing.T, c store.Config) {
	f := newFamilies(t, c)
	want := fabric.Family{
		ID:        f.first,
		ClientID:  "app",
		Created:   f.now,
		Used:      f.now.Add(time.Minute),
		Refreshes: 2,
		Expires:   f.now.Add(time.Hour),
	}
	if got := f.list(t); got[0].ID != f.second || got[1] != want {
		t.Errorf("ListFamilies = %+v, want %s and %+v", got, f.second, want)
	}

	got, err := f.ListFamilies(t.Context(), f.project.ID, "", page.Query{Size: 10})
	if err != nil || len(got.Items) != 0 {
		t.Errorf("ListFamilies of an unknown subscriber = %+v, %v, want none", got, err)
	}
}

func TestRevokeFamily(t *testing.T) { store.EachDatabase(t, testRevokeFamily) }

// testRevokeFamily shows that revoking one of a subscriber's families, even repeatedly, leaves the
// other one valid. Revoking the subscriber ends all families.
func testRevokeFamily(t *testing.T, c store.Config) {
	f, ctx := newFamilies(t, c), t.Context()
	end := func(id string) revocation.Revocation {
		return revocation.Revocation{Kind: revocation.Family, ID: id, Until: f.now, Expires: f.now.Add(time.Hour)}
	}
	for _, err := range []error{
		f.RevokeFamily(ctx, f.project.ID, newID(), end(f.first)),
		f.RevokeFamily(ctx, newID(), f.ada.ID, end(f.first)),
		f.RevokeFamily(ctx, f.project.ID, f.ada.ID, end(newID())),
	} {
		if !errors.Is(err, problem.NotFound) {
			t.Errorf("RevokeFamily of another subscriber = %v, want not found", err)
		}
	}

	for range 2 {
		if err := f.RevokeFamily(ctx, f.project.ID, f.ada.ID, end(f.first)); err != nil {
			t.Errorf("RevokeFamily = %v", err)
		}
	}
	if got := f.list(t); got[0].Revoked || !got[1].Revoked {
		t.Errorf("after one family was revoked: %+v, want only the first revoked", got)
	}

	all := revocation.Revocation{
		Kind:    revocation.Subscriber,
		ID:      f.ada.ID,
		Until:   f.now,
		Expires: f.now.Add(time.Hour),
	}
	if _, err := f.UpdateSubscriber(ctx, f.project.ID, f.ada.ID, fabric.SubscriberChange{}, f.now, &all); err != nil {
		t.Fatal(err)
	}
	if got := f.list(t); !got[0].Revoked || !got[1].Revoked {
		t.Errorf("after all families were revoked: %+v, want both revoked", got)
	}
}
