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

	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
)

// A CopiedMedia describes a copy of the media of recordings.
type CopiedMedia struct {
	Files   int   // in the copy, each equal to its checksum
	Bytes   int64 // of these files
	Written int   // files that the copy did not have before
	Damaged []string
}

// copiers is how many files are copied at a time, since an object store answers each request late.
const copiers = 8

// CopyMedia copies the media of all recordings from one storage to another. It reads each copy again,
// and compares it with the checksum measured at the upload. Files that the target has are not written
// again, so an interrupted copy continues. Files that are missing or differ from their checksum are
// listed as damaged, and the others are copied.
func CopyMedia(ctx context.Context, rows *store.Store, from, to blob.Store, p Progress) (CopiedMedia, error) {
	c := &mediaCopy{rows: rows, from: from, to: to, progress: p}
	err := rows.Snapshot(ctx, func(s *store.Snapshot) error {
		var all []store.StoredMedium
		for m, err := range s.Media(ctx) {
			if err != nil {
				return err
			}
			all = append(all, m)
		}
		p.ExpectThings(len(all))
		return c.copyAll(ctx, all)
	})
	to.Settle()
	slices.Sort(c.result.Damaged)
	return c.result, err
}

// A mediaCopy is a copy in progress.
type mediaCopy struct {
	rows     *store.Store
	from, to blob.Store

	mu       sync.Mutex
	progress Progress
	result   CopiedMedia
}

// copyAll copies files until all are done, or one cannot be written.
func (c *mediaCopy) copyAll(ctx context.Context, all []store.StoredMedium) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan store.StoredMedium)
	var work sync.WaitGroup
	for range copiers {
		work.Go(func() {
			for m := range next {
				if err := c.copyOne(ctx, m); err != nil {
					cancel(fmt.Errorf("copying the media %s: %w", m.Key, err))
				}
			}
		})
	}

	for _, m := range all {
		select {
		case next <- m:
		case <-ctx.Done():
		}
	}
	close(next)
	work.Wait()
	return context.Cause(ctx)
}

// copyOne copies a file and its parts, unless the copy is complete.
func (c *mediaCopy) copyOne(ctx context.Context, m store.StoredMedium) error {
	if ctx.Err() != nil {
		return nil // another file could not be written
	}
	copied, err := c.isCopied(m)
	if err != nil {
		return err
	}
	if copied {
		c.count(m, 0)
		return nil
	}

	// A damaged file is not copied, and nothing is removed for it.
	whole, err := isWhole(c.from, m)
	if err != nil {
		return err
	}
	if !whole {
		return c.countDamaged(ctx, m)
	}

	if err := c.to.Remove(m.Key, recordings.MediaParts()...); err != nil { // of an interrupted copy
		return err
	}
	if err := c.write(m); err != nil {
		return err
	}
	if copied, err = c.isCopied(m); err == nil && !copied {
		err = errors.New("the copy differs from the file")
	}
	if err == nil {
		c.count(m, 1)
	}
	return err
}

// write writes a file and its parts to the target.
func (c *mediaCopy) write(m store.StoredMedium) error {
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

	for _, part := range recordings.MediaParts() {
		content, err := c.from.ReadPart(m.Key, part)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = c.to.Restore(m.Key, part, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isCopied reports whether the target has a file with the right checksum, and the parts of the source.
func (c *mediaCopy) isCopied(m store.StoredMedium) (bool, error) {
	if whole, err := isWhole(c.to, m); err != nil || !whole {
		return false, err
	}
	for _, part := range recordings.MediaParts() {
		want, err := c.from.ReadPart(m.Key, part)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if got, err := c.to.ReadPart(m.Key, part); err != nil || !bytes.Equal(got, want) {
			return false, nil
		}
	}
	return true, nil
}

// isWhole reports whether a storage has the bytes of a file that were uploaded.
func isWhole(b blob.Store, m store.StoredMedium) (bool, error) {
	f, err := b.Open(m.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return false, nil // it is cut off or changed, which the storage notices, too
	}
	return hex.EncodeToString(sum.Sum(nil)) == m.SHA256, nil
}

// count counts a file that is equal in both storages.
func (c *mediaCopy) count(m store.StoredMedium, written int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result.Files++
	c.result.Bytes += m.Bytes
	c.result.Written += written
	c.progress.Steps(1)
}

// countDamaged counts a file that is missing or damaged in the source, unless its recording was deleted
// in the meantime.
func (c *mediaCopy) countDamaged(ctx context.Context, m store.StoredMedium) error {
	used, err := c.rows.MediaInUse(ctx, m.Key, m.Key)
	if err != nil || len(used) == 0 {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result.Damaged = append(c.result.Damaged, m.Key)
	c.progress.Steps(1)
	return nil
}
