package store_test

import (
	"context"
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

// TestChangeRing shows that if fifty nodes take the same step concurrently, one succeeds and the
// others change nothing.
func TestChangeRing(t *testing.T) { store.EachDatabase(t, testChangeRing) }

func testChangeRing(t *testing.T, c store.Config) {
	s, _ := fabricRows(t, c)
	now := time.Now().UTC().Truncate(time.Microsecond)
	key := func(kid string, state keys.State) keys.Record {
		return keys.Record{Kid: kid, Use: keys.ES256, State: state, Sealed: "sealed", Created: now}
	}
	first := []keys.Record{key("a", keys.Current), key("b", keys.Next)}
	if err := s.ChangeRing(t.Context(), nil, first); err != nil {
		t.Fatal(err)
	}

	version := ringVersion(t, s)

	retired := key("a", keys.Retired)
	retired.Retired = now
	activated := key("b", keys.Current)
	activated.Activated = now
	step := []keys.Move{
		{From: keys.Current, To: retired},
		{From: keys.Next, To: activated},
	}
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		next := key(fmt.Sprintf("c%d", i), keys.Next)
		wg.Go(func() {
			err := s.ChangeRing(context.Background(), step, []keys.Record{next})
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, problem.Conflict):
				t.Errorf("ChangeRing = %v, want a conflict", err)
			}
		})
	}
	wg.Wait()

	if n := won.Load(); n != 1 {
		t.Errorf("%d of 50 took the step, want one", n)
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

	second := []keys.Record{key("d", keys.Current)}
	if err := s.ChangeRing(t.Context(), nil, second); !errors.Is(err, problem.Conflict) {
		t.Errorf("ChangeRing to a second current key = %v, want a conflict", err)
	}
	if err := s.SweepRing(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if ring := ringKeys(t, s); len(ring) != 3 {
		t.Errorf("SweepRing before the key was retired leaves %+v, want three keys", ring)
	}

	if err := s.SweepRing(t.Context(), now.Add(time.Microsecond)); err != nil {
		t.Fatal(err)
	}
	ring = ringKeys(t, s)
	if len(ring) != 2 {
		t.Fatalf("SweepRing after the key was retired leaves %+v, want two keys", ring)
	}
	if ring[0] != activated {
		t.Errorf("SweepRing leaves %+v first, want %+v", ring[0], activated)
	}
	if got := ringVersion(t, s); got <= version+1 {
		t.Errorf("RingVersion = %d, want more than %d", got, version+1)
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
