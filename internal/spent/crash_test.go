package spent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

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
// its uses correctly, and does not claim that everything was synced. It must remember that a sync failed,
// because the next sync may succeed although data was lost.
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
		err := l.Add(Use{ID: "b", Made: w.now, Expires: w.now.Add(time.Minute)})
		if !errors.Is(err, problem.Unavailable) {
			t.Errorf("Add while the disk fails = %v, want problem.Unavailable", err)
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

// TestUnsynced shows that Close also syncs the files of an earlier process that was killed. If such a
// file cannot be synced, Close returns an error, and the log does not claim that everything was synced.
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

// TestTorn shows that if some records of a file are damaged, the log still finds the others, and that it
// deletes the file once they have expired.
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
		w.Errorf("%d files are left, want only the file with c", n)
	}
}

// TestFull shows that Add fails if the disk is full, that the id then counts as used, and that the log
// accepts other uses once the disk has space again.
func TestFull(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	w.use(l, "before", time.Minute)
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there is no full disk: %v", err)
	}

	part := l.parts[0]
	good := part.file
	part.file = full
	err = l.Add(Use{ID: "lost", Made: w.now, Expires: w.now.Add(time.Minute)})
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("Add to a full disk = %v, want problem.Unavailable", err)
	}
	part.file = good
	w.refuse(l, "lost")
	w.use(l, "after", time.Minute)

	again := w.open()
	w.refuse(again, "before")
	w.refuse(again, "after")
}

// TestMachineCrash shows that after a crash of the machine, every id that was made before the crash
// counts as used, because the log may have lost its use. This includes ids of a client whose clock is
// ahead. Later processes refuse these ids, too.
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
		err := l.Add(Use{ID: "lost", Made: made, Expires: w.now.Add(time.Minute)})
		if err != (Repeated{0}) {
			t.Errorf("%s: Add(lost) = %v, want an error that it was used", name, err)
		}
		if !l.Has("lost", made) {
			t.Errorf("%s: Has(lost) = false, want true", name)
		}
		w.refuse(l, "new")
	}
}

// TestCleanStop shows that all uses are known after the log was closed and the machine has started
// again, and that no other id counts as used.
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
}

// TestDamagedMark shows that a missing or damaged mark counts as a crash of the machine.
func TestDamagedMark(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	w.use(l, "a", time.Minute)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	for _, text := range []string{"", "closed", "closed never"} {
		if err := os.WriteFile(filepath.Join(w.dir, markName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if !w.open().Has("other", w.now) {
			t.Errorf("with the mark %q, an unknown id does not count as used", text)
		}
	}

	if err := os.Remove(filepath.Join(w.dir, markName)); err != nil {
		t.Fatal(err)
	}
	if !w.open().Has("other", w.now) {
		t.Errorf("without a mark, an unknown id does not count as used")
	}
}
