// Package blob keeps immutable bytes in a directory, each under a key that
// somebody's row owns.
//
// Bytes appear whole or not at all, and before their row; nothing but a row
// keeps them alive. Whoever writes holds a lock (flock) on the file from its
// creation until the row is committed, so that [Dir.Sweep], in any process, can
// tell what is being written from what a crash left behind. Nothing outside the
// directory can be reached, whatever a key says or a link points at.
//
// A key may have small parts, such as what was learnt from its bytes while they
// came in. A part has a name, is written with its key and goes with it.
//
// Keys are UUIDs in text form. Those of version 7 order by time, and so do the
// folders they lie in.
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
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

// incoming is the folder of files that are still being written.
const incoming = "incoming"

// prefix is how many digits of a key name its folder: those of version 7 change
// every four and a half hours.
const prefix = 6

// A Dir is a directory of blobs. Its methods may be called at once, and several
// processes may share one.
type Dir struct {
	root *os.Root
}

// OpenDir opens a directory, and makes it where there is none.
func OpenDir(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making media directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening media directory: %w", err)
	}
	if err := root.MkdirAll(incoming, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("making media directory: %w", err), root.Close())
	}
	return &Dir{root: root}, nil
}

// Close lets go of the directory.
func (d *Dir) Close() error { return d.root.Close() }

// Probe reports whether bytes can be written: it writes one, and removes it.
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

// Open returns the bytes of a key as an *os.File. An absent key is an
// fs.ErrNotExist.
func (d *Dir) Open(key string) (io.ReadSeekCloser, error) {
	name, err := nameOf(key)
	if err != nil {
		return nil, err
	}
	// Regular files never block. To say so spares asking whether they can be waited for,
	// which are four system calls.
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unavailable(fmt.Errorf("opening blob: %w", err))
	}
	return f, nil
}

// ReadPart returns a part of a key. An absent one is an fs.ErrNotExist.
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

// Remove deletes the bytes of a key, and these parts of it; what is absent is no
// error. Who has the bytes open may read on. Parts that are not named here are left
// to Sweep.
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

// Name returns the file of a key within its directory, for a server that sends files
// itself.
func Name(key string) string { return path.Join(key[:prefix], key) }

// nameOf returns the file of a key.
func nameOf(key string) (string, error) {
	if u, err := uuid.Parse(key); err != nil || u.String() != key {
		return "", fmt.Errorf("opening blob: %q is not a key: %w", key, fs.ErrNotExist)
	}
	return path.Join(folderOf(key), key), nil
}

func folderOf(key string) string { return key[:prefix] }

// partMark stands between a key and the name of a part, which has small letters
// only.
const partMark = "."

// partOf returns the file of a part.
func partOf(key, part string) (string, error) {
	name, err := nameOf(key)
	if err != nil {
		return "", err
	}
	if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz") != "" {
		return "", fmt.Errorf("opening blob: %q is no name of a part: %w", part, fs.ErrNotExist)
	}
	return name + partMark + part, nil
}

// keyOf returns the key that a file of a folder belongs to; ok is false where it is
// none of ours.
func keyOf(folder, file string) (key string, ok bool) {
	key, part, isPart := strings.Cut(file, partMark)
	name, err := nameOf(key)
	if err == nil && isPart {
		name, err = partOf(key, part)
	}
	return key, err == nil && name == path.Join(folder, file)
}

// away are the errors of a disk or a mount that does not do what it should.
var away = []error{
	syscall.EROFS, syscall.EIO, syscall.EACCES, syscall.EPERM, syscall.ESTALE, syscall.ENODEV, syscall.ENXIO,
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
}

// unavailable turns the error of a disk that is full, or fails, into a problem;
// others stay.
func unavailable(err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	p := &problem.Error{Kind: problem.Unavailable, Code: "no_space",
		Message: "there is no space left to store this", RetryAfter: 10 * time.Second}
	switch {
	case is(syscall.ENOSPC) || is(syscall.EDQUOT):
	case slices.ContainsFunc(away, is):
		p.Code, p.Message = "temporarily_unavailable", "recordings cannot be stored or read at the moment"
	default:
		return err
	}
	return errors.Join(p, err)
}
