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
	if err := s.ChangeRing(t.Context(), nil, []keys.Record{key("a", keys.Current), key("b", keys.Next)}); err != nil {
		t.Fatal(err)
	}

	version, err := s.RingVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	down, up := key("a", keys.Retired), key("b", keys.Current)
	down.Retired, up.Activated = now, now
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			err := s.ChangeRing(context.Background(),
				[]keys.Move{{From: keys.Current, To: down}, {From: keys.Next, To: up}},
				[]keys.Record{key(fmt.Sprintf("c%d", i), keys.Next)})
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, problem.Conflict) {
				t.Errorf("ChangeRing = %v, want a conflict", err)
			}
		})
	}

	wg.Wait()
	all, err := s.RingKeys(t.Context())
	if err != nil || won.Load() != 1 || len(all) != 3 || all[0] != down || all[1] != up || all[2].State != keys.Next {
		t.Errorf("%d of 50 took the step and left %v, %v, want one, and %v, %v and a next key", won.Load(),
			all, err, down, up)
	}
	if got, err := s.RingVersion(t.Context()); err != nil || got != version+1 {
		t.Errorf("RingVersion = %d, %v, want %d: failed changes do not count", got, err, version+1)
	}

	if err := s.ChangeRing(t.Context(), nil, []keys.Record{key("d", keys.Current)}); !errors.Is(err, problem.Conflict) {
		t.Errorf("ChangeRing to a second current key = %v, want a conflict", err)
	}
	if err := s.SweepRing(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if all, err := s.RingKeys(t.Context()); err != nil || len(all) != 3 {
		t.Errorf("SweepRing before the key was retired leaves %v, %v, want three", all, err)
	}

	if err := s.SweepRing(t.Context(), now.Add(time.Microsecond)); err != nil {
		t.Fatal(err)
	}
	if all, err := s.RingKeys(t.Context()); err != nil || len(all) != 2 || all[0] != up {
		t.Errorf("SweepRing after it was retired leaves %v, %v, want two", all, err)
	}
	if got, err := s.RingVersion(t.Context()); err != nil || got <= version+1 {
		t.Errorf("RingVersion = %d, %v, want more than %d", got, err, version+1)
	}
}
