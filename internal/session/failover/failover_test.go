package failover

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/session/redis"
	"github.com/selvage/selvage/internal/session/sessiontest"
	"github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/test/servers"
)

const (
	patient = time.Minute // a patience that a working Redis server does not exceed, even on a busy machine
	lasts   = time.Hour   // lifetime of entries that must not expire during a test
)

// A world is a Store whose primary is a Redis server, and whose fallback is a database.
type world struct {
	*Store
	redis *redis.Store
	sql   *sql.Store
	log   *lines
}

// newWorld returns a store whose primary is the Redis at url. patience is how long an operation
// waits for Redis; 0 means the default.
func newWorld(t testing.TB, url string, patience time.Duration) *world {
	t.Helper()
	primary, err := redis.Open(t.Context(), redis.Config{URL: url, Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, primary.Close)

	fallback, err := sql.Open(t.Context(), sql.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, fallback.Close)
	return join(t, primary, fallback)
}

// join returns a new store over existing stores, as if another process had opened it.
func join(t testing.TB, primary *redis.Store, fallback *sql.Store) *world {
	t.Helper()
	log := &lines{}
	s := New(primary, fallback, Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	closeAtEnd(t, s.Close)
	return &world{Store: s, redis: primary, sql: fallback, log: log}
}

func closeAtEnd(t testing.TB, close func() error) {
	t.Cleanup(func() {
		if err := close(); err != nil {
			t.Error(err)
		}
	})
}

// lines records log output.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// eventually waits until check returns nil.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		err := check()
		if err == nil {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("waited %v for %s: %v", time.Since(began), what, err)
		}
	}
}

func (w *world) away(t testing.TB) {
	t.Helper()
	eventually(t, "the breaker to open", func() error {
		if !w.State().Away {
			return errors.New("it is closed")
		}
		return nil
	})
}

func (w *world) back(t testing.TB) {
	t.Helper()
	eventually(t, "the breaker to close", func() error {
		if now := w.State(); now.Away {
			return fmt.Errorf("the breaker is open: %s", now.Cause)
		}
		return nil
	})
}

func (w *world) put(t testing.TB, id, value string) session.Key {
	t.Helper()
	k := session.Key{Kind: "login", ID: id}
	if err := w.Put(t.Context(), k, []byte(value), lasts); err != nil {
		t.Fatalf("Put = %v", err)
	}
	return k
}

// want checks that an entry has the given value; "" means that it must be absent.
func (w *world) want(t testing.TB, k session.Key, value string) {
	t.Helper()
	got, err := w.Get(t.Context(), k)
	checkEntry(t, "Get", k, got, err, value)
}

// wantTake takes an entry, and checks that it has the given value; "" means that it must be absent.
func (w *world) wantTake(t testing.TB, k session.Key, value string) {
	t.Helper()
	got, err := w.Take(t.Context(), k)
	checkEntry(t, "Take", k, got, err, value)
}

// checkEntry checks the result of reading an entry; the value "" means that it must be absent.
func checkEntry(t testing.TB, operation string, k session.Key, got []byte, err error, want string) {
	t.Helper()
	if want == "" {
		if !errors.Is(err, problem.NotFound) {
			t.Errorf("%s(%s) = %q, %v, want problem.NotFound", operation, k.ID, got, err)
		}
		return
	}
	if err != nil || string(got) != want {
		t.Errorf("%s(%s) = %q, %v, want %q", operation, k.ID, got, err, want)
	}
}

// TestStore runs the test suite while the primary is available, after an outage, during an outage,
// and while an outage begins.
func TestStore(t *testing.T) {
	t.Run("There", func(t *testing.T) {
		w := newWorld(t, servers.Redis(t), patient)
		sessiontest.Run(t, func(*testing.T) session.Store { return w })
		if log := w.log.String(); log != "" {
			t.Errorf("there was no outage, but the log is\n%s", log)
		}
		if until := w.State().Until; !until.IsZero() {
			t.Errorf("there was no outage, but entries linger until %v", until)
		}
	})

	t.Run("Back", func(t *testing.T) {
		w := newWorld(t, servers.Redis(t), patient)
		w.linger(time.Hour)
		sessiontest.Run(t, func(*testing.T) session.Store { return w })
		if log := w.log.String(); log != "" {
			t.Errorf("there was no outage, but the log is\n%s", log)
		}
		if w.State().Until.IsZero() {
			t.Error("no entries linger, want some until the end of the hour")
		}
	})

	t.Run("Away", func(t *testing.T) {
		w := newWorld(t, "redis://127.0.0.1:1", patient)
		w.away(t)
		sessiontest.Run(t, func(*testing.T) session.Store { return w })
	})

	t.Run("Going", func(t *testing.T) { // the breaker opens during the first cases
		w := newWorld(t, "redis://127.0.0.1:1", patient)
		sessiontest.Run(t, func(*testing.T) session.Store { return w })
	})
}

// count returns the number of operations that a backend has run.
func count(w *world, backend string) (n uint64) {
	for _, c := range w.Stats() {
		if c.Backend == backend {
			n += c.N
		}
	}
	return n
}

// TestHotPath shows that the fallback is not used while the primary is available and no entries
// linger.
func TestHotPath(t *testing.T) {
	w := newWorld(t, servers.Redis(t), patient)
	k := w.put(t, "1", "one")
	for range 10 {
		w.want(t, k, "one")
	}
	w.wantTake(t, k, "one")
	if n := count(w, "primary"); n != 12 {
		t.Errorf("the primary ran %d operations, want 12", n)
	}
	if n := count(w, "fallback"); n != 0 {
		t.Errorf("the fallback ran %d operations, want 0", n)
	}
}

// TestLog shows that an outage is logged in two lines, which contain its cause but no secrets.
func TestLog(t *testing.T) {
	r := servers.OwnRedis(t, "--requirepass", "hush")
	w := newWorld(t, r.URL, patient) // so long that only an unreachable server fails
	for range 2 {
		r.Kill(t)
		w.put(t, "1", "canary")
		w.away(t)
		for range 10 {
			w.put(t, "1", "canary")
		}
		r.Start(t)
		w.back(t)
	}

	log := w.log.String()
	for text, want := range map[string]int{"\n": 4, "is unavailable": 2, "is available again": 2} {
		if got := strings.Count(log, text); got != want {
			t.Errorf("the log of two outages contains %q %d times, want %d times:\n%s", text, got, want, log)
		}
	}
	if !strings.Contains(log, "refused") {
		t.Errorf("the log does not contain the cause, a refused connection:\n%s", log)
	}
	for _, secret := range []string{"hush", "canary"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log contains the secret %q:\n%s", secret, log)
		}
	}
}

// BenchmarkGet compares the store with its primary.
func BenchmarkGet(b *testing.B) {
	w := newWorld(b, servers.Redis(b), patient)
	k := w.put(b, "1", strings.Repeat("x", 400))
	for name, s := range map[string]session.Store{"Primary": w.redis, "Both": w} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Get(b.Context(), k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestProbes shows that after a single failed probe, the breaker stays closed and the probe is repeated
// immediately, and that two consecutive failed probes open the breaker.
func TestProbes(t *testing.T) {
	s := &Store{log: slog.New(slog.DiscardHandler), kick: make(chan struct{}, 1)}
	late := errors.New("too late")

	for i, step := range []struct {
		err      error
		away     bool
		repeated bool
	}{
		{err: late, away: false, repeated: true},
		{err: nil, away: false, repeated: false},
		{err: late, away: false, repeated: true},
		{err: late, away: true, repeated: false},
	} {
		s.probed(0, step.err)
		if got := s.State().Away; got != step.away {
			t.Errorf("step %d: away is %t, want %t", i, got, step.away)
		}

		repeated := false
		select {
		case <-s.kick:
			repeated = true
		default:
		}
		if repeated != step.repeated {
			t.Errorf("step %d: the probe is repeated immediately: %t, want %t", i, repeated, step.repeated)
		}
	}
}
