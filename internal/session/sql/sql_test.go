package sql

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/session/sessiontest"
	"github.com/selvage/selvage/test/servers"
)

// open returns a store and closes it at the end of the test.
func open(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatalf("Open(%+v) = %v", c, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	eachDatabase(t, func(t *testing.T, fresh func(*testing.T) Config) {
		sessiontest.Run(t, func(t *testing.T) session.Store { return open(t, fresh(t)) })
	})
}

// eachDatabase runs a test on SQLite and on PostgreSQL. fresh returns a Config for an empty
// database.
func eachDatabase(t *testing.T, test func(t *testing.T, fresh func(*testing.T) Config)) {
	t.Run("sqlite", func(t *testing.T) { test(t, func(t *testing.T) Config { return Config{Dir: t.TempDir()} }) })
	t.Run("postgres", func(t *testing.T) {
		test(t, func(t *testing.T) Config { return Config{URL: servers.Postgres(t), Patience: time.Minute} })
	})
}

// TestTwoProcesses shows that two stores that use the same database act like one store.
func TestTwoProcesses(t *testing.T) { eachDatabase(t, testTwoProcesses) }

func testTwoProcesses(t *testing.T, fresh func(*testing.T) Config) {
	c := fresh(t)
	a, b := open(t, c), open(t, c)
	k := session.Key{Kind: "code", ID: "1"}
	for i := range 50 {
		if err := a.Put(t.Context(), k, []byte(strconv.Itoa(i)), time.Minute); err != nil {
			t.Fatalf("Put = %v", err)
		}
		if got, err := b.Take(t.Context(), k); err != nil || string(got) != strconv.Itoa(i) {
			t.Fatalf("Take = %q, %v, want %d", got, err, i)
		}
	}
}

// TestSkewedRates shows that two nodes with different clocks together permit at most the burst,
// plus the events that recover in the time by which the clocks differ.
func TestSkewedRates(t *testing.T) { eachDatabase(t, testSkewedRates) }

func testSkewedRates(t *testing.T, fresh func(*testing.T) Config) {
	c := fresh(t)
	now := time.Now()
	c.Now = func() time.Time { return now }
	right := open(t, c)
	const ahead = 90 * time.Second
	c.Now = func() time.Time { return now.Add(ahead) }
	fast := open(t, c)

	rate := session.Rate{Burst: 10, Every: 10 * time.Second}
	k := session.Key{Kind: "limit", ID: "1"}
	allowed := 0
	for range 50 {
		for _, s := range []*Store{fast, right} {
			wait, err := s.Allow(t.Context(), k, rate, 1)
			if err != nil {
				t.Fatal(err)
			}
			if wait == 0 {
				allowed++
			}
		}
	}

	least, most := rate.Burst, rate.Burst+int(ahead/rate.Every)
	if allowed < least || allowed > most {
		t.Errorf("%d events were allowed, want %d to %d", allowed, least, most)
	}
}

// TestSweepMeanwhile shows that a sweep does not delete an entry that is renewed while the sweep waits
// for the entry's lock.
func TestSweepMeanwhile(t *testing.T) {
	s := open(t, Config{URL: servers.Postgres(t), Patience: time.Minute, Sweep: time.Hour})
	ctx, k := t.Context(), session.Key{Kind: "presence", ID: "1"}
	if err := s.Put(ctx, k, []byte("old"), -time.Minute); err != nil {
		t.Fatal(err)
	}

	swept := make(chan error, 1)
	err := s.db.Change(ctx, func(d database.Tx) error {
		_, err := d.Exec(ctx, `UPDATE selvage_sessions SET value = $1, expires = $2`,
			[]byte("new"), s.after(time.Hour))
		if err != nil {
			return err
		}
		go func() { swept <- s.sweep(ctx) }()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for waiting := 0; waiting == 0 && len(swept) == 0; <-tick.C {
			err := s.db.Read().Row(ctx, `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, <-swept); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(ctx, k); err != nil || string(got) != "new" {
		t.Errorf("after the sweep, Get = %q, %v, want new", got, err)
	}
}

func TestReopen(t *testing.T) { eachDatabase(t, testReopen) }

func testReopen(t *testing.T, fresh func(*testing.T) Config) {
	c, k := fresh(t), session.Key{Kind: "login", ID: "1"}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	if err := s.Put(t.Context(), k, []byte("one"), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), k, []byte("two"), time.Minute); !errors.Is(err, database.ErrClosed) {
		t.Errorf("Put after Close = %v, want %v", err, database.ErrClosed)
	}

	if got, err := open(t, c).Get(t.Context(), k); err != nil || string(got) != "one" {
		t.Errorf("Get from a store that was opened again = %q, %v, want one", got, err)
	}
}

// TestSweep shows that a sweep deletes all expired entries and no others.
func TestSweep(t *testing.T) { eachDatabase(t, testSweep) }

func testSweep(t *testing.T, fresh func(*testing.T) Config) {
	var us atomic.Int64
	us.Store(time.Now().UnixMicro())
	c := fresh(t)
	c.Now = func() time.Time { return time.UnixMicro(us.Load()) }
	s := open(t, c)

	for i := range 3*sweepBatch/2 + 1 {
		k := session.Key{Kind: "code", ID: strconv.Itoa(i)}
		if err := s.Put(t.Context(), k, nil, time.Minute); err != nil {
			t.Fatal(err)
		}
	}

	kept := session.Key{Kind: "login", ID: "1"}
	if err := s.Put(t.Context(), kept, []byte("one"), time.Minute+time.Microsecond); err != nil {
		t.Fatal(err)
	}

	us.Add(time.Minute.Microseconds())
	if _, err := s.Get(t.Context(), session.Key{Kind: "code", ID: "0"}); !errors.Is(err, problem.NotFound) {
		t.Errorf("Get of an expired entry = %v, want problem.NotFound", err)
	}

	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := s.db.Read().Row(t.Context(), `SELECT count(*) FROM selvage_sessions`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows != 1 {
		t.Errorf("%d rows are left after the sweep, want 1", rows)
	}

	if got, err := s.Get(t.Context(), kept); err != nil || string(got) != "one" {
		t.Errorf("Get of an entry that has not expired = %q, %v, want one", got, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []Config{
		{URL: "redis://localhost"},
		{URL: "sqlite:"},
		{Dir: "/dev/null/nowhere"},
	} {
		if _, err := Open(t.Context(), c); err == nil {
			t.Errorf("Open(%+v) = nil, want an error", c)
		}
	}
}

func BenchmarkLogin(b *testing.B) {
	s := open(b, Config{Dir: b.TempDir()})
	value := make([]byte, 400)
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			k := session.Key{Kind: "code", ID: session.Digest(strconv.FormatInt(n.Add(1), 10))}
			if err := s.Put(b.Context(), k, value, time.Minute); err != nil {
				b.Error(err)
			}
			if _, err := s.Take(b.Context(), k); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkGet(b *testing.B) {
	s := open(b, Config{Dir: b.TempDir()})
	k := session.Key{Kind: "login", ID: "1"}
	if err := s.Put(b.Context(), k, make([]byte, 400), time.Hour); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Get(b.Context(), k); err != nil {
			b.Fatal(err)
		}
	}
}
