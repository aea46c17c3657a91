// Package blob stores immutable bytes in a directory. Each blob has a key, and a database row that
// owns the key.
//
// A blob appears only as a whole, and before its row is committed. [Dir.Sweep] deletes blobs
// without a row. A writer holds a lock (flock) on the file from its creation until the row is
// committed, so that Sweep, in any process, can distinguish a write in progress from the remains of a
// crash. Keys and symbolic links cannot lead outside the directory.
//
// A blob may have small parts, such as facts learned from its bytes while they arrived. Each part
// has a name, and is written and deleted together with the blob.
//
// Keys are UUIDs in text form. UUIDs of version 7 sort by time, and so do the folders that hold
// them.
package blob

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

// incoming is the folder of files that are still being written.
const incoming = "incoming"

// prefix is how many hex digits of a key make up the name of its folder. With UUIDs of version 7, a
// new folder begins about every 4.7 hours.
const prefix = 6

// A Dir is a directory of blobs. Its methods are safe for concurrent use, and several
// processes may share one directory.
type Dir struct {
	root     *os.Root
	reserved int64 // free bytes that Put leaves on the disk

	mu     sync.Mutex // guards the fields below
	swept  bool       // whether a Sweep has looked at all files
	next   string     // the folder with which the next Sweep begins
	atOnce int        // number of files after which a Sweep stops; 0 means filesPerSweep
}

// OpenDir opens dir, and creates it if it does not exist.
func OpenDir(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating media directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening media directory: %w", err)
	}
	if err := root.MkdirAll(incoming, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("creating media directory: %w", err), root.Close())
	}
	return &Dir{root: root}, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }

// Probe checks that files can be written, by writing one byte and removing it.
func (d *Dir) Probe() error {
	name := path.Join(incoming, "probe-"+rand.Text())
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing to media directory: %w", err)
	}
	_, err = f.Write([]byte{0})
	if err = errors.Join(err, f.Close(), d.remove(name)); err != nil {
		return fmt.Errorf("writing to media directory: %w", err)
	}
	return nil
}

// Open returns the bytes of a key as an *os.File. For an unknown key, the error is fs.ErrNotExist.
func (d *Dir) Open(key string) (io.ReadSeekCloser, error) {
	name, err := nameOf(key)
	if err != nil {
		return nil, err
	}
	// Regular files never block. O_NONBLOCK saves four system calls with which the runtime would
	// otherwise find out whether this file can block.
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unavailable(fmt.Errorf("opening blob: %w", err))
	}
	return f, nil
}

// ReadPart returns a part of a key. For an unknown part, the error is fs.ErrNotExist.
func (d *Dir) ReadPart(key, part string) ([]byte, error) {
	name, err := partOf(key, part)
	if err != nil {
		return nil, err
	}
	content, err := d.root.ReadFile(name)
	if err != nil {
		return nil, unavailable(fmt.Errorf("reading part of blob: %w", err))
	}
	return content, nil
}

// Remove deletes the bytes of a key and the given parts. Missing files are not an error. A reader
// that has the file open can continue reading. Sweep deletes any other parts.
func (d *Dir) Remove(key string, parts ...string) error {
	var errs []error
	for _, part := range parts {
		name, err := partOf(key, part)
		if err == nil {
			err = d.remove(name)
		}
		errs = append(errs, err)
	}
	name, err := nameOf(key)
	if err == nil {
		err = d.remove(name)
	}
	return errors.Join(append(errs, err)...)
}

func (d *Dir) remove(name string) error {
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing blob: %w", err)
	}
	return nil
}

// Name returns the path of a key's file within the directory, for a web server that sends the files
// itself.
func Name(key string) string { return path.Join(key[:prefix], key) }

// nameOf returns the path of a key's file, or fs.ErrNotExist if key is not valid.
func nameOf(key string) (string, error) {
	if u, err := uuid.Parse(key); err != nil || u.String() != key {
		return "", fmt.Errorf("opening blob: %q is not a key: %w", key, fs.ErrNotExist)
	}
	return path.Join(folderOf(key), key), nil
}

func folderOf(key string) string { return key[:prefix] }

// partMark separates a key from the name of a part. Part names consist of lowercase letters.
const partMark = "."

// partOf returns the path of a part's file.
func partOf(key, part string) (string, error) {
	name, err := nameOf(key)
	if err != nil {
		return "", err
	}
	if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz") != "" {
		return "", fmt.Errorf("opening blob: %q is not a valid part name: %w", part, fs.ErrNotExist)
	}
	return name + partMark + part, nil
}

// keyOf returns the key that the file in folder belongs to. ok is false if the file is not part of
// a blob.
func keyOf(folder, file string) (key string, ok bool) {
	key, part, isPart := strings.Cut(file, partMark)
	name, err := nameOf(key)
	if err == nil && isPart {
		name, err = partOf(key, part)
	}
	return key, err == nil && name == path.Join(folder, file)
}

// outages lists the errors of a failing disk or mount, and of a machine that has run out of file
// descriptors or memory.
var outages = []error{
	syscall.EROFS, syscall.EIO, syscall.EACCES, syscall.EPERM, syscall.ESTALE, syscall.ENODEV, syscall.ENXIO,
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
}

// unavailable converts the errors of a full disk, and those listed in outages, to a problem. It
// returns other errors unchanged.
func unavailable(err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	p := &problem.Error{
		Kind:       problem.Unavailable,
		Code:       "no_space",
		Message:    "the disk is full",
		RetryAfter: 10 * time.Second,
	}
	switch {
	case is(syscall.ENOSPC) || is(syscall.EDQUOT):
	case slices.ContainsFunc(outages, is):
		p.Code, p.Message = "temporarily_unavailable", "recordings cannot be stored or read at the moment"
	default:
		return err
	}
	return errors.Join(p, err)
}
