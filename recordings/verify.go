package recordings

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/selvage/selvage/internal/problem"
)

// VerifyMedia reads the media of a recording and compares it with the size and the digest that
// Ingest measured. It returns a short description of the damage, or "" if there is none. A recording
// that has no media, or is deleted while it is read, counts as undamaged. If count is not nil,
// VerifyMedia reads the media through count(reader), so that the caller can count the bytes. The
// error is nil unless the database fails or ctx is canceled.
func (r *Recordings) VerifyMedia(
	ctx context.Context, rec Recording, count func(io.Reader) io.Reader,
) (damage string, err error) {
	if !rec.HasMedia() {
		return "", nil
	}
	damage = r.compare(ctx, rec, count)
	if damage == "" || ctx.Err() != nil {
		return "", ctx.Err()
	}

	// The row is read again, because the media may have been deleted while it was read.
	now, err := r.Find(ctx, Owner{ProjectID: rec.ProjectID}, rec.Sid)
	if errors.Is(err, problem.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if now.MediaKey != rec.MediaKey {
		return "", nil
	}
	return damage, nil
}

// compare returns how the media of a recording differs from the uploaded bytes, or "".
func (r *Recordings) compare(ctx context.Context, rec Recording, count func(io.Reader) io.Reader) string {
	media, err := r.c.Media.Open(rec.MediaKey)
	if errors.Is(err, fs.ErrNotExist) {
		return "the media is missing"
	}
	if err != nil {
		return fmt.Sprintf("the media cannot be opened: %v", err)
	}
	defer media.Close()

	content := io.Reader(cancelableReader{media, ctx})
	if count != nil {
		content = count(content)
	}

	hash := sha256.New()
	size, err := io.CopyBuffer(hash, content, make([]byte, 256<<10))
	if err != nil {
		return fmt.Sprintf("the media cannot be read: %v", err)
	}
	if size != rec.Bytes {
		return fmt.Sprintf("the media has %d bytes instead of %d", size, rec.Bytes)
	}
	if hex.EncodeToString(hash.Sum(nil)) != rec.SHA256 {
		return "the media has changed"
	}
	return ""
}

// A cancelableReader can be read until its context is done.
type cancelableReader struct {
	io.Reader
	ctx context.Context
}

// Read implements [io.Reader].
func (c cancelableReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(p)
}
