package spent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/durable"
)

// The mark is a file with two words. The first is the boot ID of the machine under which uses were
// added, or "closed" if all uses are on the disk. The second is the time l.lost: things made until
// then count as used.

const (
	markName = "mark"
	closed   = "closed"
)

// bootID returns an ID that changes when the machine starts. If the machine has none, bootID returns
// an ID that no mark has, so that every crash of the process counts as a crash of the machine.
func bootID() string {
	unknown := time.Now().Format(time.RFC3339Nano)
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return unknown
	}
	id := strings.TrimSpace(string(text))
	if id == "" {
		return unknown
	}
	return id
}

// readMark sets l.lost and l.marked. The parts must have been read.
func (l *Log) readMark() error {
	text, err := os.ReadFile(filepath.Join(l.c.Dir, markName))
	if errors.Is(err, fs.ErrNotExist) && len(l.parts) == 0 {
		return nil // no use was ever added
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	words := strings.Fields(string(text))
	if len(words) == 2 && (words[0] == l.c.Boot || words[0] == closed) {
		lost, err := time.Parse(time.RFC3339Nano, words[1])
		if err == nil {
			l.marked = words[0] == l.c.Boot
			l.lost = lost
			return nil
		}
	}

	// The machine has crashed, or the mark is missing or damaged.
	l.marked = false
	l.lost = l.c.Now().Add(ahead).Round(0)
	return nil
}

// ensureMarked ensures that the mark says that uses may be lost if the machine crashes. It is called
// before the first use is added.
func (l *Log) ensureMarked() error {
	if l.marked {
		return nil
	}
	if err := l.writeMark(l.c.Boot); err != nil {
		return err
	}
	l.marked = true
	return nil
}

// writeMark replaces the mark. It returns when the mark is on the disk.
func (l *Log) writeMark(state string) error {
	text := state + " " + l.lost.UTC().Format(time.RFC3339Nano) + "\n"
	if err := replaceFile(filepath.Join(l.c.Dir, markName), text); err != nil {
		return fmt.Errorf("marking log of uses: %w", err)
	}

	dir := l.c.Dir
	for range 3 { // its parents may be new, too
		if err := durable.SyncDir(dir); err != nil {
			return fmt.Errorf("marking log of uses: %w", err)
		}
		dir = filepath.Dir(dir)
	}
	return nil
}

// replaceFile replaces the content of a file atomically. The caller must sync the directory.
func replaceFile(name, text string) error {
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, writeErr := f.WriteString(text)
	if err := errors.Join(writeErr, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
