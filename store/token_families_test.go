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
	ada, address := subscriber(p, "ada@example.com", "", "ada")
	if err := rows.CreateSubscriber(t.Context(), ada, address); err != nil {
		t.Fatal(err)
	}

	f := families{
		Store:   rows,
		project: p,
		ada:     ada,
		first:   newID(),
		second:  newID(),
		now:     time.Now().Truncate(time.Microsecond).UTC(),
	}
	use := func(id, subscriberID string, generation int64, used time.Time) {
		t.Helper()
		wantRotated(t, rows, fabric.FamilyUse{
			ID:           id,
			ProjectID:    p.ID,
			SubscriberID: subscriberID,
			ClientID:     "app",
			Generation:   generation,
			Created:      f.now,
			Used:         used,
			Expires:      f.now.Add(time.Hour),
		})
	}

	use(f.first, ada.ID, 0, f.now)
	use(f.second, ada.ID, 0, f.now)
	use(f.first, ada.ID, 1, f.now.Add(time.Minute))
	use(newID(), "", 0, f.now)      // a family of a guest
	use(newID(), newID(), 0, f.now) // a family of an unknown subscriber
	return f
}

// list returns ada's families. The second family comes first.
func (f families) list(t *testing.T) []fabric.Family {
	t.Helper()
	found, err := f.ListFamilies(t.Context(), f.project.ID, f.ada.ID, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 2 {
		t.Fatalf("ListFamilies = %+v, want two families", found.Items)
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
	got := f.list(t)
	if got[0].ID != f.second {
		t.Errorf("the first family is %s, want %s", got[0].ID, f.second)
	}
	if got[1] != want {
		t.Errorf("the second family is %+v, want %+v", got[1], want)
	}

	none, err := f.ListFamilies(t.Context(), f.project.ID, "", page.Query{Size: 10})
	if err != nil || len(none.Items) != 0 {
		t.Errorf("ListFamilies of an unknown subscriber = %+v, %v, want none", none.Items, err)
	}
}

func TestRevokeFamily(t *testing.T) { store.EachDatabase(t, testRevokeFamily) }

// testRevokeFamily shows that revoking one of a subscriber's families, even repeatedly, leaves the
// other family valid. Revoking the subscriber ends all families.
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
	got := f.list(t)
	if got[0].Revoked {
		t.Error("after the first family was revoked, the second family is revoked, too")
	}
	if !got[1].Revoked {
		t.Error("the first family is not revoked")
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
	for _, family := range f.list(t) {
		if !family.Revoked {
			t.Errorf("after all families were revoked, %s is not", family.ID)
		}
	}
}

// wantRotated fails the test unless a token of a family can be used.
func wantRotated(t *testing.T, rows *store.Store, u fabric.FamilyUse) {
	t.Helper()
	used, err := rows.RotateFamily(t.Context(), u)
	if err != nil || !used {
		t.Fatalf("RotateFamily(%+v) = %v, %v, want true", u, used, err)
	}
}

// wantRefused fails the test unless a token of a family cannot be used.
func wantRefused(t *testing.T, rows *store.Store, u fabric.FamilyUse) {
	t.Helper()
	used, err := rows.RotateFamily(t.Context(), u)
	if err != nil || used {
		t.Errorf("RotateFamily(%+v) = %v, %v, want false", u, used, err)
	}
}

// familyUse returns the use of a family's token that expires in an hour. A second use of the token
// revokes the family.
func familyUse(p fabric.Project, id string, generation int64) fabric.FamilyUse {
	now := time.Now()
	return fabric.FamilyUse{
		ID:         id,
		ProjectID:  p.ID,
		Generation: generation,
		Expires:    now.Add(time.Hour),
		Revocation: revocation.Revocation{
			Kind:    revocation.Family,
			ID:      id,
			Until:   now,
			Expires: now.Add(time.Hour),
		},
	}
}

func TestRotateFamily(t *testing.T) { store.EachDatabase(t, testRotateFamily) }

// testRotateFamily shows that the tokens of a family can be used one after the other, and that the
// second use of a token ends the family.
func testRotateFamily(t *testing.T, c store.Config) {
	rows, p := fabricRows(t, c)
	revocations := func() int {
		t.Helper()
		found, _, err := rows.RevocationsSince(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}

	family := newID()
	for generation := range int64(3) {
		wantRotated(t, rows, familyUse(p, family, generation))
	}
	if n := revocations(); n != 0 {
		t.Fatalf("%d revocations after valid uses, want 0", n)
	}

	for _, generation := range []int64{1, 3, 3, 0} { // generation 1 is used a second time
		wantRefused(t, rows, familyUse(p, family, generation))
	}
	if n := revocations(); n != 1 {
		t.Errorf("%d revocations after second uses, want 1", n)
	}

	wantRefused(t, rows, familyUse(p, newID(), 1)) // the family is unknown
}

func TestRotateFamilyRace(t *testing.T) { store.EachDatabase(t, testRotateFamilyRace) }

func testRotateFamilyRace(t *testing.T, c store.Config) {
	notUsed := errors.New("not used")
	for newest := range int64(2) {
		rows, p := fabricRows(t, c)
		family := newID()
		for generation := range newest {
			wantRotated(t, rows, familyUse(p, family, generation))
		}

		won := race(t, notUsed, func(int) error {
			used, err := rows.RotateFamily(t.Context(), familyUse(p, family, newest))
			if err == nil && !used {
				return notUsed
			}
			return err
		})
		if won != 1 {
			t.Errorf("RotateFamily of generation %d: %d of %d concurrent calls succeed, want 1", newest, won, crowd)
		}
	}
}

func TestSweepFamilies(t *testing.T) { store.EachDatabase(t, testSweepFamilies) }

func testSweepFamilies(t *testing.T, c store.Config) {
	rows, p := fabricRows(t, c)
	late := fabric.FamilyUse{ID: newID(), ProjectID: p.ID, Expires: time.Now().Add(time.Hour)}
	next := fabric.FamilyUse{ID: late.ID, ProjectID: p.ID, Generation: 1, Expires: time.Now().Add(-time.Hour)}
	early := fabric.FamilyUse{ID: newID(), ProjectID: p.ID, Expires: time.Now().Add(-time.Hour)}
	for _, u := range []fabric.FamilyUse{late, next, early} {
		wantRotated(t, rows, u)
	}

	if err := rows.SweepFamilies(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The first token of this family has not expired, but must not become valid again.
	wantRefused(t, rows, late)
	wantRotated(t, rows, early) // swept, so this is a new family
}
