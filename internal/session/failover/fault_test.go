package failover

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/test/servers"
)

// A fault is a temporary failure of Redis.
type fault struct {
	name       string
	begin, end func(t *testing.T, r *servers.RedisServer)
	forgets    bool // Redis loses its entries
}

var faults = []fault{
	{
		name:  "Killed",
		begin: func(t *testing.T, r *servers.RedisServer) { r.Kill(t) },
		end:   func(t *testing.T, r *servers.RedisServer) { r.Start(t) },
	},
	{
		name:    "Emptied",
		begin:   func(t *testing.T, r *servers.RedisServer) { r.Kill(t) },
		end:     func(t *testing.T, r *servers.RedisServer) { r.StartEmpty(t) },
		forgets: true,
	},
	{
		name:  "Stopped",
		begin: func(t *testing.T, r *servers.RedisServer) { r.Pause(t) },
		end:   func(t *testing.T, r *servers.RedisServer) { r.Resume(t) },
	},
	{
		name:  "Sleeping",
		begin: func(t *testing.T, r *servers.RedisServer) { go r.CLI(t, "DEBUG", "SLEEP", "20") },
		end:   func(*testing.T, *servers.RedisServer) {},
	},
	{
		name:  "Paused",
		begin: func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "CLIENT", "PAUSE", "20000", "ALL") },
		end:   func(*testing.T, *servers.RedisServer) {},
	},
	{
		name:  "ReadOnly",
		begin: func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "REPLICAOF", "127.0.0.1", "1") },
		end:   func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "REPLICAOF", "NO", "ONE") },
	},
	{
		name:  "Full",
		begin: func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "CONFIG", "SET", "maxmemory", "1mb") },
		end:   func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "CONFIG", "SET", "maxmemory", "0") },
	},
	{
		name: "Locked",
		begin: func(t *testing.T, r *servers.RedisServer) {
			r.CLI(t, "ACL", "SETUSER", "default", "-@write", "-eval", "-evalsha")
		},
		end: func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "ACL", "SETUSER", "default", "+@all") },
	},
}

// TestFaults shows that no operation fails during any outage in faults, and that afterwards each
// entry reflects what was written, deleted, taken or added during the outage.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := servers.OwnRedis(t)
			testOutage(t, newWorld(t, r.URL, 0), r, f)
		})
	}
}

func testOutage(t *testing.T, w *world, r *servers.RedisServer, f fault) {
	stays, changed := w.put(t, "stays", "old"), w.put(t, "changed", "old")
	deleted, taken := w.put(t, "deleted", "old"), w.put(t, "taken", "old")
	jti, tries := session.Key{Kind: "jti", ID: "1"}, session.Key{Kind: "tries", ID: "1"}
	f.begin(t, r)

	// The cause is read during the outage, because some faults end by themselves.
	var cause string
	eventually(t, "the breaker to open", func() error {
		w.put(t, "changed", "new")
		state := w.State()
		if !state.Away {
			return errors.New("it is closed")
		}
		cause = state.Cause
		return nil
	})
	w.put(t, "changed", "new")
	if cause == "" {
		t.Error("the outage has no cause")
	}
	if strings.Contains(cause, "stays") {
		t.Errorf("the outage has the cause %q, want a cause that names no entry", cause)
	}

	w.want(t, changed, "new")
	if err := w.Delete(t.Context(), deleted); err != nil {
		t.Errorf("Delete = %v, want success", err)
	}

	w.put(t, "taken", "new")
	w.wantTake(t, taken, "new")
	w.wantTake(t, taken, "")
	if err := w.Add(t.Context(), jti, nil, lasts); err != nil {
		t.Errorf("Add = %v, want success", err)
	}
	if err := w.CompareAndSwap(t.Context(), changed, []byte("new"), []byte("newer"), lasts); err != nil {
		t.Errorf("CompareAndSwap = %v, want success", err)
	}

	for range 3 {
		if n, err := w.Incr(t.Context(), tries, lasts); err != nil {
			t.Errorf("Incr = %d, %v, want success", n, err)
		}
	}
	written := w.put(t, "written", "new")

	f.end(t, r)
	w.back(t)
	if f.forgets {
		w.want(t, stays, "")
	} else {
		w.want(t, stays, "old")
	}

	w.want(t, written, "new")
	w.want(t, changed, "newer")
	w.want(t, deleted, "")
	w.wantTake(t, deleted, "")
	w.wantTake(t, taken, "")

	if err := w.Add(t.Context(), jti, nil, lasts); !errors.Is(err, problem.Conflict) {
		t.Errorf("a second Add = %v, want problem.Conflict", err)
	}
	for _, k := range []session.Key{deleted, taken} {
		err := w.CompareAndSwap(t.Context(), k, []byte("old"), []byte("x"), lasts)
		if !errors.Is(err, problem.NotFound) {
			t.Errorf("CompareAndSwap of a deleted entry = %v, want problem.NotFound", err)
		}
		if err := w.Add(t.Context(), k, []byte("again"), lasts); err != nil {
			t.Errorf("Add of a deleted entry = %v, want success", err)
		}
		w.want(t, k, "again")
	}

	w.put(t, "written", "newest")
	w.wantTake(t, written, "newest")
	w.wantTake(t, written, "")
}

// TestSlow shows that if responses arrive too late, entries may seem absent, but no caller gets the
// value of another entry.
func TestSlow(t *testing.T) {
	r := servers.OwnRedis(t)
	w := newWorld(t, r.URL, 0)

	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			for round := range 10 {
				value := fmt.Sprintf("%d in round %d", i, round)
				got, err := w.Get(t.Context(), w.put(t, value, value))
				if err != nil && !errors.Is(err, problem.NotFound) {
					t.Errorf("Get = %v, want success or problem.NotFound", err)
				}
				if err == nil && string(got) != value {
					t.Errorf("Get = %q, want %q", got, value)
				}
				if i == 0 && round%3 == 0 {
					r.CLI(t, "CLIENT", "PAUSE", "400", "ALL")
				}
			}
		})
	}
	callers.Wait()
}

// TestFlushed shows that emptying Redis does not count as an outage if Redis remains available.
func TestFlushed(t *testing.T) {
	r := servers.OwnRedis(t)
	w := newWorld(t, r.URL, patient)
	k := w.put(t, "1", "one")

	r.CLI(t, "FLUSHALL")
	w.want(t, k, "")
	w.wantTake(t, k, "")
	w.put(t, "1", "two")
	w.wantTake(t, k, "two")

	if state := w.State(); state.Away {
		t.Errorf("the state is %+v, want no outage", state)
	}
	if log := w.log.String(); log != "" {
		t.Errorf("there was no outage, but the log is\n%s", log)
	}
}

// TestEvicting shows that no operation fails if Redis is full and evicts entries; only those entries are
// lost.
func TestEvicting(t *testing.T) {
	r := servers.OwnRedis(t, "--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random")
	w := newWorld(t, r.URL, patient)
	var evicted int
	for i := range 300 {
		k := w.put(t, fmt.Sprint(i), strings.Repeat("x", 32<<10))
		earlier := session.Key{Kind: k.Kind, ID: fmt.Sprint(i / 2)}
		_, err := w.Get(t.Context(), earlier)
		if errors.Is(err, problem.NotFound) {
			evicted++
			continue
		}
		if err != nil {
			t.Fatalf("Get = %v, want success or problem.NotFound", err)
		}
	}

	if evicted == 0 {
		t.Error("no entry was evicted, want some")
	}
	if state := w.State(); state.Away {
		t.Errorf("the state is %+v, want no outage", state)
	}
}

// TestOneMaster shows that the breaker opens if one master of a Cluster becomes unavailable, even
// if there are hardly any operations.
func TestOneMaster(t *testing.T) {
	c := servers.OwnCluster(t, 0)
	w := newWorld(t, c.URL, 0)

	c.Nodes[0].Pause(t)
	w.away(t)
	w.put(t, "1", "one")

	c.Nodes[0].Resume(t)
	w.back(t)
	w.want(t, session.Key{Kind: "login", ID: "1"}, "one")
}

// TestLostAnswers shows that if Redis runs commands but the answers are lost, entries may be in
// both stores, but can still be taken and added only once.
func TestLostAnswers(t *testing.T) {
	r := servers.OwnRedis(t)
	line := newWire(t, r)
	w := newWorld(t, line.URL, 0)
	var taken session.Key

	// A slow machine may have to reconnect. In that case the command is not sent, so try again.
	for try := 1; ; try++ {
		line.Deafen()
		taken = w.put(t, fmt.Sprint("taken", try), "one")
		if r.CLI(t, "EXISTS", taken.String()) == "1" {
			break
		}
		if try == 10 {
			t.Fatal("Redis does not run the command")
		}
		w.away(t)
		line.Mend()
		w.back(t)
	}

	jti := session.Key{Kind: "jti", ID: "1"}
	if err := w.Add(t.Context(), jti, nil, lasts); err != nil {
		t.Errorf("Add = %v, want success", err)
	}

	deleted := w.put(t, "deleted", "one")
	if err := w.Delete(t.Context(), deleted); err != nil {
		t.Errorf("Delete = %v, want success", err)
	}
	r.CLI(t, "SET", deleted.String(), "login:one") // simulate a command that arrives late

	line.Mend()
	w.away(t)
	w.back(t)

	w.wantTake(t, taken, "one")
	w.wantTake(t, taken, "")
	w.want(t, deleted, "")
	if err := w.Add(t.Context(), jti, nil, lasts); !errors.Is(err, problem.Conflict) {
		t.Errorf("a second Add = %v, want problem.Conflict", err)
	}
}
