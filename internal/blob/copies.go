package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
)

// maxCopying is how many copies are made at the same time.
const maxCopying = 2

// copies is a directory of copies of blobs. When it is full, it removes the least recently used
// copies.
type copies struct {
	dir  *Dir
	size int64 // maximum size of all copies, in bytes

	mu      sync.Mutex
	used    int64
	order   []cachedBlob // by last use, the least recent first
	copying map[string]bool
	closed  bool
	running sync.WaitGroup
}

// A cachedBlob is a blob in the cache.
type cachedBlob struct {
	key   string
	bytes int64
}

// openCopies opens the directory of copies, and keeps the copies that an earlier process made. If
// these need more space than size, it removes some of them.
func openCopies(dir string, size int64) (*copies, error) {
	d, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}

	c := &copies{dir: d, size: size, copying: make(map[string]bool)}
	if err := c.find(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	c.shrink()
	return c, nil
}

// find adds the copies that are in the directory.
func (c *copies) find() error {
	folders, err := c.dir.list(".")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if len(folder) != prefix {
			continue // not a folder of copies
		}
		files, err := c.dir.list(folder)
		if err != nil {
			return err
		}
		for _, file := range files {
			key, ok := keyOf(folder, file)
			if !ok || strings.Contains(file, partMark) {
				continue
			}
			if info, err := c.dir.root.Stat(folder + "/" + file); err == nil {
				c.insert(key, info.Size())
			}
		}
	}
	return nil
}

// insert adds a copy, which counts as the most recently used one.
func (c *copies) insert(key string, bytes int64) {
	c.order = append(c.order, cachedBlob{key, bytes})
	c.used += bytes
}

func (c *copies) close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
	return c.dir.Close()
}

// open returns the copy of a blob.
func (c *copies) open(key string) (io.ReadSeekCloser, error) {
	f, err := c.dir.Open(key)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.order, func(x cachedBlob) bool { return x.key == key }); i >= 0 {
		last := c.order[i]
		c.order = append(slices.Delete(c.order, i, i+1), last)
	}
	return f, nil
}

// add starts to copy a blob in the background. It does nothing if the blob is too large or is already
// being copied. It also does nothing while maxCopying other blobs are being copied. A blob that is
// read often is then copied on a later request.
func (c *copies) add(key string, bytes int64, open func() (io.ReadCloser, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || bytes > c.size || c.copying[key] || len(c.copying) >= maxCopying {
		return
	}

	c.copying[key] = true
	c.running.Go(func() {
		err := c.copy(key, bytes, open)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.copying, key)
		if err == nil {
			c.forget(map[string]bool{key: true}) // another request may have copied it before
			c.insert(key, bytes)
			c.shrink()
		}
	})
}

// copy writes a copy. If it fails, it leaves no part of a copy, and the blob is still read from the
// bucket.
func (c *copies) copy(key string, bytes int64, open func() (io.ReadCloser, error)) error {
	write := func(f File) (map[string][]byte, error) {
		from, err := open()
		if err != nil {
			return nil, err
		}
		defer from.Close()
		if n, err := io.Copy(onlyWriter{f}, from); err != nil || n != bytes {
			return nil, fmt.Errorf("copying blob: %w", errors.Join(err, short(n, bytes)))
		}
		return nil, nil
	}
	commit := func() (bool, error) { return true, nil }
	return c.dir.Put(key, write, commit)
}

// shrink removes copies until the rest fits. If a copy cannot be removed, the next call tries again.
func (c *copies) shrink() {
	for c.used > c.size && len(c.order) > 0 {
		if err := c.drop(0); err != nil {
			return
		}
	}
}

// drop removes copy i. Readers that have already opened the copy can continue.
func (c *copies) drop(i int) error {
	if err := c.dir.Remove(c.order[i].key); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	c.used -= c.order[i].bytes
	c.order = slices.Delete(c.order, i, i+1)
	return nil
}

// remove removes the copy of a blob.
func (c *copies) remove(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.order, func(x cachedBlob) bool { return x.key == key }); i >= 0 {
		return c.drop(i)
	}
	return c.dir.Remove(key)
}

// sweep removes the copies of blobs that are no longer in use.
func (c *copies) sweep(ctx context.Context, inUse InUse) error {
	err := c.dir.Sweep(ctx, inUse)
	c.forgetMissing(c.missing())
	return err
}

// missing returns the keys of the copies whose files do not exist. It looks for the files without the
// lock, because there may be many of them.
func (c *copies) missing() (keys []string) {
	c.mu.Lock()
	all := slices.Clone(c.order)
	c.mu.Unlock()

	for _, x := range all {
		if c.isMissing(x.key) {
			keys = append(keys, x.key)
		}
	}
	return keys
}

func (c *copies) isMissing(key string) bool {
	_, err := c.dir.root.Lstat(Name(key))
	return errors.Is(err, os.ErrNotExist)
}

// forgetMissing stops counting the copies with these keys, except for those that exist again: a copy
// may have been made since missing looked for it.
func (c *copies) forgetMissing(keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := make(map[string]bool)
	for _, key := range keys {
		if c.isMissing(key) {
			gone[key] = true
		}
	}
	c.forget(gone)
}

// forget stops counting the copies with these keys.
func (c *copies) forget(keys map[string]bool) {
	c.order = slices.DeleteFunc(c.order, func(x cachedBlob) bool {
		if !keys[x.key] {
			return false
		}
		c.used -= x.bytes
		return true
	})
}
