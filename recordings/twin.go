package recordings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// findTwin returns another recording of the project. The stored file of that recording is a copy of
// the upload f, so the bytes need to be stored only once. Projects never share files, because they could
// otherwise learn about the files of other projects.
func (r *Recordings) findTwin(ctx context.Context, rec Recording, f io.ReaderAt) (Twin, error) {
	twin, err := r.c.Store.FindTwin(ctx, rec)
	if err != nil || twin == (Twin{}) {
		return Twin{}, err
	}
	same, err := r.hasBytes(ctx, twin.MediaKey, io.NewSectionReader(f, 0, rec.Bytes))
	if err != nil {
		r.c.Log.WarnContext(ctx, "comparing an upload with a stored file", "key", twin.MediaKey, "error", err)
		return Twin{}, nil
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
	stored := cancelableReader{media, ctx}

	storedBuf, wantedBuf := make([]byte, 128<<10), make([]byte, 128<<10)
	for {
		storedPiece, err := readPiece(stored, storedBuf)
		if err != nil {
			return false, fmt.Errorf("comparing media: %w", err)
		}
		wantedPiece, err := readPiece(wanted, wantedBuf)
		if err != nil {
			return false, fmt.Errorf("comparing media: %w", err)
		}
		if !bytes.Equal(storedPiece, wantedPiece) {
			return false, nil
		}
		if len(storedPiece) < len(storedBuf) { // both end here
			return true, nil
		}
	}
}

// readPiece fills buf, and returns what it has read. At the end, the piece is shorter than buf.
func readPiece(r io.Reader, buf []byte) ([]byte, error) {
	n, err := io.ReadFull(r, buf)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return buf[:n], nil
}
