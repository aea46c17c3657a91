package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings/audio"
)

// These are names in a watched directory.
const (
	doneFolder   = "done"           // the folder for stored files
	failedFolder = "failed"         // the folder for refused files
	watchLock    = ".selvage-watch" // the file that the watcher locks
)

// watchPause is the time between two scans of a watched directory.
const watchPause = time.Second

// maxRetry is the longest time after which a watcher tries again to store a file that stayed in
// place.
const maxRetry = time.Minute

// maxPrinted limits the number of files for which a watcher remembers what it printed, and when it will
// try again to store them.
const maxPrinted = 10_000

// errNotRegular is the error for a file that is not regular, such as a device or a pipe.
var errNotRegular = errors.New("not a regular file")

// errGrowing is the error for a file that was written to while it was read.
var errGrowing = errors.New("the file is still being written")

// A watcher stores the finished files of a directory as recordings, and moves the files to other
// folders. Other programs may write to the directory, so the watcher never follows links out of it.
type watcher struct {
	*importer
	dir     string // absolute path
	root    *os.Root
	settle  time.Duration // a file counts as finished after this time without changes
	printed map[string]string
	retries map[string]retry // files that stayed in place
	now     func() time.Time
}

// A retry is the next attempt to store a file.
type retry struct {
	at    time.Time
	delay time.Duration // since the previous attempt
}

// watch stores finished files until ctx is done. Each file is moved only after it is stored or
// refused. A file is identified by its path and contents, so a file that a crash left in place is not
// stored twice.
func (im *importer) watch(ctx context.Context, dir string, settle time.Duration) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding the directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	unlock, err := lockWatched(root)
	if err != nil {
		return err
	}
	defer unlock()

	w := &watcher{
		importer: im,
		dir:      dir,
		root:     root,
		settle:   settle,
		printed:  make(map[string]string),
		retries:  make(map[string]retry),
		now:      time.Now,
	}
	im.open = w.open
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchPause):
		}
	}
}

// lockWatched makes this process the only one that watches a directory.
func lockWatched(root *os.Root) (unlock func(), err error) {
	f, err := root.OpenFile(watchLock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = f.Close()
		return nil, fmt.Errorf("another process watches %s: %w", root.Name(), err)
	}
	if err != nil { // for example on a network file system without locks
		_ = f.Close()
		return nil, fmt.Errorf("locking %s: %w", root.Name(), err)
	}
	return func() { _ = f.Close() }, nil
}

// open opens a regular file of the directory.
func (w *watcher) open(path string) (*os.File, error) {
	f, err := w.root.OpenFile(w.rel(path), os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not block on a pipe
	if err != nil {
		return nil, err
	}
	if err := checkRegular(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// checkRegular returns an error unless f is a regular file.
func checkRegular(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errNotRegular
	}
	return nil
}

// rel returns the path of a file below the directory, relative to it.
func (w *watcher) rel(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, w.dir), string(filepath.Separator))
}

// look stores the files that are finished now.
func (w *watcher) look(ctx context.Context) error {
	return filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && path == w.dir:
			return err
		case err != nil: // for example, the switch has just moved the file
			w.tell(path, err)
			return nil
		case d.IsDir() && path != w.dir && w.isSkipped(path):
			return fs.SkipDir
		case !d.Type().IsRegular() || !isRecording(path) || !w.isDue(path) || !w.isSettled(path):
			return nil
		}
		return w.take(ctx, path)
	})
}

// isSkipped reports whether a directory is hidden, or is one of the folders for processed files.
func (w *watcher) isSkipped(dir string) bool {
	return strings.HasPrefix(filepath.Base(dir), ".") ||
		dir == filepath.Join(w.dir, doneFolder) || dir == filepath.Join(w.dir, failedFolder)
}

// isRecording reports whether a file may be stored. Programs hide files that they are still
// writing, or use a different extension for them.
func isRecording(path string) bool {
	return audio.IsName(path) && !strings.HasPrefix(filepath.Base(path), ".")
}

// isSettled reports whether a file, and the JSON file about it, have not changed for the settle
// time.
func (w *watcher) isSettled(path string) bool {
	for _, name := range append(sidecars(path), path) {
		info, err := w.root.Stat(w.rel(name))
		if err == nil && w.now().Sub(info.ModTime()) < w.settle {
			return false
		}
	}
	return true
}

// take stores a file, and moves it to the folder for stored or for refused files. If a file cannot be
// stored for a reason other than its contents, it stays in place.
func (w *watcher) take(ctx context.Context, path string) error {
	outcome, fault := w.importFile(ctx, path)
	folder := doneFolder
	if fault != nil {
		if !isFault(fault) {
			w.tell(path, fault)
			w.postpone(path)
			return ctx.Err()
		}
		folder = failedFolder
	}

	if err := w.move(path, folder, fault); err != nil {
		w.tell(path, err)
		w.postpone(path)
		return nil
	}
	delete(w.printed, path)
	delete(w.retries, path)
	return w.report(outcome, fault)
}

// isDue reports whether a file may be read now. A file that stays in place is not read every second,
// because that would keep the disk busy.
func (w *watcher) isDue(path string) bool {
	wait := w.retries[path].at.Sub(w.now())
	return wait <= 0 || wait > maxRetry // the clock may have been set back
}

// postpone makes the watcher wait before it tries again to store a file. Each wait is twice as long
// as the one before, up to maxRetry.
func (w *watcher) postpone(path string) {
	if len(w.retries) >= maxPrinted { // most of these files are gone
		clear(w.retries)
	}
	delay := min(max(2*w.retries[path].delay, watchPause), maxRetry)
	w.retries[path] = retry{at: w.now().Add(delay), delay: delay}
}

// isFault reports whether an error means that the file can never be stored.
func isFault(err error) bool {
	faults := []error{
		problem.Malformed,
		problem.Invalid,
		problem.Unsupported,
		problem.TooLarge,
		problem.Conflict,
		errSidecar,
	}
	for _, fault := range faults {
		if errors.Is(err, fault) {
			return true
		}
	}
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &wrongType)
}

// tell prints why a file stays in place. It prints nothing if it has already printed this reason for the
// file, or if the file is gone or still being written.
func (w *watcher) tell(path string, err error) {
	reason := rejectReason(err)
	if w.printed[path] == reason || errors.Is(err, errGrowing) || errors.Is(err, fs.ErrNotExist) {
		return
	}
	if len(w.printed) >= maxPrinted { // most of these files are gone; messages about the others are repeated
		clear(w.printed)
	}
	w.printed[path] = reason
	fmt.Fprintf(w.Stderr, "%s stays: %s\n", cli.Sanitize(path), cli.Sanitize(reason))
}

// move moves a file to a folder of the directory, and then moves the JSON file about it. If fault is not
// nil, move also writes the reason to a file next to them.
func (w *watcher) move(path, folder string, fault error) error {
	target := filepath.Join(folder, w.rel(path))
	if err := w.root.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	if _, err := w.root.Lstat(target); err == nil { // an earlier file had the same name
		ext := filepath.Ext(target)
		target = strings.TrimSuffix(target, ext) + w.now().UTC().Format("-20060102T150405.000000") + ext
	}

	if fault != nil {
		reason := []byte(rejectReason(fault) + "\n")
		if err := w.root.WriteFile(target+".reason.txt", reason, 0o600); err != nil {
			return err
		}
	}

	if err := w.root.Rename(w.rel(path), target); err != nil {
		return err
	}
	for i, sidecar := range sidecars(path) {
		err := w.root.Rename(w.rel(sidecar), sidecars(target)[i])
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
