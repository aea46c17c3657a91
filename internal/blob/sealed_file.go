package blob

import (
	"errors"
	"fmt"
	"io"

	"github.com/minio/sio"
)

// A sealedReader reads a sealed file.
type sealedReader struct {
	pieces
	file readable
	key  []byte

	decrypted io.Reader // the plaintext, from the piece with the index next on
	next      int64
}

// Close implements [io.Closer].
func (o *sealedReader) Close() error { return o.file.Close() }

// Sealed reports that the stored bytes differ from the bytes that are read.
func (o *sealedReader) Sealed() bool { return true }

// loadPiece decrypts the piece with index i into piece. If it is the last piece, loadPiece checks that the
// file ends after it.
func (o *sealedReader) loadPiece(i int64, piece []byte) (err error) {
	if o.decrypted == nil || o.next != i {
		const stored = sealedPiece + sealedOverhead
		from := io.NewSectionReader(o.file, int64(headSize)+i*stored, 1<<62)
		if o.decrypted, err = sio.DecryptReader(from, newCipher(o.key, i)); err != nil {
			return fmt.Errorf("decrypting blob: %w", err)
		}
	}

	o.next = -1
	if _, err := io.ReadFull(o.decrypted, piece); err != nil {
		return fmt.Errorf("decrypting blob: %w", errors.Join(err, isCut(err)))
	}
	if (i+1)*sealedPiece >= o.size {
		if n, err := o.decrypted.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			return fmt.Errorf("decrypting blob: %w", errors.Join(err, errCut))
		}
	}
	o.next = i + 1
	return nil
}

// isCut returns errCut if err means that the file ended early.
func isCut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errCut
	}
	return nil
}

// A sealedWriter encrypts a file while it is written. The first ReadAt completes the file.
type sealedWriter struct {
	store *Sealed
	name  string
	file  File
	enc   io.WriteCloser
	size  int64
	done  bool
	read  *pieces
}

// seal begins to encrypt a file.
func (s *Sealed) seal(name string, f File) (*sealedWriter, error) {
	enc, err := s.encrypt(name, f)
	return &sealedWriter{store: s, name: name, file: f, enc: enc}, err
}

// Write implements [io.Writer].
func (w *sealedWriter) Write(p []byte) (int, error) {
	if w.done {
		return 0, errors.New("writing to a blob that was read")
	}
	n, err := w.enc.Write(p)
	w.size += int64(n)
	return n, err
}

// finish completes the file, after which nothing can be written.
func (w *sealedWriter) finish() error {
	if w.done {
		return nil
	}
	w.done = true
	if err := w.enc.Close(); err != nil {
		return fmt.Errorf("encrypting blob: %w", err)
	}
	return nil
}

// ReadAt implements [io.ReaderAt].
func (w *sealedWriter) ReadAt(p []byte, off int64) (int, error) {
	if w.read == nil {
		if err := w.finish(); err != nil {
			return 0, err
		}
		head := make([]byte, headSize)
		if _, err := w.file.ReadAt(head, 0); err != nil {
			return 0, fmt.Errorf("reading blob: %w", err)
		}
		key, err := w.store.findKey(w.name, head)
		if err != nil {
			return 0, err
		}
		o := &sealedReader{file: written{w.file}, key: key}
		o.pieces = pieces{size: w.size, piece: sealedPiece, load: o.loadPiece}
		w.read = &o.pieces
	}
	return w.read.ReadAt(p, off)
}

// written makes a File readable, but only with ReadAt.
type written struct{ File }

func (written) Read([]byte) (int, error)       { return 0, errors.ErrUnsupported }
func (written) Seek(int64, int) (int64, error) { return 0, errors.ErrUnsupported }
func (written) Close() error                   { return nil }
