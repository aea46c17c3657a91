package failover

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
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
	patient = time.Minute // longer than a busy machine makes callers wait for a Redis that works
	lasts   = time.Hour   // lifetime of entries that must not expire during a test
)

// A world is a Store whose primary is a Redis, and whose fallback is a database.
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
	r, err := redis.Open(t.Context(), redis.Config{URL: url, Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, r.Close)

	db, err := sql.Open(t.Context(), sql.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, db.Close)
	return join(t, r, db)
}

// join returns a new store over existing stores, as if another process had opened it.
func join(t testing.TB, r *redis.Store, db *sql.Store) *world {
	t.Helper()
	log := &lines{}
	s := New(r, db, Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	closed(t, s.Close)
	return &world{s, r, db, log}
}

func closed(t testing.TB, end func() error) {
	t.Cleanup(func() {
		if err := end(); err != nil {
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
	if value == "" && !errors.Is(err, problem.NotFound) || value != "" && (err != nil || string(got) != value) {
		t.Errorf("Get(%s) = %q, %v, want %q", k.ID, got, err, value)
	}
}

// wantTake takes an entry, and checks that it has the given value; "" means that it must be absent.
func (w *world) wantTake(t testing.TB, k session.Key, value string) {
	t.Helper()
	got, err := w.Take(t.Context(), k)
	if value == "" && !errors.Is(err, problem.NotFound) || value != "" && (err != nil || string(got) != value) {
		t.Errorf("Take(%s) = %q, %v, want %q", k.ID, got, err, value)
	}
}

// TestStore runs the test suite while the primary is available, after an outage, during an outage,
// and while an outage begins.
func TestStore(t *testing.T) {
	t.Run("There", func(t *testing.T) {
		w := newWorld(t, servers.Redis(t), patient)
		sessiontest.Run(t, func(*testing.T) session.Store { return w })
		if w.log.String() != "" || !w.State().Until.IsZero() {
			t.Errorf("there was no outage, but the state is %+v, and the log is\n%s", w.State(), w.log)
		}
	})

	t.Run("Back", func(t *testing.T) {
		w := newWorld(t, servers.Redis(t), patient)
		w.linger(time.Hour)
		sessiontest.Run(t, func(*testing.T) session.Store { return w })
		if w.log.String() != "" || w.State().Until.IsZero() {
			t.Errorf("entries linger, but the state is %+v, and the log is\n%s", w.State(), w.log)
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

// A wire forwards connections to a server. It can be cut, or drop all answers.
type wire struct {
	URL    string
	mu     sync.Mutex
	deaf   bool
	cut    bool
	ends   []net.Conn
	listen net.Listener
}

func newWire(t testing.TB, r *servers.RedisServer) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	w := &wire{URL: "redis://" + l.Addr().String(), listen: l}
	t.Cleanup(func() { _ = l.Close(); w.Cut() })

	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.Port))
			if err != nil {
				_ = from.Close()
				continue
			}

			w.mu.Lock()
			if w.ends = append(w.ends, from, to); w.cut {
				_, _ = from.Close(), to.Close()
			}
			w.mu.Unlock()

			go w.carry(to, from, false)
			go w.carry(from, to, true)
		}
	}()

	return w
}

func (w *wire) carry(to, from net.Conn, back bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		w.mu.Lock()
		drop := back && w.deaf
		w.mu.Unlock()

		if n > 0 && !drop {
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}

// Cut closes all connections, and makes new ones fail immediately.
func (w *wire) Cut() { w.set(func() { w.cut = true }) }

// Deafen makes the wire drop answers, but not commands.
func (w *wire) Deafen() { w.set(func() { w.deaf = true }) }

// Mend makes the wire work again.
func (w *wire) Mend() { w.set(func() { w.cut, w.deaf = false, false }) }

func (w *wire) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	if w.cut {
		for _, c := range w.ends {
			_ = c.Close()
		}
		w.ends = nil
	}
}

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
	if there, fallen := count(w, "primary"), count(w, "fallback"); there != 12 || fallen != 0 {
		t.Errorf("the primary ran %d operations and the fallback %d, want 12 and 0", there, fallen)
	}
}

// TestLog shows that an outage is logged in two lines, with its cause but without secrets.
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

	text := w.log.String()
	if strings.Count(text, "\n") != 4 || strings.Count(text, "is unavailable") != 2 ||
		strings.Count(text, "is available again") != 2 || !strings.Contains(text, "refused") {
		t.Errorf("the log of two outages is\n%s\nwant two lines for each, with the cause", text)
	}
	if strings.Contains(text, "hush") || strings.Contains(text, "canary") {
		t.Errorf("the log contains a secret:\n%s", text)
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

// TestProbes shows that a single failed probe is repeated immediately and changes nothing. Two
// consecutive failed probes open the breaker.
func TestProbes(t *testing.T) {
	s := &Store{log: slog.New(slog.DiscardHandler), kick: make(chan struct{}, 1)}
	late := errors.New("too late")

	for i, step := range []struct {
		err  error
		away bool
	}{{late, false}, {nil, false}, {late, false}, {late, true}} {
		s.probed(0, step.err)
		if got := s.State().Away; got != step.away {
			t.Errorf("step %d: away is %v, want %v", i, got, step.away)
		}

		select {
		case <-s.kick:
			if step.err == nil || step.away {
				t.Errorf("step %d: the probe is repeated immediately", i)
			}
		default:
			if step.err != nil && !step.away {
				t.Errorf("step %d: the probe is not repeated immediately", i)
			}
		}
	}
}
