package blob

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// A Sharer is a [Store] that can keep the same bytes once for several keys.
type Sharer interface {
	// Share may only be called within commit of a Put with the key to. If the bytes of the key from
	// are the same, both keys have them afterwards, and they are stored once. Removing one key does
	// not affect the other. If the key from is unknown, or has other bytes, Share changes nothing.
	Share(from, to string) error
}

// Share implements [Sharer] by a hard link. The file system counts the names of a file, so that a
// removal at the same time takes a name, never the bytes. Until the file of the Put that shares is
// closed, a shared lock protects the file from sweeps under its new name.
func (d *Dir) Share(from, to string) error {
	donor, errFrom := nameOf(from)
	target, errTo := nameOf(to)
	if err := errors.Join(errFrom, errTo); err != nil {
		return err
	}
	own, err := d.root.Open(target)
	if err != nil {
		return fmt.Errorf("sharing blob: %w", err)
	}
	defer own.Close()
	link := path.Join(incoming, to+"-"+rand.Text())
	if err := d.root.Link(donor, link); err != nil {
		return nil // it was deleted, or the file system has no links, or no more for this file
	}
	shared, err := d.root.Open(link)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a sweep removed the link
	}
	if err != nil {
		return errors.Join(fmt.Errorf("sharing blob: %w", err), d.remove(link))
	}

	same, err := sameBytes(own, shared)
	if err == nil && same {
		err = d.replace(link, target, shared)
		d.hold(to, shared)
		return err
	}
	return errors.Join(err, shared.Close(), d.remove(link))
}

// hold keeps the locked file of a key open until its Put ends.
func (d *Dir) hold(key string, f *os.File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shared[key] = f
}

// release closes the file that hold keeps open, if there is one.
func (d *Dir) release(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, ok := d.shared[key]; ok {
		_ = f.Close()
		delete(d.shared, key)
	}
}

// replace moves the locked file with the name link to the name of another file.
func (d *Dir) replace(link, target string, f *os.File) error {
	// Sweeps take an exclusive lock, and others that share the file a shared one. Only the Put that
	// stores it first may hold it exclusively, for a moment.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
		return errors.Join(fmt.Errorf("locking blob: %w", err), d.remove(link))
	}
	if !d.names(link, f) {
		return nil // a sweep removed the link before it was locked
	}
	if err := d.root.Rename(link, target); err != nil {
		return errors.Join(fmt.Errorf("sharing blob: %w", err), d.remove(link))
	}
	return d.sync(path.Dir(target))
}

// sameBytes reports whether two files have the same content. It compares them, because a file may have
// been damaged since its checksum was stored.
func sameBytes(a, b *os.File) (bool, error) {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	if err := errors.Join(errA, errB); err != nil {
		return false, fmt.Errorf("comparing blobs: %w", err)
	}
	if infoA.Size() != infoB.Size() {
		return false, nil
	}
	bufA, bufB := make([]byte, 128<<10), make([]byte, 128<<10)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		if n != m || !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		switch {
		case errors.Is(errA, io.EOF) || errors.Is(errA, io.ErrUnexpectedEOF):
			return true, nil
		case errA != nil || errB != nil:
			return false, fmt.Errorf("comparing blobs: %w", errors.Join(errA, errB))
		}
	}
}
