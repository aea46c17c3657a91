package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

const crowd = 50

// fabricRows returns a store with one project.
func fabricRows(t *testing.T, c store.Config) (*store.Store, fabric.Project) {
	t.Helper()
	c.Audit = storetest.Key()
	s, err := store.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, newProject(t, s)
}

func newProject(t *testing.T, s *store.Store) fabric.Project {
	t.Helper()
	p := fabric.Project{ID: newID(), Name: "one", RecordRate: 2500, MediaAuth: "public", Created: time.Now(),
		Updated: time.Now()}
	if err := s.CreateProject(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func subscriber(p fabric.Project, email, reference, name string) (fabric.Subscriber, fabric.Address) {
	s := fabric.Subscriber{ID: newID(), ProjectID: p.ID, Email: email, Reference: reference,
		Created: time.Now(), Updated: time.Now()}
	return s, fabric.Address{
		ID: newID(), ProjectID: p.ID, ResourceID: s.ID, Type: fabric.TypeSubscriber, Context: fabric.Private,
		Name:        name,
		DisplayName: name, Created: s.Created,
	}
}

// race calls do concurrently from many goroutines. It returns how many calls won, and the errors of
// the others.
func race(do func(i int) (bool, error)) (won int, errs []error) {
	var mu sync.Mutex
	var ready, done sync.WaitGroup
	ready.Add(crowd)
	for i := range crowd {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			ok, err := do(i)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			} else if ok {
				won++
			}
		})
	}

	done.Wait()
	return won, errs
}

func TestCreateSubscriberRace(t *testing.T) { store.EachDatabase(t, testCreateSubscriberRace) }

func testCreateSubscriberRace(t *testing.T, c store.Config) {
	tests := []struct {
		name string
		made func(p fabric.Project, i int) (fabric.Subscriber, fabric.Address)
	}{
		{"one reference", func(p fabric.Project, i int) (fabric.Subscriber, fabric.Address) {
			return subscriber(p, "", "ada", fmt.Sprint("ada", i))
		}},
		{"one email", func(p fabric.Project, i int) (fabric.Subscriber, fabric.Address) {
			return subscriber(p, "ada@example.com", "", fmt.Sprint("ada", i))
		}},
		{"one address", func(p fabric.Project, i int) (fabric.Subscriber, fabric.Address) {
			return subscriber(p, fmt.Sprintf("ada%d@example.com", i), "", "ada")
		}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows, p := fabricRows(t, c)
			ctx := context.Background()
			won, errs := race(func(i int) (bool, error) {
				s, a := tt.made(p, i)
				return true, rows.CreateSubscriber(ctx, s, a)
			})
			if won != 1 {
				t.Errorf("CreateSubscriber: %d of %d won, want 1", won, crowd)
			}

			for _, err := range errs {
				if !errors.Is(err, problem.Conflict) {
					t.Errorf("CreateSubscriber: got %v, want a conflict", err)
				}
			}

			all, err := rows.ListSubscribers(ctx, p.ID, page.Query{Size: crowd})
			if err != nil || len(all.Items) != 1 {
				t.Errorf("ListSubscribers = %d rows, %v, want 1 and nothing half-written", len(all.Items), err)
			}

			addresses, err := rows.ListAddresses(ctx, p.ID, fabric.AddressFilter{}, page.Query{Size: crowd})
			if err != nil || len(addresses.Items) != 1 {
				t.Errorf("ListAddresses = %d rows, %v, want 1", len(addresses.Items), err)
			}
		})
	}
}

func TestUniqueWithinProject(t *testing.T) { store.EachDatabase(t, testUniqueWithinProject) }

func testUniqueWithinProject(t *testing.T, c store.Config) {
	rows, p := fabricRows(t, c)
	for _, project := range []fabric.Project{p, newProject(t, rows)} {
		s, a := subscriber(project, "ada@example.com", "ada", "ada")
		if err := rows.CreateSubscriber(context.Background(), s, a); err != nil {
			t.Errorf("CreateSubscriber in project %s: %v", project.ID, err)
		}
	}

	for range 2 { // without email and reference: NULLs never conflict
		s, a := subscriber(p, "", "", newID())
		if err := rows.CreateSubscriber(context.Background(), s, a); err != nil {
			t.Errorf("CreateSubscriber without email and reference: %v", err)
		}
	}

	s, a := subscriber(fabric.Project{ID: newID()}, "ada@example.com", "", "ada")
	if err := rows.CreateSubscriber(context.Background(), s, a); !errors.Is(err, problem.NotFound) {
		t.Errorf("CreateSubscriber in an unknown project: got %v, want not found", err)
	}
}

func TestRotateFamily(t *testing.T) { store.EachDatabase(t, testRotateFamily) }

func testRotateFamily(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, p := fabricRows(t, c)
	family := newID()
	use := func(generation int64) fabric.FamilyUse {
		return fabric.FamilyUse{
			ID: family, ProjectID: p.ID, Generation: generation, Expires: time.Now().Add(time.Hour),
			Revocation: revocation.Revocation{Kind: revocation.Family, ID: family, Until: time.Now(),
				Expires: time.Now().Add(time.Hour)},
		}
	}

	revoked := func() int {
		found, _, err := rows.RevocationsSince(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}

	for generation := range int64(3) {
		if used, err := rows.RotateFamily(ctx, use(generation)); !used || err != nil {
			t.Fatalf("RotateFamily(%d) = %v, %v, want true", generation, used, err)
		}
	}
	if n := revoked(); n != 0 {
		t.Fatalf("%d revocations after valid uses, want 0", n)
	}

	for _, generation := range []int64{1, 3, 3, 0} { // generation 3 is used twice, which ends the family
		if used, err := rows.RotateFamily(ctx, use(generation)); used || err != nil {
			t.Errorf("RotateFamily(%d) after a second use = %v, %v, want false", generation, used, err)
		}
	}
	if n := revoked(); n != 1 {
		t.Errorf("%d revocations after second uses, want 1", n)
	}

	family = newID()
	if used, err := rows.RotateFamily(ctx, use(1)); used || err != nil {
		t.Errorf("RotateFamily(1) of an unknown family = %v, %v, want false", used, err)
	}
}

func TestRotateFamilyRace(t *testing.T) { store.EachDatabase(t, testRotateFamilyRace) }

func testRotateFamilyRace(t *testing.T, c store.Config) {
	for generation := range int64(2) {
		rows, p := fabricRows(t, c)
		u := fabric.FamilyUse{
			ID: newID(), ProjectID: p.ID, Expires: time.Now().Add(time.Hour),
			Revocation: revocation.Revocation{Kind: revocation.Family, ID: "f", Until: time.Now(),
				Expires: time.Now().Add(time.Hour)},
		}

		for ; u.Generation < generation; u.Generation++ {
			if used, err := rows.RotateFamily(context.Background(), u); !used || err != nil {
				t.Fatalf("RotateFamily = %v, %v, want true", used, err)
			}
		}

		won, errs := race(func(int) (bool, error) { return rows.RotateFamily(context.Background(), u) })
		if won != 1 || len(errs) > 0 {
			t.Errorf("RotateFamily(%d): %d of %d won with errors %v, want 1", generation, won, crowd, errs)
		}
	}
}

func TestSweepFamilies(t *testing.T) { store.EachDatabase(t, testSweepFamilies) }

func testSweepFamilies(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, p := fabricRows(t, c)
	late := fabric.FamilyUse{ID: newID(), ProjectID: p.ID, Expires: time.Now().Add(time.Hour)}
	next := fabric.FamilyUse{ID: late.ID, ProjectID: p.ID, Generation: 1, Expires: time.Now().Add(-time.Hour)}
	early := fabric.FamilyUse{ID: newID(), ProjectID: p.ID, Expires: time.Now().Add(-time.Hour)}
	for _, u := range []fabric.FamilyUse{late, next, early} {
		if used, err := rows.RotateFamily(ctx, u); !used || err != nil {
			t.Fatalf("RotateFamily = %v, %v, want true", used, err)
		}
	}

	if err := rows.SweepFamilies(ctx); err != nil {
		t.Fatal(err)
	}
	// The first token of this family has not expired, but must not become valid again.
	if used, err := rows.RotateFamily(ctx, late); used || err != nil {
		t.Errorf("RotateFamily of a family with valid tokens = %v, %v, want false", used, err)
	}

	if used, err := rows.RotateFamily(ctx, early); !used || err != nil {
		t.Errorf("RotateFamily of a swept family = %v, %v, want true", used, err)
	}
}

// TestPages reads a list in each order, forward and backward.
func TestPages(t *testing.T) { store.EachDatabase(t, testPages) }

func testPages(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, p := fabricRows(t, c)
	other := newProject(t, rows)
	names := []string{"d", "a", "g", "b", "f", "c", "e"}
	for _, name := range names {
		for _, project := range []fabric.Project{p, other} {
			s, a := subscriber(project, "", name, name)
			if err := rows.CreateSubscriber(ctx, s, a); err != nil {
				t.Fatal(err)
			}
		}
	}

	tests := []struct {
		filter fabric.AddressFilter
		want   []string // the names on each page of three items
	}{
		{fabric.AddressFilter{}, []string{"dag", "bfc", "e"}},
		{fabric.AddressFilter{Descending: true}, []string{"ecf", "bga", "d"}},
		{fabric.AddressFilter{ByName: true}, []string{"abc", "def", "g"}},
		{fabric.AddressFilter{ByName: true, Descending: true}, []string{"gfe", "dcb", "a"}},
		{fabric.AddressFilter{Name: "f"}, []string{"f"}},
		{fabric.AddressFilter{Type: fabric.TypeRoom}, []string{""}},
		{fabric.AddressFilter{DisplayName: "G"}, []string{"g"}},
		{fabric.AddressFilter{DisplayName: "%"}, []string{""}},
		{fabric.AddressFilter{IDs: []string{}}, []string{""}},
	}

	for _, tt := range tests {
		list := func(from string) (page.Page[fabric.Address], string) {
			t.Helper()
			found, err := rows.ListAddresses(ctx, p.ID, tt.filter, page.Query{Size: 3, From: from})
			if err != nil {
				t.Fatalf("ListAddresses(%+v): %v", tt.filter, err)
			}
			text := ""
			for _, a := range found.Items {
				text += a.Name
			}
			return found, text
		}

		var from []string
		at := ""
		for i, want := range tt.want {
			found, got := list(at)
			if got != want {
				t.Errorf("ListAddresses(%+v), page %d = %q, want %q", tt.filter, i, got, want)
			}

			if last := i == len(tt.want)-1; last != (found.Next == "") {
				t.Errorf("ListAddresses(%+v), page %d: Next = %q", tt.filter, i, found.Next)
			}
			if i > 0 {
				if _, before := list(found.Prev); before != tt.want[i-1] {
					t.Errorf("ListAddresses(%+v), before page %d = %q, want %q", tt.filter, i, before, tt.want[i-1])
				}
			}

			from = append(from, at)
			at = found.Next
		}

		if found, _ := list(from[0]); found.Prev != "" {
			t.Errorf("ListAddresses(%+v): the first page has Prev = %q", tt.filter, found.Prev)
		}
	}

	if _, err := rows.ListAddresses(ctx, p.ID, fabric.AddressFilter{ByName: true},
		page.Query{Size: 3, From: newID()}); !errors.Is(err, problem.Invalid) {
		t.Errorf("ListAddresses by name from a deleted row: got %v, want invalid", err)
	}
}

func TestDeleteProjectTakesAll(t *testing.T) { store.EachDatabase(t, testDeleteProjectTakesAll) }

func testDeleteProjectTakesAll(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, p := fabricRows(t, c)
	s, a := subscriber(p, "ada@example.com", "", "ada")
	key := fabric.APIKey{ID: newID(), ProjectID: p.ID, Hash: "hash", Scopes: []fabric.Scope{fabric.Voice},
		Created: time.Now()}
	end := revocation.Revocation{Kind: revocation.Project, ID: p.ID, Until: time.Now(),
		Expires: time.Now().Add(time.Hour)}

	if err := errors.Join(rows.CreateSubscriber(ctx, s, a), rows.CreateAPIKey(ctx, key, nil),
		rows.DeleteProject(ctx, end)); err != nil {
		t.Fatal(err)
	}

	_, err := rows.FindSubscriber(ctx, p.ID, s.ID)
	_, err2 := rows.FindAddress(ctx, p.ID, a.ID)
	_, err3 := rows.FindAPIKeyByHash(ctx, "hash")
	for _, err := range []error{err, err2, err3, rows.DeleteProject(ctx, end)} {
		if !errors.Is(err, problem.NotFound) {
			t.Errorf("after DeleteProject: got %v, want not found", err)
		}
	}
}
