package blob

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"syscall"
)

// Put implements [Store]. The bytes and the file names are synced to disk before commit is called.
func (d *Dir) Put(
	key string,
	write func(f File) (parts map[string][]byte, err error),
	commit func() (keep bool, err error),
) error {
	if _, err := nameOf(key); err != nil {
		return err
	}
	if err := d.checkFree(); err != nil {
		return unavailable(err)
	}

	w := writing{dir: d, key: key}
	// Closing the files releases their locks. Close them only after the row has been committed or the
	// files have been deleted.
	defer w.close()

	if err := w.settle(write); err != nil {
		return errors.Join(unavailable(err), w.remove())
	}
	keep, err := commit()
	if err != nil || keep {
		return err
	}
	return w.remove()
}

// writing holds the files of a Put in progress. Each file is locked.
type writing struct {
	dir   *Dir
	key   string
	files []*os.File
	names []string // the current name of each file
}

func (w *writing) close() {
	for _, f := range w.files {
		_ = f.Close()
	}
}

// remove deletes all files. Parts are deleted before the blob to which they belong.
func (w *writing) remove() error {
	var errs []error
	for _, name := range slices.Backward(w.names) {
		errs = append(errs, w.dir.remove(name))
	}
	return errors.Join(errs...)
}

// settle fills the files, syncs them, and moves them to their final names.
func (w *writing) settle(write func(f File) (map[string][]byte, error)) error {
	var parts map[string][]byte
	err := w.add(w.key, func(f *os.File) (err error) {
		parts, err = write(f)
		return err
	})
	if err != nil {
		return err
	}

	for part, content := range parts {
		if _, err := partOf(w.key, part); err != nil {
			return err
		}
		err := w.add(w.key+partMark+part, func(f *os.File) error {
			_, err := f.Write(content)
			return err
		})
		if err != nil {
			return fmt.Errorf("writing %s: %w", part, err)
		}
	}
	return w.name()
}

// add creates a file and fills it.
func (w *writing) add(file string, fill func(f *os.File) error) error {
	name := path.Join(incoming, file)
	f, err := w.dir.create(name)
	if err != nil {
		return err
	}
	w.files, w.names = append(w.files, f), append(w.names, name)
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing blob: %w", err)
	}
	return nil
}

// name moves the files to their final names: the blob first, then its parts.
func (w *writing) name() error {
	folder := folderOf(w.key)
	if err := w.dir.mkdir(folder); err != nil {
		return err
	}
	for i, from := range w.names {
		to := path.Join(folder, path.Base(from))
		if err := w.dir.root.Rename(from, to); err != nil {
			return fmt.Errorf("naming blob: %w", err)
		}
		w.names[i] = to
	}
	return w.dir.sync(folder)
}

// create creates a file and locks it. If a sweep deletes the file before it is locked, create tries
// again.
func (d *Dir) create(name string) (*os.File, error) {
	for {
		f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("creating blob: %w", err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("locking blob: %w", err), f.Close(), d.remove(name))
		}
		if d.isNameOf(name, f) {
			return f, nil
		}
		_ = f.Close() // a sweep deleted the file before it was locked
	}
}

// isNameOf reports whether name still refers to the open file f.
func (d *Dir) isNameOf(name string, f *os.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := d.root.Lstat(name)
	return err == nil && os.SameFile(mine, named)
}

// mkdir creates a folder and syncs its parent directory.
func (d *Dir) mkdir(folder string) error {
	err := d.root.Mkdir(folder, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating folder: %w", err)
	}
	return d.sync(".")
}

// sync makes the names in a folder durable.
func (d *Dir) sync(folder string) error {
	dir, err := d.root.Open(folder)
	if err != nil {
		return fmt.Errorf("opening folder: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("syncing folder: %w", err)
	}
	return nil
}

// Restore writes a file from a backup: the bytes of a key or, if part is not "", one of its parts.
// The directory must not be in use. The file is durable after the caller has called [Dir.Settle].
func (d *Dir) Restore(key, part string, write func(w io.Writer) error) (err error) {
	name, err := nameOf(key)
	if part != "" {
		name, err = partOf(key, part)
	}
	if err != nil {
		return err
	}

	if err := d.root.Mkdir(folderOf(key), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("creating folder: %w", err)
	}
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("restoring blob: %w", err)
	}
	return errors.Join(write(f), f.Close())
}

// Settle returns once all files that Restore has written are durable.
func (d *Dir) Settle() { syscall.Sync() }
