package spent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A world is a directory with logs, and their clock.
type world struct {
	*testing.T
	dir  string
	sync bool
	now  time.Time
}

// each runs a test with a log that waits for the disk, and with one that does not.
func each(t *testing.T, test func(w *world)) {
	for _, sync := range []bool{true, false} {
		t.Run(fmt.Sprint("sync=", sync), func(t *testing.T) {
			test(&world{T: t, dir: filepath.Join(t.TempDir(), "used"), sync: sync, now: time.Now()})
		})
	}
}

// open opens the log, as a new process would. It does not close logs that are open already.
func (w *world) open() *Log {
	w.Helper()
	l, err := Open(Config{Dir: w.dir, Sync: w.sync, Now: func() time.Time { return w.now }})
	if err != nil {
		w.Fatalf("Open = %v", err)
	}
	w.Cleanup(func() { _ = l.Close() })
	return l
}

// use adds a use that expires after life, which must not be known.
func (w *world) use(l *Log, id string, life time.Duration) {
	w.Helper()
	if err := l.Add(Use{id, w.now.Add(life)}); err != nil {
		w.Errorf("Add(%s) = %v", id, err)
	}
}

// refuse adds a use that must be known.
func (w *world) refuse(l *Log, id string) {
	w.Helper()
	if err := l.Add(Use{id, w.now.Add(time.Minute)}); err != (Repeated{0}) {
		w.Errorf("Add(%s) = %v, want that it was used", id, err)
	}
	if !l.Has(id) {
		w.Errorf("Has(%s) = false", id)
	}
}

// files returns how many files the log has.
func (w *world) files() int {
	w.Helper()
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.Fatal(err)
	}
	return len(entries)
}

// TestOnce shows that one of many concurrent callers uses an id, and that the log contains all
// acknowledged uses when it is opened again without having been closed.
func TestOnce(t *testing.T) {
	each(t, func(w *world) {
		l := w.open()
		const ids, callers = 50, 8
		var wg sync.WaitGroup
		var won atomic.Int64
		for range callers {
			wg.Go(func() {
				for i := range ids {
					err := l.Add(Use{fmt.Sprint(i), w.now.Add(time.Minute)})
					if err == nil {
						won.Add(1)
					} else if err != (Repeated{0}) {
						w.Errorf("Add = %v", err)
					}
				}
			})
		}
		wg.Wait()
		if won.Load() != ids {
			w.Errorf("%d uses succeeded, want %d", won.Load(), ids)
		}

		again := w.open()
		for i := range ids {
			w.refuse(again, fmt.Sprint(i))
		}
		w.use(again, "other", time.Minute)
	})
}

// TestAllOrNone shows that a use is not stored together with one that is known.
func TestAllOrNone(t *testing.T) {
	each(t, func(w *world) {
		l := w.open()
		w.use(l, "a", time.Minute)
		until := w.now.Add(time.Minute)
		if err := l.Add(Use{"b", until}, Use{"a", until}); err != (Repeated{1}) {
			w.Errorf("Add(b, a) = %v, want that a was used", err)
		}
		for _, l := range []*Log{l, w.open()} {
			if l.Has("b") || !l.Has("a") {
				w.Errorf("Has(b), Has(a) = %t, %t, want only a", l.Has("b"), l.Has("a"))
			}
		}
		if err := l.Claim(Use{"b", until}, Use{"c", until}); err != nil {
			w.Errorf("Claim = %v", err)
		}
		w.refuse(w.open(), "c")
	})
}

// TestExpiry shows that uses are known until they expire, in whichever part they are, and that
// memory and files do not grow after that.
func TestExpiry(t *testing.T) {
	each(t, func(w *world) {
		l := w.open()
		for i := range 30 {
			w.use(l, fmt.Sprint("long", i), 10*time.Minute)
			w.use(l, fmt.Sprint("short", i), time.Minute)
			for back := range min(i, 10) {
				w.refuse(l, fmt.Sprint("long", i-back))
			}
			w.now = w.now.Add(partFor)
		}
		if n := w.files(); n < 10 || n > 12 || len(l.parts) != n || l.count != 2*n {
			w.Errorf("%d files, %d parts and %d uses are left", n, len(l.parts), l.count)
		}

		w.now = w.now.Add(time.Hour)
		w.use(l, "long29", time.Minute)
		if n := w.files(); n != 1 || l.count != 1 {
			w.Errorf("%d files and %d uses are left, want 1", n, l.count)
		}
		w.now = w.now.Add(time.Hour)
		if w.open().Has("long29") || w.files() != 0 {
			w.Errorf("an expired use is known, or its file is left")
		}
	})
}

// TestClockSetBack shows that uses stay known if the clock is set back.
func TestClockSetBack(t *testing.T) {
	each(t, func(w *world) {
		l := w.open()
		w.use(l, "a", time.Minute)
		w.now = w.now.Add(-time.Hour)
		w.use(l, "b", time.Minute)
		for _, l := range []*Log{l, w.open()} {
			w.refuse(l, "a")
			w.refuse(l, "b")
		}
	})
}

// TestTorn shows that damaged records do not hide others, and that no damage keeps a file forever.
func TestTorn(t *testing.T) {
	each(t, func(w *world) {
		l := w.open()
		w.use(l, "a", time.Minute)
		w.use(l, "torn", time.Minute)
		w.use(l, "b", time.Minute)
		name := l.parts[0].name
		text, err := os.ReadFile(name)
		if err != nil {
			w.Fatal(err)
		}
		copy(text[recordSize:], "garbage garbage garbage ")
		if err := os.WriteFile(name, append(text, "half"...), 0o600); err != nil {
			w.Fatal(err)
		}

		l = w.open()
		w.refuse(l, "a")
		w.refuse(l, "b")
		w.now = w.now.Add(2 * time.Minute)
		w.use(l, "c", time.Minute)
		if n := w.files(); n != 1 {
			w.Errorf("%d files are left, want that of c", n)
		}
	})
}

// TestFull shows that a use that cannot be written is refused, also when it is repeated, and that
// the log recovers.
func TestFull(t *testing.T) {
	w := &world{T: t, dir: filepath.Join(t.TempDir(), "used"), now: time.Now()}
	l := w.open()
	w.use(l, "before", time.Minute)
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there is no full disk: %v", err)
	}
	p := l.parts[0]
	good := p.file
	p.file = full
	if err := l.Add(Use{"lost", w.now.Add(time.Minute)}); err == nil {
		t.Errorf("Add to a full disk = nil")
	}
	p.file = good
	w.refuse(l, "lost")
	w.use(l, "after", time.Minute)
	again := w.open()
	w.refuse(again, "before")
	w.refuse(again, "after")
}

// TestSyncFails shows that no use is acknowledged in a file that could not be synced, although a
// later sync of the file would succeed, and that the log recovers with a new file.
func TestSyncFails(t *testing.T) {
	w := &world{T: t, dir: filepath.Join(t.TempDir(), "used"), sync: true, now: time.Now()}
	l := w.open()
	w.use(l, "before", time.Minute)

	// A closed file cannot be synced.
	p := l.parts[0]
	end, err := p.write(appendRecord(nil, digestOf("lost"), 0))
	if err != nil {
		t.Fatal(err)
	}
	good := p.file
	if p.file, err = os.Open(os.DevNull); err != nil {
		t.Fatal(err)
	}
	if err := p.sync(end); err == nil {
		t.Fatalf("a device was synced")
	}
	_ = p.file.Close()
	p.file = good

	if err := l.Add(Use{"lost", w.now.Add(time.Minute)}); !errors.Is(err, errLost) {
		t.Errorf("Add after a failed sync = %v", err)
	}
	w.now = w.now.Add(retryAfter)
	w.use(l, "after", time.Minute)
	w.refuse(w.open(), "after")
	w.refuse(l, "lost")
}

// TestMaximum shows that the number of uses is bounded.
func TestMaximum(t *testing.T) {
	each(t, func(w *world) {
		l := w.open()
		w.use(l, "a", time.Minute)
		l.count = maxUses
		err := l.Add(Use{"b", w.now.Add(time.Minute)})
		if p := problem.First(err); p == nil || p.Kind != problem.Unavailable {
			w.Errorf("Add to a log with too many uses = %v", err)
		}
		w.refuse(l, "a")
	})
}

// TestLearn shows that learned uses are known until they expire.
func TestLearn(t *testing.T) {
	each(t, func(w *world) {
		l := w.open()
		l.Learn(Use{"a", w.now.Add(time.Minute)})
		w.refuse(l, "a")
		w.now = w.now.Add(2 * time.Minute)
		w.use(l, "b", time.Minute)
		w.use(l, "a", time.Minute)
	})
}

func BenchmarkAdd(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprint("sync=", sync), func(b *testing.B) {
			l, err := Open(Config{Dir: b.TempDir(), Sync: sync})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			until := time.Now().Add(time.Minute)
			var n atomic.Int64
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := l.Add(Use{fmt.Sprint(n.Add(1)), until}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
