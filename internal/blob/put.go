package blob

import (
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"
)

// Put stores what write puts into the file, under a key that was never used
// before. Once the bytes and their name are synced to disk it calls commit, which
// makes the row that owns them. If write fails, or commit does not want to keep
// the bytes, they are gone when Put returns. If commit fails, nobody knows
// whether there is a row, and Sweep decides.
func (d *Dir) Put(key string, write func(f *os.File) error, commit func() (keep bool, err error)) (err error) {
	name, err := nameOf(key)
	if err != nil {
		return err
	}
	f, err := d.create(path.Join(incoming, key))
	if err != nil {
		return unavailable(err)
	}
	// Closing gives up the lock: only after the row is there, or the file is gone.
	defer func() { _ = f.Close() }()
	if err := d.settle(f, name, write); err != nil {
		return errors.Join(unavailable(err), d.remove(path.Join(incoming, key)))
	}
	keep, err := commit()
	if err != nil || keep {
		return err
	}
	return d.remove(name)
}

// create makes a file and locks it. Between the two a sweep may take it away;
// then it makes another.
func (d *Dir) create(name string) (*os.File, error) {
	for {
		f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("creating blob: %w", err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("locking blob: %w", err), f.Close(), d.remove(name))
		}
		if d.names(name, f) {
			return f, nil
		}
		_ = f.Close() // it has no name and no bytes
	}
}

// names tells whether a name is still that of an open file.
func (d *Dir) names(name string, f *os.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := d.root.Lstat(name)
	return err == nil && os.SameFile(mine, named)
}

// settle fills the file and moves it to its place, each step synced to disk.
func (d *Dir) settle(f *os.File, name string, write func(f *os.File) error) error {
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing blob: %w", err)
	}
	folder, key := path.Split(name)
	folder = path.Clean(folder)
	if err := d.mkdir(folder); err != nil {
		return err
	}
	if err := d.root.Rename(path.Join(incoming, key), name); err != nil {
		return fmt.Errorf("naming blob: %w", err)
	}
	if err := d.sync(folder); err != nil {
		return errors.Join(err, d.remove(name))
	}
	return nil
}

// mkdir makes a folder whose own name is synced.
func (d *Dir) mkdir(folder string) error {
	err := d.root.Mkdir(folder, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making folder: %w", err)
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
