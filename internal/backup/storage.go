package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A Storage holds the files of backups by name, such as media/ab/abcd.age. Files do not change
// after they were written. [OpenFolder] returns a Storage in a directory; another implementation
// could use a bucket of an object store.
type Storage interface {
	// Write creates a file and calls write to fill it. The file appears once it is complete and on
	// disk.
	Write(name string, write func(io.Writer) error) error
	// Open opens a file. If the file does not exist, the error is fs.ErrNotExist.
	Open(name string) (io.ReadCloser, error)
	// Use reports whether a file exists, and records that it was used now.
	Use(name string) (exists bool, err error)
	// Files calls do for each file in the folder and its subfolders. For the folder ".", it calls
	// do only for the files at the top level.
	Files(folder string, do func(f File) error) error
	// Remove deletes a file. If the file does not exist, Remove returns nil.
	Remove(name string) error
	// RemoveUnfinished deletes what calls of Write have left behind because of a crash. It must not run
	// while backups are written to the Storage.
	RemoveUnfinished() error
}

// A File is a file in a Storage.
type File struct {
	Name string
	Size int64
	Used time.Time // when the file was created or last used
}

// A folder is a Storage in a directory.
type folder struct{ root *os.Root }

// OpenFolder opens a directory as a Storage, and creates it if it does not exist.
func OpenFolder(dir string) (Storage, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating backup directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening backup directory: %w", err)
	}
	return folder{root}, nil
}

// partMark is the suffix in the names of files that are being written.
const partMark = ".part"

func (f folder) Write(name string, write func(io.Writer) error) (err error) {
	if err := f.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	part := name + partMark
	file, err := f.root.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	err = write(file)
	if err == nil {
		err = file.Sync()
	}

	if err = errors.Join(err, file.Close()); err == nil {
		err = f.root.Rename(part, name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), f.Remove(part))
	}
	return f.sync(path.Dir(name))
}

// sync makes the file names in a directory durable.
func (f folder) sync(name string) error {
	dir, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (f folder) Open(name string) (io.ReadCloser, error) { return f.root.Open(name) }

func (f folder) Use(name string) (bool, error) {
	now := time.Now()
	err := f.root.Chtimes(name, now, now)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (f folder) Files(prefix string, do func(File) error) error {
	return f.walk(prefix, func(name string, e fs.DirEntry) error {
		if e.IsDir() {
			if prefix == "." && name != "." {
				return fs.SkipDir // list only the files at the top level
			}
			return nil
		}

		info, err := e.Info()
		if err != nil || strings.HasSuffix(name, partMark) {
			return err
		}
		return do(File{Name: name, Size: info.Size(), Used: info.ModTime()})
	})
}

// walk calls do for everything in a folder, like [fs.WalkDir]. It ignores what is removed meanwhile.
func (f folder) walk(folder string, do func(name string, e fs.DirEntry) error) error {
	err := fs.WalkDir(f.root.FS(), folder, func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has already been removed
		}
		if err != nil {
			return err
		}
		return do(name, e)
	})
	if err != nil {
		return fmt.Errorf("listing backups: %w", err)
	}
	return nil
}

func (f folder) RemoveUnfinished() error {
	return f.walk(".", func(name string, e fs.DirEntry) error {
		isMedia := strings.HasPrefix(name+"/", mediaPrefix)
		if e.IsDir() {
			if name == "." || isMedia {
				return nil
			}
			return fs.SkipDir // a folder of another program, such as lost+found
		}

		file, isPart := strings.CutSuffix(name, partMark)
		if !isPart {
			return nil
		}
		if isMedia || isArchive(file) {
			return f.Remove(name)
		}
		return nil // a backup in a single file, which may still be written
	})
}

func (f folder) Remove(name string) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a file of a backup: %w", err)
	}
	return nil
}

// split returns the directory and the name of a file.
func split(file string) (dir, name string) { return filepath.Dir(file), filepath.Base(file) }
