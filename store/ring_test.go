package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

// TestChangeRing shows that if fifty nodes take the same step concurrently, only one succeeds and the
// others change nothing.
func TestChangeRing(t *testing.T) { store.EachDatabase(t, testChangeRing) }

func testChangeRing(t *testing.T, c store.Config) {
	s, _ := fabricRows(t, c)
	addKeys(t, s, ringKey("a", keys.Current), ringKey("b", keys.Next))
	version := ringVersion(t, s)

	retired := ringKey("a", keys.Retired)
	retired.Retired = ringTime
	activated := ringKey("b", keys.Current)
	activated.Activated = ringTime
	step := []keys.Move{
		{From: keys.Current, To: retired},
		{From: keys.Next, To: activated},
	}

	var won atomic.Int64
	var nodes sync.WaitGroup
	for i := range 50 {
		next := ringKey(fmt.Sprintf("c%d", i), keys.Next)
		nodes.Go(func() {
			err := s.ChangeRing(t.Context(), step, []keys.Record{next})
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, problem.Conflict):
				t.Errorf("ChangeRing = %v, want a conflict", err)
			}
		})
	}
	nodes.Wait()

	if n := won.Load(); n != 1 {
		t.Errorf("%d of 50 nodes took the step, want only one", n)
	}
	ring := ringKeys(t, s)
	if len(ring) != 3 {
		t.Fatalf("the step left %+v, want three keys", ring)
	}
	if ring[0] != retired {
		t.Errorf("the first key is %+v, want %+v", ring[0], retired)
	}
	if ring[1] != activated {
		t.Errorf("the second key is %+v, want %+v", ring[1], activated)
	}
	if ring[2].State != keys.Next {
		t.Errorf("the state of the third key is %v, want %v", ring[2].State, keys.Next)
	}
	if got, want := ringVersion(t, s), version+1; got != want {
		t.Errorf("RingVersion = %d, want %d: failed changes do not count", got, want)
	}
}

// TestOneCurrentKey shows that a ring cannot get a second current key for the same use.
func TestOneCurrentKey(t *testing.T) {
	store.EachDatabase(t, func(t *testing.T, c store.Config) {
		s, _ := fabricRows(t, c)
		addKeys(t, s, ringKey("a", keys.Current))

		err := s.ChangeRing(t.Context(), nil, []keys.Record{ringKey("b", keys.Current)})
		if !errors.Is(err, problem.Conflict) {
			t.Errorf("ChangeRing = %v, want a conflict", err)
		}
		if ring := ringKeys(t, s); len(ring) != 1 {
			t.Errorf("the ring is %+v, want one key", ring)
		}
	})
}

// TestSweepRing shows that SweepRing deletes the keys that were retired before its time, and that it
// raises the version of the ring.
func TestSweepRing(t *testing.T) {
	store.EachDatabase(t, func(t *testing.T, c store.Config) {
		s, _ := fabricRows(t, c)
		retired, current := ringKey("a", keys.Retired), ringKey("b", keys.Current)
		retired.Retired = ringTime
		addKeys(t, s, retired, current)
		version := ringVersion(t, s)

		if err := s.SweepRing(t.Context(), ringTime); err != nil {
			t.Fatal(err)
		}
		if ring := ringKeys(t, s); len(ring) != 2 {
			t.Errorf("the sweep at the time of retirement leaves %+v, want both keys", ring)
		}

		if err := s.SweepRing(t.Context(), ringTime.Add(time.Microsecond)); err != nil {
			t.Fatal(err)
		}
		ring := ringKeys(t, s)
		if len(ring) != 1 || ring[0] != current {
			t.Errorf("the sweep after the retirement leaves %+v, want only %+v", ring, current)
		}
		if got := ringVersion(t, s); got <= version {
			t.Errorf("RingVersion = %d, want more than %d", got, version)
		}
	})
}

// ringTime is when the keys of these tests were created.
var ringTime = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func ringKey(kid string, state keys.State) keys.Record {
	return keys.Record{
		Kid:     kid,
		Use:     keys.ES256,
		State:   state,
		Sealed:  "sealed",
		Created: ringTime,
	}
}

// addKeys adds keys to a ring.
func addKeys(t *testing.T, s *store.Store, added ...keys.Record) {
	t.Helper()
	if err := s.ChangeRing(t.Context(), nil, added); err != nil {
		t.Fatal(err)
	}
}

func ringKeys(t *testing.T, s *store.Store) []keys.Record {
	t.Helper()
	ring, err := s.RingKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func ringVersion(t *testing.T, s *store.Store) int64 {
	t.Helper()
	version, err := s.RingVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return version
}
