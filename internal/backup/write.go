package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	"filippo.io/age"

	"github.com/selvage/selvage/internal/database"
)

// A Source provides the data to back up.
type Source struct {
	Key     Key
	Program string // the version of selvage
	Schema  int64
	Tables  []database.Table
	Rows    func(context.Context, database.Table) iter.Seq2[[]any, error]

	Media    func(context.Context) iter.Seq2[Object, error] // the files of recordings, as the rows describe them
	Parts    []string                                       // the names of parts that a recording may have
	Open     func(key string) (io.ReadSeekCloser, error)    // fs.ErrNotExist if there is no such file
	ReadPart func(key, part string) ([]byte, error)         // fs.ErrNotExist if there is no such file
	Exists   func(ctx context.Context, key string) (bool, error)

	Now      func() time.Time
	Progress func(done string) // called for each entry with rows or objects, and for each recording
}

// partSize is the size after which rows continue in another entry of the archive.
const partSize = 1 << 20

// A bytesStore stores the bytes of an object outside the archive, unless they are already stored.
// It returns the object with the number and the SHA-256 of the bytes.
type bytesStore func(ctx context.Context, o Object, open func() (io.ReadCloser, error)) (Object, error)

// A writer writes an archive.
type writer struct {
	Source
	tar    *tar.Writer
	beside bytesStore // stores bytes outside the archive; nil if the archive contains them

	header   Header
	manifest Manifest
	covered  covered
	wrong    []error // differences between the rows and the media, which do not make the archive incomplete
}

// writeArchive writes an archive. If the media differs from what the rows describe, the archive is
// complete, and w.mismatch returns the differences.
func writeArchive(
	ctx context.Context, out io.Writer, to []age.Recipient, s Source, beside bytesStore,
) (w *writer, err error) {
	encrypted, err := age.Encrypt(out, to...)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}

	w = &writer{Source: s, tar: tar.NewWriter(encrypted), beside: beside, covered: newCovered()}
	if beside != nil {
		w.header.Recipients, err = digestOf(to)
		if err != nil {
			return nil, err
		}
	}

	if err := w.write(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(w.tar.Close(), encrypted.Close()); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *writer) write(ctx context.Context) error {
	w.header = Header{
		Format:     format,
		Version:    version,
		Program:    w.Program,
		Created:    w.Now().UTC(),
		Schema:     w.Schema,
		Inside:     w.beside == nil,
		Recipients: w.header.Recipients,
		MasterKey:  w.Key.MasterKey,
	}
	for _, t := range w.Tables {
		w.header.Tables = append(w.header.Tables, TableOf(t))
	}

	if err := w.addJSON(headerName, w.header); err != nil {
		return err
	}
	for _, t := range w.Tables {
		if err := w.addRows(ctx, t); err != nil {
			return err
		}
	}

	if err := w.addMedia(ctx); err != nil {
		return err
	}
	if err := w.addJSON(manifestName, w.manifest); err != nil {
		return err
	}
	return w.add(codeName, fmt.Appendf(nil, "%x\n", w.Key.code(w.covered.sum.Sum(nil))))
}

// addJSON adds an entry that the authentication code covers.
func (w *writer) addJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	w.covered.add(text)
	return w.add(name, text)
}

func (w *writer) add(name string, content []byte) error {
	if err := w.begin(name, int64(len(content))); err != nil {
		return err
	}
	_, err := w.tar.Write(content)
	return err
}

func (w *writer) begin(name string, size int64) error {
	return w.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Size:     size,
		Mode:     0o600,
		ModTime:  w.header.Created,
		Format:   tar.FormatPAX,
	})
}

// A lineWriter writes lines to numbered entries of the archive, each with about partSize bytes.
type lineWriter struct {
	w      *writer
	prefix string
	number int
	text   bytes.Buffer
	packed bytes.Buffer
}

func (l *lineWriter) add(line []byte) error {
	l.text.Write(line)
	if l.text.Len() < partSize {
		return nil
	}
	return l.flush()
}

func (l *lineWriter) flush() error {
	if l.text.Len() == 0 {
		return nil
	}
	l.packed.Reset()
	z, err := gzip.NewWriterLevel(&l.packed, gzip.BestSpeed)
	if err != nil {
		return err
	}

	_, writeErr := l.text.WriteTo(z)
	if err := errors.Join(writeErr, z.Close()); err != nil {
		return err
	}

	name := fmt.Sprintf("%s%06d.jsonl.gz", l.prefix, l.number)
	l.number++
	l.w.Progress(name)
	return l.w.add(name, l.packed.Bytes())
}

func (w *writer) addRows(ctx context.Context, t database.Table) error {
	digest := NewDigest()
	to := &lineWriter{w: w, prefix: rowsPrefix + t.Name + "/"}
	for row, err := range w.Rows(ctx, t) {
		if err != nil {
			return err
		}
		line, err := digest.Add(row)
		if err != nil {
			return err
		}
		if err := to.add(line); err != nil {
			return err
		}
	}
	w.manifest.Tables = append(w.manifest.Tables, digest.Sum(t.Name))
	return to.flush()
}

func (w *writer) addMedia(ctx context.Context) error {
	digest := NewDigest()
	to := &lineWriter{w: w, prefix: objectsPrefix}
	list := func(o Object) error {
		w.manifest.Media.add(o)
		line, err := digest.Add(o)
		if err != nil {
			return err
		}
		return to.add(line)
	}

	for o, err := range w.Media(ctx) {
		if err != nil {
			return err
		}
		if err := w.addRecording(ctx, o, list); err != nil {
			return fmt.Errorf("backing up the media of recording %s: %w", o.Key, err)
		}
		w.Progress(o.name())
	}
	w.manifest.Media.SHA256 = digest.Sum("").SHA256
	return to.flush()
}

// addRecording adds the bytes of a recording, and its parts.
func (w *writer) addRecording(ctx context.Context, o Object, list func(Object) error) error {
	stored, err := w.store(ctx, o, func() (io.ReadCloser, error) { return w.Open(o.Key) })
	if errors.Is(err, fs.ErrNotExist) {
		return w.addAbsent(ctx, o, list)
	}
	if err != nil {
		return err
	}
	if stored.SHA256 != o.SHA256 || stored.Bytes != o.Bytes {
		w.wrong = append(w.wrong, fmt.Errorf("the media of recording %s has %d bytes with SHA-256 %s, "+
			"but its row says %d with %s", o.Key, stored.Bytes, stored.SHA256, o.Bytes, o.SHA256))
	}
	if err := list(stored); err != nil {
		return err
	}

	for _, part := range w.Parts {
		content, err := w.ReadPart(o.Key, part)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}

		stored, err := w.storePart(ctx, o.Key, part, content)
		if err != nil {
			return err
		}
		if err := list(stored); err != nil {
			return err
		}
	}
	return nil
}

// storePart stores a part of a recording.
func (w *writer) storePart(ctx context.Context, key, part string, content []byte) (Object, error) {
	sum := sha256.Sum256(content)
	o := Object{Key: key, Part: part, Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	open := func() (io.ReadCloser, error) { return memory{bytes.NewReader(content)}, nil }
	return w.store(ctx, o, open)
}

// A memory is an open file whose bytes are in memory.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// addAbsent lists a recording whose bytes are missing. It records a mismatch unless the recording
// was deleted after the snapshot.
func (w *writer) addAbsent(ctx context.Context, o Object, list func(Object) error) error {
	exists, err := w.Exists(ctx, o.Key)
	if err != nil {
		return err
	}
	if exists {
		w.wrong = append(w.wrong, fmt.Errorf("the media of recording %s is missing", o.Key))
	}
	return list(Object{Key: o.Key, Deleted: !exists, Missing: exists})
}

// store stores the bytes of an object inside or outside the archive.
func (w *writer) store(ctx context.Context, o Object, open func() (io.ReadCloser, error)) (Object, error) {
	if w.beside != nil {
		return w.beside(ctx, o, open)
	}
	if err := ctx.Err(); err != nil {
		return o, err
	}
	content, err := open()
	if err != nil {
		return o, err
	}
	defer content.Close()

	// An entry begins with its length.
	seeker := content.(io.Seeker)
	o.Bytes, err = seeker.Seek(0, io.SeekEnd)
	if err != nil {
		return o, err
	}
	_, err = seeker.Seek(0, io.SeekStart)
	if err != nil {
		return o, err
	}
	if err := w.begin(o.name(), o.Bytes); err != nil {
		return o, err
	}

	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(w.tar, sum), content, o.Bytes); err != nil {
		return o, err
	}
	o.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return o, nil
}

// A Mismatch lists the differences between a backup and what it should contain.
type Mismatch struct{ Found []error }

func (m *Mismatch) Error() string { return errors.Join(m.Found...).Error() }

func (w *writer) mismatch() error {
	if len(w.wrong) == 0 {
		return nil
	}
	return &Mismatch{w.wrong}
}
