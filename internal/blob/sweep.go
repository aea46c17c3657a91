package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"syscall"
)

// chunk is the number of files that a sweep looks up in one query.
const chunk = 1000

// InUse returns the keys between first and last, both included, that a row owns.
type InUse = func(ctx context.Context, first, last string) ([]string, error)

// filesPerSweep is the number of files after which a sweep stops. The next sweep continues there, so
// that the work of a sweep does not grow with the number of blobs.
const filesPerSweep = 100_000

// Sweep deletes files without an owner: files that a killed process was writing, and files whose
// key is not in use. It may run at any time, and in several processes at the same time.
//
// The first call looks at all files. Each later call looks at all unfinished files, and at about
// filesPerSweep others, beginning with the folder before which the previous call stopped.
func (d *Dir) Sweep(ctx context.Context, inUse InUse) error {
	folders, limit, err := d.foldersToSweep()
	if err != nil {
		return err
	}

	errs := []error{d.sweepIncoming(ctx)}
	next := ""
	visited := 0
	for _, folder := range folders {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if visited >= limit {
			next = folder
			break
		}
		files, err := d.list(folder)
		errs = append(errs, err)
		visited += len(files)
		for some := range slices.Chunk(files, chunk) {
			errs = append(errs, d.sweepFolder(ctx, folder, some, inUse))
		}
	}

	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swept = true
	d.next = next
	return errors.Join(errs...)
}

// foldersToSweep returns the folders of blobs in the order in which a sweep looks at them, and the
// number of files after which the sweep stops.
func (d *Dir) foldersToSweep() (folders []string, limit int, err error) {
	folders, err = d.list(".")
	if err != nil {
		return nil, 0, err
	}
	folders = slices.DeleteFunc(folders, func(folder string) bool {
		return len(folder) != prefix // incoming, or a folder of another program, such as lost+found
	})

	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.swept {
		return folders, math.MaxInt, nil
	}
	first, _ := slices.BinarySearch(folders, d.next)
	return slices.Concat(folders[first:], folders[:first]), cmp.Or(d.atOnce, filesPerSweep), nil
}

// list returns the names in a folder, sorted.
func (d *Dir) list(folder string) ([]string, error) {
	dir, err := d.root.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("opening folder: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing folder: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// sweepIncoming deletes unfinished files that no process is writing. It need not look for rows, because
// no row owns an unfinished file.
func (d *Dir) sweepIncoming(ctx context.Context) error {
	files, err := d.list(incoming)
	errs := []error{err}
	isOrphaned := func() (bool, error) { return true, ctx.Err() }
	for _, file := range files {
		errs = append(errs, d.removeUnowned(path.Join(incoming, file), isOrphaned))
	}
	return errors.Join(errs...)
}

// sweepFolder deletes the files whose key is not in use. files must be sorted. Each file has its
// own lock, so a blob and its parts are checked one by one.
func (d *Dir) sweepFolder(ctx context.Context, folder string, files []string, inUse InUse) error {
	ours := slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		_, ok := keyOf(folder, file)
		return !ok
	})
	if len(ours) == 0 {
		return nil
	}

	first, _ := keyOf(folder, ours[0])
	last, _ := keyOf(folder, ours[len(ours)-1])
	used, err := inUse(ctx, first, last)
	if err != nil {
		return err
	}
	slices.Sort(used)

	var errs []error
	for _, file := range ours {
		key, _ := keyOf(folder, file)
		if _, found := slices.BinarySearch(used, key); found {
			continue
		}
		isOrphaned := func() (bool, error) {
			used, err := inUse(ctx, key, key)
			return len(used) == 0, err
		}
		errs = append(errs, d.removeUnowned(path.Join(folder, file), isOrphaned))
	}
	return errors.Join(errs...)
}

// removeUnowned locks a file, and deletes it if isOrphaned returns true. It does nothing if a writer,
// in any process, has locked the file.
func (d *Dir) removeUnowned(name string, isOrphaned func() (bool, error)) error {
	f, err := d.root.OpenFile(name, os.O_RDWR, 0) // on NFS, only files open for writing can be locked (flock(2))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening blob: %w", err)
	}
	defer f.Close()

	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // a process is still writing it
	}
	if err != nil {
		return fmt.Errorf("locking blob: %w", err)
	}

	if orphan, err := isOrphaned(); err != nil || !orphan {
		return err
	}
	return d.remove(name)
}
