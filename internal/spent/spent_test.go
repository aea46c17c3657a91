package spent

import (
	"fmt"
	"os"
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
	if err := l.Add(Use{id, w.now, w.now.Add(life)}); err != nil {
		w.Errorf("Add(%s) = %v", id, err)
	}
}

// refuse uses id again, and checks that the log refuses this because it knows the id.
func (w *world) refuse(l *Log, id string) {
	w.Helper()
	if err := l.Add(Use{id, w.now, w.now.Add(time.Minute)}); err != (Repeated{0}) {
		w.Errorf("Add(%s) = %v, want an error that it was used", id, err)
	}
	if !l.Has(id, w.now) {
		w.Errorf("Has(%s) = false, want true", id)
	}
}

// files returns the number of the log's files.
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
	var won atomic.Int64
	for range callers {
		wg.Go(func() {
			for i := range ids {
				err := l.Add(Use{fmt.Sprint(i), w.now, w.now.Add(time.Minute)})
				if err == nil {
					won.Add(1)
				} else if err != (Repeated{0}) {
					w.Errorf("Add = %v, want success or an error that it was used", err)
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
}

// TestAllOrNone shows that Add stores none of several uses if one of them is already known.
func TestAllOrNone(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	w.use(l, "a", time.Minute)
	until := w.now.Add(time.Minute)
	if err := l.Add(Use{"b", w.now, until}, Use{"a", w.now, until}); err != (Repeated{1}) {
		w.Errorf("Add(b, a) = %v, want an error that a was used", err)
	}
	for _, l := range []*Log{l, w.open()} {
		if l.Has("b", w.now) || !l.Has("a", w.now) {
			w.Errorf("Has(b), Has(a) = %t, %t, want only a", l.Has("b", w.now), l.Has("a", w.now))
		}
	}
	if err := l.Add(Use{"b", w.now, until}, Use{"c", w.now, until}); err != nil {
		w.Errorf("Add = %v, want success", err)
	}
	w.refuse(w.open(), "c")
}

// TestExpiry shows that each part of the log knows its uses until they expire. The log then deletes
// them from memory and from its files.
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
	if n := w.files(); n < 10 || n > 12 || len(l.parts) != n || l.count < n+1 || l.count > n+3 {
		w.Errorf("%d files, %d parts and %d uses are left, want a long use from each minute and the newest short ones",
			n, len(l.parts), l.count)
	}

	w.now = w.now.Add(time.Hour)
	w.use(l, "long29", time.Minute)
	if n := w.files(); n != 1 || l.count != 1 {
		w.Errorf("%d files and %d uses are left, want 1", n, l.count)
	}
	w.now = w.now.Add(time.Hour)
	if w.open().Has("long29", w.now) || w.files() != 0 {
		w.Errorf("an expired use still counts as used, or its file is left")
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

// TestClockCorrected starts a machine after a crash with a clock that is ahead, and then corrects
// the clock. The log soon accepts ids that were made after the correction, and continues to refuse
// ids that were made before the crash.
func TestClockCorrected(t *testing.T) {
	w := newWorld(t)
	w.use(w.open(), "lost", time.Minute)
	made := w.now

	w.boot = "second"
	w.now = w.now.Add(2 * time.Hour)
	l := w.open()
	w.now = w.now.Add(-2 * time.Hour)
	for range 2 {
		if !l.Has("lost", made) {
			t.Error("an id from before the crash does not count as used")
		}
		w.now = w.now.Add(ahead + time.Second)
		w.use(l, fmt.Sprint("new at ", w.now), time.Minute)
		l = w.open()
	}
}

// TestDiskFails shows that the log refuses uses while the disk fails. Afterwards, the log counts
// its uses correctly, and does not claim that everything was synced. After a sync has failed, a
// second sync may succeed although data was lost, so the log must remember the failure.
func TestDiskFails(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	w.use(l, "old", 3*partFor/2) // expires while the disk fails
	w.now = w.now.Add(partFor)
	w.use(l, "a", time.Hour)
	last := l.parts[len(l.parts)-1]
	good := last.file
	broken, _, err := os.Pipe() // cannot be synced
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()

	last.file = broken
	for range 3 {
		w.now = w.now.Add(partFor)
		err = l.Add(Use{"b", w.now, w.now.Add(time.Minute)})
		if p := problem.First(err); p == nil || p.Kind != problem.Unavailable {
			t.Errorf("Add while the disk fails = %v, want Unavailable", err)
		}
	}
	last.file = good
	w.use(l, "c", time.Minute)
	if l.count != 2 {
		t.Errorf("the log counts %d uses, want 2", l.count)
	}

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	w.boot = "second"
	if !w.open().Has("other", w.now) {
		t.Error("after a crash of the machine, the log trusts a disk that had failed")
	}
}

// TestUnsynced shows that Close also syncs the files of an earlier process that was killed. If this
// fails, Close returns an error, and the log does not claim that everything was synced.
func TestUnsynced(t *testing.T) {
	w := newWorld(t)
	w.use(w.open(), "a", time.Minute)
	l := w.open()
	broken, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	if l.parts[0].file == nil {
		t.Fatal("the file of the killed process is not open, so it cannot be synced")
	}
	l.parts[0].file = broken
	if err := l.Close(); err == nil {
		t.Error("Close did not sync the file of the killed process")
	}

	w.boot = "second"
	if !w.open().Has("other", w.now) {
		t.Error("the log claims that everything was synced")
	}
}

// TestTorn shows that the log still finds the other records of a file that contains damaged ones,
// and that it deletes this file in the end.
func TestTorn(t *testing.T) {
	w := newWorld(t)
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
}

// TestFull shows that a use fails if it cannot be written to the disk, that its id then counts as
// used, and that the log accepts other uses once the disk has space again.
func TestFull(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	w.use(l, "before", time.Minute)
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there is no full disk: %v", err)
	}
	p := l.parts[0]
	good := p.file
	p.file = full
	err = l.Add(Use{"lost", w.now, w.now.Add(time.Minute)})
	if p := problem.First(err); p == nil || p.Kind != problem.Unavailable {
		t.Errorf("Add to a full disk = %v, want Unavailable", err)
	}
	p.file = good
	w.refuse(l, "lost")
	w.use(l, "after", time.Minute)
	again := w.open()
	w.refuse(again, "before")
	w.refuse(again, "after")
}

// TestMachineCrash shows that after a crash of the machine, every id that was made before the crash
// counts as used, because the log may have lost the use. This includes ids of a client whose clock
// is ahead. Later processes refuse these ids, too.
func TestMachineCrash(t *testing.T) {
	w := newWorld(t)
	w.use(w.open(), "lost", time.Minute)
	entries, err := filepath.Glob(filepath.Join(w.dir, "[0-9]*"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("the files are %q, %v, want one", entries, err)
	}
	if err := os.Remove(entries[0]); err != nil {
		t.Fatal(err)
	}
	made := w.now.Add(ahead)

	w.boot = "second"
	crashed := w.open()
	w.now = w.now.Add(ahead + 1)
	w.use(crashed, "new", time.Minute)
	killed := w.open()
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*Log{"first process": crashed, "next one": killed, "third one": w.open()} {
		if err := l.Add(Use{"lost", made, w.now.Add(time.Minute)}); err != (Repeated{0}) || !l.Has("lost", made) {
			t.Errorf("%s: Add(lost) = %v, want an error that it was used", name, err)
		}
		w.refuse(l, "new")
	}
}

// TestCleanStop shows that all uses are known after the log was closed and the machine has started
// again, and that no other id counts as used. A mark that is missing or damaged counts as a crash.
func TestCleanStop(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.boot = fmt.Sprint(i)
		l := w.open()
		for j := range i {
			w.refuse(l, fmt.Sprint(j))
		}
		w.use(l, fmt.Sprint(i), time.Minute)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}

	for _, text := range []string{"", "closed", "closed never"} {
		if err := os.WriteFile(filepath.Join(w.dir, markName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if !w.open().Has("other", w.now) {
			t.Errorf("with the mark %q, an id that the log does not contain does not count as used", text)
		}
	}
	if err := os.Remove(filepath.Join(w.dir, markName)); err != nil {
		t.Fatal(err)
	}
	if !w.open().Has("other", w.now) {
		t.Errorf("without a mark, an id that the log does not contain does not count as used")
	}
}

// TestMaximum shows that the number of uses is bounded.
func TestMaximum(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	w.use(l, "a", time.Minute)
	l.count = maxUses
	err := l.Add(Use{"b", w.now, w.now.Add(time.Minute)})
	if p := problem.First(err); p == nil || p.Kind != problem.Unavailable {
		w.Errorf("Add to a full log = %v, want Unavailable", err)
	}
	w.refuse(l, "a")
}

// TestLearn shows that learned uses are known until they expire.
func TestLearn(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	l.Learn(Use{"a", w.now, w.now.Add(time.Minute)})
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
		if err := l.Add(Use{fmt.Sprint(i), now, now.Add(time.Minute)}); err != nil {
			b.Fatal(err)
		}
	}
}
