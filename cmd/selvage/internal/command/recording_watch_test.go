package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/problem"
)

// TestSettled shows that a file is taken only when neither it nor its JSON file has changed for a
// while. It must also have the name of a finished recording.
func TestSettled(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	w := &watcher{
		dir:    dir,
		root:   rootOf(t, dir),
		settle: time.Minute,
		now:    func() time.Time { return now },
	}
	write := func(name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return path
	}

	tests := []struct {
		name    string
		audio   time.Duration // age
		sidecar time.Duration // age, or 0 for no sidecar
		want    bool
	}{
		{name: "new", audio: time.Second, want: false},
		{name: "in the future", audio: -time.Hour, want: false},
		{name: "old", audio: time.Minute, want: true},
		{name: "old, with JSON", audio: time.Hour, sidecar: time.Hour, want: true},
		{name: "old, but new JSON", audio: time.Hour, sidecar: time.Second, want: false},
	}
	for _, tt := range tests {
		path := write(tt.name+".wav", tt.audio)
		if tt.sidecar != 0 {
			write(tt.name+".wav.json", tt.sidecar)
		}
		if got := w.isSettled(path); got != tt.want {
			t.Errorf("a file that is %s is settled: %v, want %v", tt.name, got, tt.want)
		}
	}

	recordings := map[string]bool{
		"a.wav":      true,
		".a.wav":     false,
		"a.wav.part": false,
		"a.tmp":      false,
	}
	for name, want := range recordings {
		if got := isRecording(filepath.Join(dir, name)); got != want {
			t.Errorf("%s is taken: %v, want %v", name, got, want)
		}
	}
}

// TestUnchanged shows that unchanged notices a write to a file after its size was read.
func TestUnchanged(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "a.wav"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	before, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}

	if err := unchanged(f, before); err != nil {
		t.Errorf("unchanged = %v, want nil", err)
	}
	if _, err := f.WriteString("more"); err != nil {
		t.Fatal(err)
	}

	if err := unchanged(f, before); !errors.Is(err, errGrowing) {
		t.Errorf("unchanged after a write = %v, want %v", err, errGrowing)
	}
}

// TestFaults shows which errors cause a file to be moved to another folder. After all other errors, the
// file stays for another attempt.
func TestFaults(t *testing.T) {
	faults := []error{
		problem.New(problem.Unsupported, "unsupported_media_type", "x"),
		problem.New(problem.Invalid, "invalid_parameter", "x"),
		fmt.Errorf("a.json: %w", errSidecar),
	}
	for _, err := range faults {
		if !isFault(err) {
			t.Errorf("after the error %q, the file stays, want it moved", err)
		}
	}

	others := []error{
		problem.New(problem.Unavailable, "unavailable", "the disk is full"),
		problem.New(problem.Forbidden, "quota_exceeded", "x"),
		fs.ErrPermission,
		context.Canceled,
		errGrowing,
	}
	for _, err := range others {
		if isFault(err) {
			t.Errorf("after the error %q, the file is moved, want it to stay", err)
		}
	}
}

// TestRetries shows that a file that stays in place is read less and less often, but at least once a
// minute.
func TestRetries(t *testing.T) {
	now := time.Now()
	w := &watcher{retries: make(map[string]retry), now: func() time.Time { return now }}
	for _, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		w.postpone("a.wav")
		wait := time.Duration(want) * time.Second
		now = now.Add(wait - time.Millisecond)
		if w.isDue("a.wav") {
			t.Errorf("the file is read before %v have passed", wait)
		}
		now = now.Add(time.Millisecond)
		if !w.isDue("a.wav") {
			t.Errorf("the file is not read after %v", wait)
		}
	}

	w.postpone("a.wav")
	now = now.Add(-time.Hour)
	if !w.isDue("a.wav") {
		t.Error("the file is not read after the clock was set back")
	}
	if !w.isDue("b.wav") {
		t.Error("another file has to wait")
	}
}

// rootOf opens a directory.
func rootOf(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// TestWatchedLinks shows that programs with write access to a watched directory cannot stop the
// watcher. They also cannot make it read or write other files.
func TestWatchedLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	w := &watcher{dir: dir, root: rootOf(t, dir), now: time.Now}
	secret := filepath.Join(outside, "secret")
	pipe := filepath.Join(dir, "pipe.wav")
	file := filepath.Join(dir, "a.wav")
	err := errors.Join(
		os.WriteFile(secret, []byte("secret"), 0o600),
		os.Symlink(secret, filepath.Join(dir, "link.wav")),
		os.Symlink(outside, filepath.Join(dir, "folder")),
		syscall.Mkfifo(pipe, 0o600),
		os.WriteFile(file, nil, 0o600),
		os.Symlink(outside, filepath.Join(dir, doneFolder)),
		os.Mkdir(filepath.Join(dir, failedFolder), 0o700),
		os.Symlink(secret, filepath.Join(dir, failedFolder, "a.wav.reason.txt")),
	)
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"link.wav", "folder/secret", "pipe.wav", doneFolder} {
		if f, err := w.open(filepath.Join(dir, name)); err == nil {
			_ = f.Close()
			t.Errorf("open(%s) succeeded, want an error", name)
		}
	}

	for folder, fault := range map[string]error{doneFolder: nil, failedFolder: errSidecar} {
		if err := w.move(file, folder, fault); err == nil {
			t.Errorf("a file was moved to %s through a link", folder)
		}
	}

	text, err := os.ReadFile(secret)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != "secret" {
		t.Errorf("the file outside of the directory was changed to %q, want it unchanged", text)
	}
	entries, err := os.ReadDir(outside)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("the directory outside has %d files, want 1", len(entries))
	}
}

// TestNamesInMessages shows that the name of a file cannot control the terminal.
func TestNamesInMessages(t *testing.T) {
	var out strings.Builder
	w := &watcher{importer: &importer{}, printed: make(map[string]string)}
	w.importer.commands = &commands{Env: &cli.Env{Stderr: &out}}
	w.tell("\x1b[2J.wav", fs.ErrPermission)
	got := out.String()
	if strings.Contains(got, "\x1b") {
		t.Errorf("tell printed %q, want no control characters", got)
	}
	if !strings.Contains(got, "[2J.wav stays") {
		t.Errorf("tell printed %q, want the rest of the name", got)
	}
}

// TestOneWatcher shows that two watchers cannot lock a directory at the same time.
func TestOneWatcher(t *testing.T) {
	dir := rootOf(t, t.TempDir())
	unlock, err := lockWatched(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockWatched(dir); err == nil {
		t.Error("a second watcher could lock the directory")
	}
	unlock()
	unlock, err = lockWatched(dir)
	if err != nil {
		t.Fatalf("locking the directory after the first watcher has unlocked it: %v", err)
	}
	unlock()
}
