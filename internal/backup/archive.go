package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"filippo.io/age"
)

// An Archive is a backup that can be read.
type Archive struct {
	dir  Dir
	Name string
}

// Find returns the archive in a file. In a directory, it returns the newest archive that is not
// dated in the future.
func Find(file string) (Archive, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Archive{}, fmt.Errorf("opening the backup: %w", err)
	}

	dir, name := split(file)
	if info.IsDir() {
		dir, name = file, ""
	}
	files, err := OpenFolder(dir)
	if err != nil {
		return Archive{}, err
	}
	a := Archive{dir: Dir{files}, Name: name}
	if name != "" {
		return a, nil
	}

	backups, err := a.dir.List()
	if err != nil {
		return a, err
	}
	newest, found, future := Newest(backups)
	switch {
	case !found && len(future) > 0:
		return a, fmt.Errorf("all backups in %s are dated in the future, such as %s: name one of them",
			file, future[0].Name)
	case !found:
		return a, fmt.Errorf("%s contains no backup: %w", file, fs.ErrNotExist)
	}
	a.Name = newest.Name
	return a, nil
}

// Read reads the archive and compares everything in it with its manifest. The bytes of media that
// are outside the archive are not read; see [Archive.Bytes].
func (a Archive) Read(identities []age.Identity, v Visitor) (Header, Manifest, error) {
	file, err := a.dir.files.Open(a.Name)
	if err != nil {
		return Header{}, Manifest{}, fmt.Errorf("opening the backup: %w", err)
	}
	defer file.Close()
	return readArchive(file, identities, v)
}

// Bytes calls do with a reader of the bytes of o, which are outside the archive. h is the archive's
// header. If the size or the SHA-256 differs from those in o, Bytes returns a [Mismatch], but only
// after do has received the bytes. It also returns a Mismatch if the bytes cannot be opened, read or
// decrypted, whatever error do returns.
func (a Archive) Bytes(h Header, o Object, identities []age.Identity, do func(io.Reader) error) error {
	if !isSHA256(o.SHA256) {
		return fmt.Errorf("%s has an invalid SHA-256 %q", o.name(), o.SHA256)
	}
	file, err := a.dir.files.Open(mediaFile(o.SHA256, h.Recipients))
	if err != nil {
		return &Mismatch{[]error{fmt.Errorf("the bytes of %s cannot be read: %w", o.name(), err)}}
	}
	defer file.Close()
	content, err := age.Decrypt(file, identities...)
	if err != nil {
		return &Mismatch{[]error{fmt.Errorf("decrypting the bytes of %s: %w", o.name(), err)}}
	}

	sum := &counted{w: io.Discard, hash: sha256.New()}
	source := &errorKeeper{r: content}
	both := io.TeeReader(source, sum)
	err = do(both)
	if err == nil {
		_, err = io.Copy(io.Discard, both)
	}
	if source.err != nil {
		return &Mismatch{[]error{fmt.Errorf("decrypting the bytes of %s: %w", o.name(), source.err)}}
	}
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.hash.Sum(nil)); got != o.SHA256 || sum.n != o.Bytes {
		err := fmt.Errorf("%s has %d bytes with SHA-256 %s, not %d with %s",
			o.name(), sum.n, got, o.Bytes, o.SHA256)
		return &Mismatch{[]error{err}}
	}
	return nil
}

// An errorKeeper is a reader that keeps the error with which reading failed.
type errorKeeper struct {
	r   io.Reader
	err error // never io.EOF
}

func (k *errorKeeper) Read(b []byte) (int, error) {
	n, err := k.r.Read(b)
	if err != nil && err != io.EOF {
		k.err = err
	}
	return n, err
}

// Verify reads the archive and all its media, and compares them with the manifest. It calls
// progress for each table and each media file.
func (a Archive) Verify(
	ctx context.Context, identities []age.Identity, progress func(done string),
) (Header, Manifest, error) {
	var h Header
	return a.Read(identities, Visitor{
		Header: func(found Header) error { h = found; return ctx.Err() },
		Rows: func(t Table, rows iter.Seq2[[]any, error]) error {
			for _, err := range rows {
				if err = errors.Join(err, ctx.Err()); err != nil {
					return err
				}
			}
			progress(t.Name)
			return nil
		},
		Bytes: func(Object, io.Reader) error { return ctx.Err() },
		Object: func(o Object) error {
			progress(o.name())
			if h.Inside || o.absent() {
				return ctx.Err()
			}
			return errors.Join(ctx.Err(), a.Bytes(h, o, identities, func(io.Reader) error { return nil }))
		},
	})
}

// Check compares the archive with the SHA-256 in its summary. It needs no identity, so it cannot
// read the media outside the archive. Check reveals damage, but not changes by someone who can also
// change the summary. If the archive has a different SHA-256, the error is a [Mismatch].
func (a Archive) Check(ctx context.Context) error {
	s, err := a.dir.readSummary(Summary{Name: a.Name})
	if err != nil {
		return err
	}
	if s.SHA256 == "" {
		return fmt.Errorf("the summary %s is missing or damaged", a.Name+summarySuffix)
	}
	file, err := a.dir.files.Open(a.Name)
	if err != nil {
		return fmt.Errorf("opening the backup: %w", err)
	}
	defer file.Close()
	return compareSHA256(contextReader{ctx, file}, a.Name, s.SHA256)
}

// A contextReader is a reader that fails when its context is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
