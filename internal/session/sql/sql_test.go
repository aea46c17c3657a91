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
)

// open gives a store in a directory, closed with the test.
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
	sessiontest.Run(t, func(t *testing.T) session.Store { return open(t, Config{Dir: t.TempDir()}) })
}

// TestTwoProcesses shows that two stores over one file are one store.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
	k := session.Key{Kind: "code", ID: "1"}
	for i := range 50 {
		if err := a.Put(t.Context(), k, []byte(strconv.Itoa(i)), time.Minute); err != nil {
			t.Fatalf("Put = %v", err)
		}
		if got, err := b.Take(t.Context(), k); string(got) != strconv.Itoa(i) || err != nil {
			t.Fatalf("Take = %q, %v, want %d", got, err, i)
		}
	}
}

func TestReopen(t *testing.T) {
	dir, k := t.TempDir(), session.Key{Kind: "login", ID: "1"}
	s, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Put(t.Context(), k, []byte("one"), time.Minute), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), k, []byte("two"), time.Minute); !errors.Is(err, database.ErrClosed) {
		t.Errorf("Put after Close = %v, want %v", err, database.ErrClosed)
	}
	if got, err := open(t, Config{Dir: dir}).Get(t.Context(), k); string(got) != "one" || err != nil {
		t.Errorf("Get = %q, %v, want one", got, err)
	}
}

// TestSweep shows that a sweep deletes what has expired, and that alone.
func TestSweep(t *testing.T) {
	var us atomic.Int64
	us.Store(time.Now().UnixMicro())
	s := open(t, Config{Dir: t.TempDir(), Now: func() time.Time { return time.UnixMicro(us.Load()) }})
	for i := range 3*sweepBatch/2 + 1 {
		if err := s.Put(t.Context(), session.Key{Kind: "code", ID: strconv.Itoa(i)}, nil, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	kept := session.Key{Kind: "login", ID: "1"}
	if err := s.Put(t.Context(), kept, []byte("one"), time.Minute+time.Microsecond); err != nil {
		t.Fatal(err)
	}
	us.Add(time.Minute.Microseconds())
	if _, err := s.Get(t.Context(), session.Key{Kind: "code", ID: "0"}); !errors.Is(err, problem.NotFound) {
		t.Errorf("Get of an expired entry = %v, want not found", err)
	}
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := s.db.Read().Row(t.Context(), `SELECT count(*) FROM session_entries`).Scan(&rows); rows != 1 || err != nil {
		t.Errorf("%d rows after the sweep, %v, want 1", rows, err)
	}
	if got, err := s.Get(t.Context(), kept); string(got) != "one" || err != nil {
		t.Errorf("Get = %q, %v, want one", got, err)
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
