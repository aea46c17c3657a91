package spent

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A world is a directory with logs, the clock of the logs, and the id of the machine's current
// start.
type world struct {
	*testing.T
	dir  string
	boot string
	now  time.Time
}

func newWorld(t *testing.T) *world {
	return &world{T: t, dir: filepath.Join(t.TempDir(), "used"), boot: "first", now: time.Now()}
}

// open opens the log, as a new process would. It does not close logs that are open already.
func (w *world) open() *Log {
	w.Helper()
	l, err := Open(Config{Dir: w.dir, Boot: w.boot, Now: func() time.Time { return w.now }})
	if err != nil {
		w.Fatalf("Open = %v", err)
	}
	return l
}

// use uses id for the first time. The use expires after life.
func (w *world) use(l *Log, id string, life time.Duration) {
	w.Helper()
	if err := l.Add(Use{ID: id, Made: w.now, Expires: w.now.Add(life)}); err != nil {
		w.Errorf("Add(%s) = %v, want success", id, err)
	}
}

// refuse uses id again, and checks that the log refuses this use because it knows the id.
func (w *world) refuse(l *Log, id string) {
	w.Helper()
	if err := l.Add(Use{ID: id, Made: w.now, Expires: w.now.Add(time.Minute)}); err != (Repeated{0}) {
		w.Errorf("Add(%s) = %v, want an error that it was used", id, err)
	}
	if !l.Has(id, w.now) {
		w.Errorf("Has(%s) = false, want true", id)
	}
}

// files returns how many files the log has.
func (w *world) files() int {
	w.Helper()
	entries, err := filepath.Glob(filepath.Join(w.dir, "[0-9]*"))
	if err != nil {
		w.Fatal(err)
	}
	return len(entries)
}

// TestOnce shows that only one of several concurrent callers can use an id, and that the log
// contains all acknowledged uses when it is opened again without having been closed.
func TestOnce(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	const ids, callers = 50, 8
	var wg sync.WaitGroup
	var succeeded atomic.Int64
	for range callers {
		wg.Go(func() {
			for i := range ids {
				err := l.Add(Use{ID: fmt.Sprint(i), Made: w.now, Expires: w.now.Add(time.Minute)})
				switch err {
				case nil:
					succeeded.Add(1)
				case Repeated{0}:
				default:
					w.Errorf("Add = %v, want success or an error that it was used", err)
				}
			}
		})
	}
	wg.Wait()
	if n := succeeded.Load(); n != ids {
		w.Errorf("%d uses succeeded, want %d", n, ids)
	}

	again := w.open()
	for i := range ids {
		w.refuse(again, fmt.Sprint(i))
	}
	w.use(again, "other", time.Minute)
}

// TestAllOrNone shows that Add stores none of several uses if one of them is already known.
func TestAllOrNone(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	w.use(l, "a", time.Minute)
	until := w.now.Add(time.Minute)
	a := Use{ID: "a", Made: w.now, Expires: until}
	b := Use{ID: "b", Made: w.now, Expires: until}
	if err := l.Add(b, a); err != (Repeated{1}) {
		w.Errorf("Add(b, a) = %v, want an error that a was used", err)
	}
	for _, l := range []*Log{l, w.open()} {
		if l.Has("b", w.now) {
			w.Error("Has(b) = true, although the use failed, want false")
		}
		if !l.Has("a", w.now) {
			w.Error("Has(a) = false, want true")
		}
	}
	c := Use{ID: "c", Made: w.now, Expires: until}
	if err := l.Add(b, c); err != nil {
		w.Errorf("Add = %v, want success", err)
	}
	w.refuse(w.open(), "c")
}

// TestExpiry shows that each part of the log knows its uses until they expire, and that the log then
// deletes them from memory and deletes their files.
func TestExpiry(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	for i := range 30 {
		w.use(l, fmt.Sprint("long", i), 10*time.Minute)
		w.use(l, fmt.Sprint("short", i), time.Minute)
		for back := range min(i, 10) {
			w.refuse(l, fmt.Sprint("long", i-back))
		}
		w.now = w.now.Add(partFor)
	}
	// What is left is one long use from each of the last minutes, and the newest short uses.
	files := w.files()
	if files < 10 || files > 12 {
		w.Errorf("%d files are left, want 10 to 12", files)
	}
	if n := len(l.parts); n != files {
		w.Errorf("%d parts are left, want %d, one for each file", n, files)
	}
	if l.count < files+1 || l.count > files+3 {
		w.Errorf("%d uses are left, want 1 to 3 more than the %d files", l.count, files)
	}

	w.now = w.now.Add(time.Hour)
	w.use(l, "long29", time.Minute)
	if n := w.files(); n != 1 {
		w.Errorf("%d files are left, want 1", n)
	}
	if l.count != 1 {
		w.Errorf("%d uses are left, want 1", l.count)
	}

	w.now = w.now.Add(time.Hour)
	if w.open().Has("long29", w.now) {
		w.Error("an expired use still counts as used")
	}
	if n := w.files(); n != 0 {
		w.Errorf("%d files are left, want 0", n)
	}
}

// TestClockSetBack shows that uses stay known if the clock is set back.
func TestClockSetBack(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	w.use(l, "a", time.Minute)
	w.now = w.now.Add(-time.Hour)
	w.use(l, "b", time.Minute)
	for _, l := range []*Log{l, w.open()} {
		w.refuse(l, "a")
		w.refuse(l, "b")
	}
}

// TestMaximum shows that the number of uses is bounded.
func TestMaximum(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	w.use(l, "a", time.Minute)
	l.count = maxUses
	err := l.Add(Use{ID: "b", Made: w.now, Expires: w.now.Add(time.Minute)})
	if !errors.Is(err, problem.Unavailable) {
		w.Errorf("Add to a full log = %v, want problem.Unavailable", err)
	}
	w.refuse(l, "a")
}

// TestLearn shows that learned uses are known until they expire.
func TestLearn(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	l.Learn(Use{ID: "a", Made: w.now, Expires: w.now.Add(time.Minute)})
	w.refuse(l, "a")
	w.now = w.now.Add(2 * time.Minute)
	w.use(l, "b", time.Minute)
	w.use(l, "a", time.Minute)
}

func BenchmarkAdd(b *testing.B) {
	l, err := Open(Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	now := time.Now()
	for i := range b.N {
		if err := l.Add(Use{ID: fmt.Sprint(i), Made: now, Expires: now.Add(time.Minute)}); err != nil {
			b.Fatal(err)
		}
	}
}
