package backup

import (
	"archive/tar"
	"bytes"
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
	// Rows is called for each table that has rows, in the order of the header. It must read all
	// rows.
	Rows func(t Table, rows iter.Seq2[[]any, error]) error
	// Bytes is called for each object whose bytes are inside the archive. Only the object's key and
	// part are set, because the archive lists the objects after their bytes.
	Bytes func(o Object, content io.Reader) error
	// Object is called for each object in the archive's list.
	Object func(Object) error
}

// Limits on what is read into memory, since anyone may have written the archive.
const (
	maxJSON = 1 << 20  // bytes of the header, and of the manifest
	maxLine = 16 << 20 // bytes of all lines in one entry
)

// readArchive reads an archive and compares it with its manifest.
func readArchive(in io.Reader, identities []age.Identity, v Visitor) (Header, Manifest, error) {
	decrypted, err := age.Decrypt(in, identities...)
	if err != nil {
		return Header{}, Manifest{}, fmt.Errorf("decrypting: %w", err)
	}
	r := &reader{Visitor: v, tar: tar.NewReader(decrypted), inside: make(map[string]Object), covered: newCovered()}
	m, err := r.read()
	if err != nil {
		return r.header, m, err
	}
	// Reading to the end of the encrypted data proves that the archive was not truncated.
	if _, err := io.Copy(io.Discard, decrypted); err != nil {
		return r.header, m, fmt.Errorf("decrypting: %w", err)
	}
	return r.header, m, nil
}

// A reader reads an archive. The header of the current entry has already been read.
type reader struct {
	Visitor
	tar     *tar.Reader
	entry   *tar.Header // nil after the last entry
	header  Header
	found   Manifest
	covered covered
	inside  map[string]Object // objects whose bytes have been read and that have not been listed yet, by entry name
}

func (r *reader) advance() (err error) {
	r.entry, err = r.tar.Next()
	if err == io.EOF {
		r.entry = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	return nil
}

var errIncomplete = errors.New("the archive is not complete: its manifest is missing")

func (r *reader) read() (want Manifest, err error) {
	if err := r.advance(); err != nil {
		return want, err
	}
	if r.entry == nil || r.entry.Name != headerName {
		return want, errors.New("this is not a backup of selvage: the header is missing")
	}

	if err := r.readJSON(&r.header); err != nil {
		return want, err
	}
	if r.header.Format != format || r.header.Version != version {
		return want, fmt.Errorf("the backup has the format %q, version %d; this selvage reads %q, version %d",
			r.header.Format, r.header.Version, format, version)
	}

	if err := r.Header(r.header); err != nil {
		return want, err
	}

	for _, t := range r.header.Tables {
		if err := r.readTable(t); err != nil {
			return want, fmt.Errorf("reading table %s: %w", t.Name, err)
		}
	}
	if err := r.readMedia(); err != nil {
		return want, err
	}
	if r.entry == nil {
		return want, errIncomplete
	}
	if r.entry.Name != manifestName {
		return want, fmt.Errorf("the archive has an unknown entry %q", r.entry.Name)
	}

	if err := r.readJSON(&want); err != nil {
		return want, err
	}
	want.covered = r.covered.sum.Sum(nil)
	if want.code, err = r.readCode(); err != nil {
		return want, err
	}
	if r.entry != nil {
		return want, fmt.Errorf("the archive has an entry %q after its authentication code", r.entry.Name)
	}
	return want, r.compare(want)
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

// readTable passes the rows of a table to the visitor.
func (r *reader) readTable(t Table) error {
	l := &lineReader{r: r, prefix: rowsPrefix + t.Name + "/", hash: sha256.New()}
	if r.entry == nil || !strings.HasPrefix(r.entry.Name, l.prefix) {
		r.found.Tables = append(r.found.Tables, l.sum(t.Name))
		return nil
	}

	var failed error
	err := r.Rows(t, func(yield func([]any, error) bool) {
		for text, err := range l.all() {
			var row []any
			if err == nil {
				row, err = parseRow(t, text)
			}
			if err != nil {
				failed = err
				yield(nil, err)
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	r.found.Tables = append(r.found.Tables, l.sum(t.Name))
	return nil
}

// parseRow parses a row, whose values must match the columns. It stops at the first value that does
// not match, so that a line of many small values cannot use much memory.
func parseRow(t Table, text json.RawMessage) ([]any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if begin, err := dec.Token(); err != nil || begin != json.Delim('[') {
		return nil, errors.Join(errors.New("a row is not an array"), err)
	}

	row := make([]any, 0, len(t.Columns))
	for dec.More() {
		if len(row) == len(t.Columns) {
			return nil, fmt.Errorf("a row has more than %d values", len(row))
		}
		value, err := parseValue(dec, t.Columns[len(row)])
		if err != nil {
			return nil, err
		}
		row = append(row, value)
	}

	if len(row) != len(t.Columns) {
		return nil, fmt.Errorf("a row has %d values, not %d", len(row), len(t.Columns))
	}
	return row, nil
}

func parseValue(dec *json.Decoder, c Column) (any, error) {
	value, err := dec.Token()
	if err != nil {
		return nil, err
	}

	switch v := value.(type) {
	case nil:
		return nil, nil
	case json.Number:
		if c.Integer {
			return v.Int64()
		}
	case string:
		if !c.Integer {
			return v, nil
		}
	}
	return nil, fmt.Errorf("column %s has a value of the wrong type", c.Name)
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
			for text, err := range l.all() {
				if err != nil {
					return fmt.Errorf("reading the list of media: %w", err)
				}
				if err := r.readObject(text); err != nil {
					return fmt.Errorf("reading the list of media: %w", err)
				}
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

// readObject compares an object in the list with its bytes, if these are inside the archive.
func (r *reader) readObject(text json.RawMessage) error {
	var o Object
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	r.found.Media.add(o)
	if r.header.Inside && !o.absent() {
		if got := r.inside[o.name()]; got != o {
			err := fmt.Errorf("%s has %d bytes with SHA-256 %q, not %d with %s",
				o.name(), got.Bytes, got.SHA256, o.Bytes, o.SHA256)
			return &Mismatch{[]error{err}}
		}
		delete(r.inside, o.name())
	}
	return r.Object(o)
}
