package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// fabricRows returns a store with one project.
func fabricRows(t *testing.T, c store.Config) (*store.Store, fabric.Project) {
	t.Helper()
	c.Audit = storetest.Key()
	s, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, newProject(t, s)
}

func newProject(t *testing.T, s *store.Store) fabric.Project {
	t.Helper()
	now := time.Now()
	p := fabric.Project{
		ID:         newID(),
		Name:       "one",
		RecordRate: 2500,
		MediaAuth:  "public",
		Created:    now,
		Updated:    now,
	}
	if err := s.CreateProject(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// subscriber returns a subscriber and its address, which have not been created yet.
func subscriber(p fabric.Project, email, reference, name string) (fabric.Subscriber, fabric.Address) {
	now := time.Now()
	sub := fabric.Subscriber{
		ID:        newID(),
		ProjectID: p.ID,
		Email:     email,
		Reference: reference,
		Created:   now,
		Updated:   now,
	}
	address := fabric.Address{
		ID:          newID(),
		ProjectID:   p.ID,
		ResourceID:  sub.ID,
		Type:        fabric.TypeSubscriber,
		Context:     fabric.Private,
		Name:        name,
		DisplayName: name,
		Created:     now,
	}
	return sub, address
}

// crowd is the number of goroutines in a race.
const crowd = 50

// race calls do from many goroutines at the same time, and returns how many calls succeeded. The
// test fails unless all other calls return the error lost.
func race(t *testing.T, lost error, do func(i int) error) (won int) {
	t.Helper()
	var ready, done sync.WaitGroup
	ready.Add(crowd)
	errs := make([]error, crowd)
	for i := range errs {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			errs[i] = do(i)
		})
	}
	done.Wait()

	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, lost):
			t.Errorf("a concurrent call failed with %v, want %v", err, lost)
		}
	}
	return won
}
