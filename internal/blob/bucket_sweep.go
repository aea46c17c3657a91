package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// These constants determine when a sweep runs, and what it deletes.
const (
	// orphanAge is the age at which an object without an owner is deleted. A younger object may
	// belong to an upload, which takes at most uploadTime until its row is committed.
	orphanAge = 2 * uploadTime
	// sweepInterval is the time between two sweeps. Sweeps are rare because stores charge for
	// lists.
	sweepInterval = 6 * time.Hour
)

// Sweep implements [Store]. It checks that removed objects are gone from the store, and removes
// them again if they are not. It lists the bucket every six hours, and deletes objects without an
// owner that are at least a day old.
func (b *Bucket) Sweep(ctx context.Context, inUse InUse) error {
	var errs []error
	if b.cache != nil {
		errs = append(errs, b.cache.sweep(ctx, inUse))
	}
	errs = append(errs, b.confirmRemoved(ctx, inUse))

	b.mu.Lock()
	now := time.Now()
	early := now.Sub(b.swept) < sweepInterval
	if !early {
		b.swept = now
	}
	b.mu.Unlock()
	if !early {
		errs = append(errs, b.sweepBefore(ctx, inUse, now.Add(-orphanAge)))
	}
	return errors.Join(errs...)
}

// doubt remembers removed objects, at most maxGone of them, so that confirmRemoved checks that they
// are gone. Objects beyond this number are deleted by a sweep of the whole bucket once they are a
// day old.
func (b *Bucket) doubt(objects []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, object := range objects {
		if len(b.gone) < maxGone {
			b.gone[object] = true
		}
	}
}

// confirmRemoved repeats the removal of objects that [Bucket.Remove] has removed but the store
// still has. If the store keeps refusing to delete an object, confirmRemoved continues with the
// others.
func (b *Bucket) confirmRemoved(ctx context.Context, inUse InUse) error {
	b.mu.Lock()
	objects := slices.Sorted(maps.Keys(b.gone))
	b.mu.Unlock()

	var errs []error
	for _, object := range objects {
		orphan, err := b.isOrphan(ctx, object, inUse)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if orphan {
			errs = append(errs, b.removeObject(ctx, object))
			continue
		}
		b.mu.Lock()
		delete(b.gone, object)
		b.mu.Unlock()
	}
	return errors.Join(errs...)
}

// isOrphan reports whether an object is in the store although no row owns it.
func (b *Bucket) isOrphan(ctx context.Context, object string, inUse InUse) (bool, error) {
	_, err := b.client.StatObject(ctx, b.name, object, minio.StatObjectOptions{})
	if err = storeError(err); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for a removed blob: %w", err)
	}

	key, _ := b.keyOf(object)
	used, err := inUse(ctx, key, key)
	return len(used) == 0, err
}

// sweepBefore deletes objects without an owner that were stored before the given time. It also
// deletes the parts of uploads that began before this time.
func (b *Bucket) sweepBefore(ctx context.Context, inUse InUse, before time.Time) error {
	ctx, cancel := context.WithCancel(ctx) // stops the listing on an early return
	defer cancel()

	var some []minio.ObjectInfo
	var errs []error
	for o := range b.client.Client.ListObjects(ctx, b.name, b.listOptions()) {
		if o.Err != nil {
			return fmt.Errorf("listing blobs: %w", storeError(o.Err))
		}
		if _, ok := b.keyOf(o.Key); !ok {
			continue // an object of another program
		}
		if some = append(some, o); len(some) == chunk {
			errs = append(errs, b.sweepSome(ctx, some, inUse, before))
			some = some[:0]
		}
	}
	errs = append(errs, b.sweepSome(ctx, some, inUse, before), b.sweepUploads(ctx, before))
	return errors.Join(append(errs, ctx.Err())...)
}

// listOptions returns the options for listing all objects that have the bucket's prefix.
func (b *Bucket) listOptions() minio.ListObjectsOptions {
	options := minio.ListObjectsOptions{Recursive: true}
	if b.prefix != "" {
		options.Prefix = b.prefix + "/"
	}
	return options
}

// keyOf returns the key that an object belongs to. ok is false for objects of other programs.
func (b *Bucket) keyOf(object string) (key string, ok bool) {
	file := object
	if b.prefix != "" {
		file = strings.TrimPrefix(object, b.prefix+"/")
	}
	return keyOf(path.Dir(file), path.Base(file))
}

// sweepSome deletes the objects that have no owner and were stored before the given time. The
// objects must be sorted by key.
func (b *Bucket) sweepSome(ctx context.Context, some []minio.ObjectInfo, inUse InUse, before time.Time) error {
	if len(some) == 0 {
		return nil
	}
	first, _ := b.keyOf(some[0].Key)
	last, _ := b.keyOf(some[len(some)-1].Key)
	used, err := inUse(ctx, first, last)
	if err != nil {
		return err
	}
	slices.Sort(used)

	var errs []error
	for _, o := range some {
		key, _ := b.keyOf(o.Key)
		if _, found := slices.BinarySearch(used, key); !found && o.LastModified.Before(before) {
			errs = append(errs, b.removeObject(ctx, o.Key))
		}
	}
	return errors.Join(errs...)
}

// sweepUploads deletes the parts of uploads that a killed process was sending.
func (b *Bucket) sweepUploads(ctx context.Context, before time.Time) error {
	var errs []error
	for u := range b.client.ListIncompleteUploads(ctx, b.name, b.listOptions().Prefix, true) {
		if u.Err != nil {
			return errors.Join(append(errs, fmt.Errorf("listing uploads: %w", storeError(u.Err)))...)
		}
		if _, ok := b.keyOf(u.Key); ok && u.Initiated.Before(before) {
			errs = append(errs, storeError(b.client.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID)))
		}
	}
	return errors.Join(errs...)
}

// Empty reports whether the bucket has no blobs.
func (b *Bucket) Empty(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range b.client.Client.ListObjects(ctx, b.name, b.listOptions()) {
		if o.Err != nil {
			return false, fmt.Errorf("listing blobs: %w", storeError(o.Err))
		}
		if _, ok := b.keyOf(o.Key); ok {
			return false, nil
		}
	}
	return true, nil
}

// Discard deletes all blobs.
func (b *Bucket) Discard(ctx context.Context) error {
	none := func(context.Context, string, string) ([]string, error) { return nil, nil }
	return b.sweepBefore(ctx, none, time.Now().Add(orphanAge)) // the clocks of the store and of this machine may differ
}
