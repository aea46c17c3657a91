package backups

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
)

// A CopiedMedia describes a copy of the media of recordings.
type CopiedMedia struct {
	Files   int      // number of files in the copy, each with the right checksum
	Bytes   int64    // size of these files
	Written int      // number of files that the target did not have before
	Damaged []string // keys of files that are missing or damaged in the source, or have damaged parts
}

// copiers is the number of files copied at the same time, because an object store responds slowly to
// each single request.
const copiers = 8

// CopyMedia copies the media of all recordings from one storage to another. It reads each copy
// back, and compares its checksum with the one measured at the upload. It does not write files that the
// target already has, so an interrupted copy can be continued. Files that are missing or whose checksum
// differs are listed as damaged; all other files are copied. If a storage is unavailable for a few files
// only, CopyMedia copies the others before it returns problem.Unavailable.
func CopyMedia(ctx context.Context, rows *store.Store, from, to blob.Store, p Progress) (CopiedMedia, error) {
	c := &mediaCopy{rows: rows, from: from, to: to, progress: p}
	if err := c.checkTarget(); err != nil {
		return c.result, err
	}

	// The snapshot ends before files are copied, because during a long snapshot the database would grow.
	var media []store.StoredMedium
	err := rows.Snapshot(ctx, func(s *store.Snapshot) error {
		for m, err := range s.Media(ctx) {
			if err != nil {
				return err
			}
			media = append(media, m)
		}
		return nil
	})
	if err != nil {
		return c.result, err
	}

	p.ExpectThings(len(media))
	err = c.copyAll(ctx, media)
	to.Settle()
	slices.Sort(c.result.Damaged)
	return c.result, err
}

// ErrSamePlace is returned by CopyMedia if the source and the target are the same place.
var ErrSamePlace = errors.New("the media is there already")

// checkTarget writes a file to the target. If the source then also has the file, both are the same
// place, and checkTarget returns ErrSamePlace. Without this check, replacing a bad copy could
// delete the only file.
func (c *mediaCopy) checkTarget() error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("choosing a key: %w", err)
	}

	key := id.String()
	err = c.checkPlaces(key)
	return errors.Join(err, c.to.Remove(key))
}

// checkPlaces writes a file to the target, and returns ErrSamePlace if the source then has it, too.
func (c *mediaCopy) checkPlaces(key string) error {
	err := c.to.Restore(key, "", func(w io.Writer) error {
		_, err := w.Write([]byte{0})
		return err
	})
	if err != nil {
		return err
	}
	f, err := c.from.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(ErrSamePlace, f.Close())
}

// A mediaCopy is a copy in progress.
type mediaCopy struct {
	rows     *store.Store
	from, to blob.Store

	mu       sync.Mutex
	progress Progress
	result   CopiedMedia
	failed   []error // one for each file for which a storage was unavailable
}

// maxFailed is for how many files a storage may be unavailable before a copy stops.
const maxFailed = 2 * copiers

// copyAll copies files. It stops at the first error, unless a storage is unavailable. It then stops after
// maxFailed errors, because some objects may never be readable.
func (c *mediaCopy) copyAll(ctx context.Context, media []store.StoredMedium) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan store.StoredMedium)
	var work sync.WaitGroup
	for range copiers {
		work.Go(func() {
			for m := range next {
				if err := c.copyOne(ctx, m); err != nil {
					c.fail(fmt.Errorf("copying the media %s: %w", m.Key, err), cancel)
				}
			}
		})
	}

	for _, m := range media {
		select {
		case next <- m:
		case <-ctx.Done():
		}
	}
	close(next)
	work.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errors.Join(c.failed...)
}

// fail notes the error of a file, and cancels the copy if it cannot continue.
func (c *mediaCopy) fail(err error, cancel context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isUnavailable(err) {
		cancel(err)
		return
	}
	c.failed = append(c.failed, err)
	c.progress.Steps(1)
	if len(c.failed) == maxFailed {
		cancel(errors.Join(c.failed...))
	}
}

// copyOne copies a file and its parts, unless the copy is complete.
func (c *mediaCopy) copyOne(ctx context.Context, m store.StoredMedium) error {
	if ctx.Err() != nil {
		return nil // another file could not be copied, or the caller stopped
	}
	parts, whole, err := c.readParts(m)
	if err != nil {
		return err
	}
	if !whole { // note this; the file is copied without its damaged parts
		if err := c.noteDamaged(ctx, m); err != nil {
			return err
		}
	}

	copied, err := c.isCopied(m, parts)
	if err != nil {
		return err
	}
	if copied {
		c.count(m, 0)
		return nil
	}

	// A damaged file is not copied, and an earlier copy of it stays.
	whole, err = isWhole(c.from, m)
	if err != nil {
		return err
	}
	if !whole {
		c.step()
		return c.noteDamaged(ctx, m)
	}

	if err := c.to.Remove(m.Key, recordings.MediaParts()...); err != nil { // left by an interrupted copy
		return err
	}
	if err := c.write(m, parts); err != nil {
		return err
	}
	copied, err = c.isCopied(m, parts)
	if err != nil {
		return err
	}
	if !copied {
		return errors.New("the copy differs from the file")
	}
	c.count(m, 1)
	return nil
}

// readParts returns the parts of a file in the source, by name. If any of them is damaged, whole is
// false.
func (c *mediaCopy) readParts(m store.StoredMedium) (parts map[string][]byte, whole bool, err error) {
	parts = make(map[string][]byte)
	whole = true
	for _, part := range recordings.MediaParts() {
		content, err := c.from.ReadPart(m.Key, part)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case isUnavailable(err):
			return nil, false, err
		case err != nil:
			whole = false
		default:
			parts[part] = content
		}
	}
	return parts, whole, nil
}

// write writes a file and its parts to the target.
func (c *mediaCopy) write(m store.StoredMedium, parts map[string][]byte) error {
	f, err := c.from.Open(m.Key)
	if err != nil {
		return err
	}
	defer f.Close()

	err = c.to.Restore(m.Key, "", func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
	if err != nil {
		return err
	}
	for part, content := range parts {
		err := c.to.Restore(m.Key, part, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isCopied reports whether the target has a file with the right checksum, and its parts.
func (c *mediaCopy) isCopied(m store.StoredMedium, parts map[string][]byte) (bool, error) {
	whole, err := isWhole(c.to, m)
	if err != nil {
		return false, err
	}
	if !whole {
		return false, nil
	}
	for part, want := range parts {
		got, err := c.to.ReadPart(m.Key, part)
		if isUnavailable(err) {
			return false, err
		}
		if err != nil || !bytes.Equal(got, want) {
			return false, nil
		}
	}
	return true, nil
}

// isUnavailable reports whether an error means that a storage cannot be read at the moment. A damaged
// object does not count, although an object store returns problem.Unavailable for it, too.
func isUnavailable(err error) bool {
	return errors.Is(err, problem.Unavailable) && !errors.Is(err, blob.ErrDamaged)
}

// isWhole reports whether the stored file of m is intact, that is, whether it has the bytes that
// were uploaded.
func isWhole(b blob.Store, m store.StoredMedium) (bool, error) {
	f, err := b.Open(m.Key)
	switch {
	case isUnavailable(err):
		return false, err
	case err != nil:
		return false, nil // the file is missing, or cannot be decrypted
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	switch {
	case isUnavailable(err):
		return false, err
	case err != nil:
		return false, nil // the file is truncated or changed; storages also check this
	}
	return hex.EncodeToString(sum.Sum(nil)) == m.SHA256, nil
}

// count counts a file that is the same in both storages.
func (c *mediaCopy) count(m store.StoredMedium, written int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result.Files++
	c.result.Bytes += m.Bytes
	c.result.Written += written
	c.progress.Steps(1)
}

// noteDamaged lists a file as damaged, unless its recording was deleted in the meantime.
func (c *mediaCopy) noteDamaged(ctx context.Context, m store.StoredMedium) error {
	used, err := c.rows.MediaInUse(ctx, m.Key, m.Key)
	if err != nil {
		return err
	}
	if len(used) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.result.Damaged, m.Key) {
		c.result.Damaged = append(c.result.Damaged, m.Key)
	}
	return nil
}

// step reports that a file is done.
func (c *mediaCopy) step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress.Steps(1)
}
