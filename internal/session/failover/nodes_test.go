package failover

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/test/servers"
)

// TestTakenOnce shows that no entry is taken twice, even if many callers take it while the connection to
// Redis is cut, loses responses, or works again.
func TestTakenOnce(t *testing.T) {
	r := servers.OwnRedis(t)
	line := newWire(t, r)
	w := newWorld(t, line.URL, 0)
	changes := []func(){line.Deafen, line.Mend, line.Cut, line.Mend, line.Mend}

	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for round := range 25 {
				k := w.put(t, fmt.Sprint(i, "-", round), "one")
				if i == 0 {
					changes[round%len(changes)]()
				}
				if n := takeOften(t, w, k); n > 1 {
					t.Errorf("%s was taken %d times, want at most once", k.ID, n)
				}
			}
		})
	}

	callers.Wait()
	line.Mend()
	w.back(t)
}

// takeOften takes an entry four times concurrently, and once more after that. It returns how many of
// these calls got the entry.
func takeOften(t *testing.T, w *world, k session.Key) int64 {
	var taken atomic.Int64
	take := func() error {
		_, err := w.Take(t.Context(), k)
		if err == nil {
			taken.Add(1)
		}
		return err
	}

	var takers sync.WaitGroup
	for range 4 {
		takers.Go(func() {
			if err := take(); err != nil && !errors.Is(err, problem.NotFound) {
				t.Errorf("Take = %v, want success or problem.NotFound", err)
			}
		})
	}
	takers.Wait()
	_ = take() // may fail while the wire is cut
	return taken.Load()
}

// TestTwoNodes shows that two nodes see the same entries while one of them is cut off from Redis.
func TestTwoNodes(t *testing.T) {
	r := servers.OwnRedis(t)
	line := newWire(t, r)
	cut := newWorld(t, line.URL, 0)
	near := newWorld(t, r.URL, patient)
	near = join(t, near.redis, cut.sql)

	near.put(t, "1", "old")
	line.Cut()
	k := cut.put(t, "1", "new")
	eventually(t, "the other node to learn of the outage", func() error {
		if near.State().Until.IsZero() {
			return errors.New("its state shows no outage")
		}
		return nil
	})

	near.want(t, k, "new")

	again := join(t, near.redis, cut.sql) // a new process knows immediately that the fallback lingers
	again.want(t, k, "new")
	again.wantTake(t, k, "new")
	near.wantTake(t, k, "")
	cut.wantTake(t, k, "")

	near.put(t, "1", "newer")
	line.Mend()
	cut.back(t)
	cut.want(t, k, "newer")
	if err := near.Delete(t.Context(), k); err != nil {
		t.Errorf("Delete = %v, want success", err)
	}
	cut.want(t, k, "")
}

// TestSwappedAfterwards shows that swapping an entry from an outage repeatedly after the outage does not
// make the fallback linger longer.
func TestSwappedAfterwards(t *testing.T) {
	w := newWorld(t, servers.Redis(t), patient)
	w.linger(time.Minute)
	k := session.Key{Kind: "online", ID: "1"}
	if err := w.sql.Put(t.Context(), k, []byte("0"), time.Minute); err != nil {
		t.Fatal(err)
	}

	until := w.State().Until
	for i := range 5 {
		old, next := fmt.Append(nil, i), fmt.Append(nil, i+1)
		if err := w.CompareAndSwap(t.Context(), k, old, next, time.Hour); err != nil {
			t.Errorf("CompareAndSwap = %v, want success", err)
		}
	}

	w.want(t, k, "5")
	if got := w.State().Until; got != until {
		t.Errorf("after the swaps, the fallback lingers until %v, want %v as before", got, until)
	}
}
