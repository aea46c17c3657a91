package recordings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// findTwin returns a recording of the project whose stored file is a copy of the upload f, so that
// the bytes are stored only once. Projects never share files, because they could otherwise learn
// about the files of other projects.
func (r *Recordings) findTwin(ctx context.Context, rec Recording, f io.ReaderAt) (Twin, error) {
	twin, err := r.c.Store.FindTwin(ctx, rec)
	if err != nil || twin == (Twin{}) {
		return Twin{}, err
	}
	same, err := r.hasBytes(ctx, twin.MediaKey, io.NewSectionReader(f, 0, rec.Bytes))
	if err != nil {
		r.c.Log.WarnContext(ctx, "comparing an upload with a stored file", "key", twin.MediaKey, "error", err)
	}
	if !same {
		return Twin{}, nil
	}
	return twin, nil
}

// hasBytes reports whether the media with this key has the bytes of wanted. It reads both, because
// media may have been damaged after its checksum was computed. The sender of an upload deletes its
// copy, so the stored bytes must be intact.
func (r *Recordings) hasBytes(ctx context.Context, key string, wanted io.Reader) (bool, error) {
	media, err := r.c.Media.Open(key)
	if err != nil {
		return false, err
	}
	defer media.Close()
	stored := canceled{media, ctx}

	a, b := make([]byte, 128<<10), make([]byte, 128<<10)
	for {
		n, errA := io.ReadFull(stored, a)
		m, errB := io.ReadFull(wanted, b)
		if err := errors.Join(unlessEnd(errA), unlessEnd(errB)); err != nil {
			return false, fmt.Errorf("comparing media: %w", err)
		}
		if !bytes.Equal(a[:n], b[:m]) {
			return false, nil
		}
		if errA != nil {
			return true, nil // otherwise, b would be full
		}
	}
}

// unlessEnd returns the error of io.ReadFull, or nil if the error means that the file ends.
func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
