package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"filippo.io/age"
)

// A Visitor receives the contents of an archive while it is read. The contents are known to be
// intact only after the whole archive was read without an error.
type Visitor struct {
	Header func(Header) error
	// Rows is called for each table that has rows, in the order of the header. The function must read
	// all rows.
	Rows func(t Table, rows iter.Seq2[[]any, error]) error
	// Bytes is called for each object whose bytes are inside the archive. Only the object's key and
	// part are set, because the archive lists the objects after their bytes.
	Bytes func(o Object, content io.Reader) error
	// Object is called for each object in the archive's list.
	Object func(Object) error
}

// These limit what is read into memory, since anyone may have written the archive.
const (
	maxJSON = 1 << 20  // bytes of the header, and of the manifest
	maxLine = 16 << 20 // bytes of all lines in one entry
)

// ErrOtherRecipients is returned when none of the identities can decrypt an archive.
var ErrOtherRecipients = errors.New("the backup is encrypted for other recipients: this identity cannot decrypt it")

// readArchive reads an archive and compares it with its manifest.
func readArchive(in io.Reader, identities []age.Identity, v Visitor) (Header, Manifest, error) {
	decrypted, err := age.Decrypt(in, identities...)
	var stranger *age.NoIdentityMatchError
	if errors.As(err, &stranger) {
		return Header{}, Manifest{}, ErrOtherRecipients
	}
	if err != nil {
		return Header{}, Manifest{}, fmt.Errorf("decrypting: %w", err)
	}
	r := &reader{Visitor: v, tar: tar.NewReader(decrypted), inside: make(map[string]Object), covered: newCovered()}
	manifest, err := r.read()
	if err != nil {
		return r.header, manifest, err
	}
	// Reading to the end of the encrypted data proves that the archive was not truncated.
	if _, err := io.Copy(io.Discard, decrypted); err != nil {
		return r.header, manifest, fmt.Errorf("decrypting: %w", err)
	}
	return r.header, manifest, nil
}

// A reader reads an archive. A method that reads entries begins with the current entry, and afterwards
// the current entry is the first one that the method has not read.
type reader struct {
	Visitor
	tar   *tar.Reader
	entry *tar.Header // the current entry; nil after the last one

	header  Header
	found   Manifest // sums of the contents that have been read
	covered covered  // texts that the authentication code covers
	// inside holds, by entry name, the objects whose bytes have been read, but which have not been
	// listed yet.
	inside map[string]Object
}

// advance makes the next entry the current one.
func (r *reader) advance() error {
	r.entry = nil
	next, err := r.tar.Next()
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	r.entry = next
	return nil
}

var errIncomplete = errors.New("the archive is not complete: its manifest is missing")

// read reads all entries, and returns the manifest that the contents were compared with.
func (r *reader) read() (Manifest, error) {
	if err := r.readHeader(); err != nil {
		return Manifest{}, err
	}
	if err := r.Header(r.header); err != nil {
		return Manifest{}, err
	}

	for _, t := range r.header.Tables {
		if err := r.readTable(t); err != nil {
			return Manifest{}, fmt.Errorf("reading table %s: %w", t.Name, err)
		}
	}
	if err := r.readMedia(); err != nil {
		return Manifest{}, err
	}

	manifest, err := r.readManifest()
	if err != nil {
		return Manifest{}, err
	}
	return manifest, r.compare(manifest)
}

// readHeader reads the first entry.
func (r *reader) readHeader() error {
	if err := r.advance(); err != nil {
		return err
	}
	if r.entry == nil || r.entry.Name != headerName {
		return errors.New("this is not a backup of selvage: the header is missing")
	}

	if err := r.readJSON(&r.header); err != nil {
		return err
	}
	if r.header.Format != format || r.header.Version != version {
		return fmt.Errorf("the backup has the format %q, version %d; this selvage reads %q, version %d",
			r.header.Format, r.header.Version, format, version)
	}
	return nil
}

// readManifest reads the manifest and its authentication code, which are the last entries.
func (r *reader) readManifest() (Manifest, error) {
	if r.entry == nil {
		return Manifest{}, errIncomplete
	}
	if r.entry.Name != manifestName {
		return Manifest{}, fmt.Errorf("the archive has an unknown entry %q", r.entry.Name)
	}

	var m Manifest
	if err := r.readJSON(&m); err != nil {
		return Manifest{}, err
	}
	m.covered = r.covered.sum.Sum(nil)

	code, err := r.readCode()
	if err != nil {
		return Manifest{}, err
	}
	m.code = code
	if r.entry != nil {
		return Manifest{}, fmt.Errorf("the archive has an entry %q after its authentication code", r.entry.Name)
	}
	return m, nil
}

// compare returns an error if the contents that were read differ from the manifest.
func (r *reader) compare(want Manifest) error {
	err := Compare(r.found.Tables, want.Tables)
	if r.found.Media != want.Media {
		err = errors.Join(err, fmt.Errorf("the media is %+v, not %+v", r.found.Media, want.Media))
	}
	for name := range r.inside {
		err = errors.Join(err, fmt.Errorf("%s is not listed", name))
	}
	if err != nil {
		return &Mismatch{[]error{err}}
	}
	return nil
}

// readJSON decodes the current entry, adds it to the texts that the authentication code covers, and
// advances to the next entry.
func (r *reader) readJSON(v any) error {
	text, err := io.ReadAll(io.LimitReader(r.tar, maxJSON))
	if err != nil {
		return fmt.Errorf("reading %s: %w", r.entry.Name, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("reading %s: %w", r.entry.Name, err)
	}
	r.covered.add(text)
	return r.advance()
}

// readMedia reads the bytes of the objects and their list.
func (r *reader) readMedia() error {
	l := &lineReader{r: r, prefix: objectsPrefix, hash: sha256.New()}
	for r.entry != nil && r.entry.Name != manifestName {
		name := r.entry.Name // read now, because there may be no entry after an error
		switch {
		case strings.HasPrefix(name, mediaPrefix):
			if err := r.readBytes(); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
		case strings.HasPrefix(name, objectsPrefix):
			if err := r.readObjects(l); err != nil {
				return fmt.Errorf("reading the list of media: %w", err)
			}
		default:
			return fmt.Errorf("the archive has an unknown entry %q", name)
		}
	}
	r.found.Media.SHA256 = l.sum("").SHA256
	return nil
}

// readBytes passes the bytes of an object to the visitor.
func (r *reader) readBytes() error {
	name := r.entry.Name
	key, part, _ := strings.Cut(strings.TrimPrefix(name, mediaPrefix), ".")
	o := Object{Key: key, Part: part, Bytes: r.entry.Size}
	sum := sha256.New()
	content := io.TeeReader(r.tar, sum)
	if err := r.Bytes(o, content); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	o.SHA256 = hex.EncodeToString(sum.Sum(nil))
	r.inside[name] = o
	return r.advance()
}

// readObjects passes the listed objects to the visitor.
func (r *reader) readObjects(l *lineReader) error {
	for text, err := range l.all() {
		if err != nil {
			return err
		}
		var o Object
		if err := json.Unmarshal(text, &o); err != nil {
			return err
		}
		r.found.Media.add(o)
		if err := r.compareBytes(o); err != nil {
			return err
		}
		if err := r.Object(o); err != nil {
			return err
		}
	}
	return nil
}

// compareBytes compares a listed object with its bytes, if the archive contains them.
func (r *reader) compareBytes(listed Object) error {
	if !r.header.Inside || listed.absent() {
		return nil
	}
	name := listed.name()
	if got := r.inside[name]; got != listed {
		err := fmt.Errorf("%s has %d bytes with SHA-256 %q, not %d with %s",
			name, got.Bytes, got.SHA256, listed.Bytes, listed.SHA256)
		return &Mismatch{[]error{err}}
	}
	delete(r.inside, name)
	return nil
}
