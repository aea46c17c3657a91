package blob

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"sync"
	"testing"
)

var _ Sharer = (*Dir)(nil)

// sharing returns a commit that shares the bytes of another key, and then calls more.
func sharing(d *Dir, from, to string, more func()) func() (bool, error) {
	return func() (bool, error) {
		err := d.Share(from, to)
		if more != nil {
			more()
		}
		return true, err
	}
}

// stored returns the file of a key.
func stored(t *testing.T, where, key string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path.Join(where, Name(key)))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestShare shows that equal bytes are stored once, other bytes are not shared, and that removing one
// key leaves the other whole.
func TestShare(t *testing.T) {
	d, where := open(t)
	first, second, other := newKey(t), newKey(t), newKey(t)
	want := content(300_000)
	if err := d.Put(first, storing(want), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}
	if err := d.Put(second, storing(want), sharing(d, first, second, nil)); err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(want)
	changed[200_000] ^= 1
	if err := d.Put(other, storing(changed), sharing(d, first, other, nil)); err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(stored(t, where, first), stored(t, where, second)) {
		t.Error("the same bytes are stored twice")
	}
	readRanges(t, d, other, changed)

	if err := d.Remove(first, "peaks"); err != nil {
		t.Fatal(err)
	}
	readRanges(t, d, second, want)
	if part, err := d.ReadPart(second, "peaks"); err != nil || !bytes.Equal(part, want[:5]) {
		t.Errorf("the part of the other key is %q, %v", part, err)
	}
	if err := d.Sweep(t.Context(), using(second, other)); err != nil {
		t.Fatal(err)
	}
	if found := files(t, where); len(found) != 4 {
		t.Errorf("%q remain, want two blobs with a part each", found)
	}
}

// TestShareWithoutRow shows that nothing remains of an upload that shares and whose row is refused, and
// that the other key stays.
func TestShareWithoutRow(t *testing.T) {
	d, where := open(t)
	first, second := newKey(t), newKey(t)
	want := content(1000)
	if err := d.Put(first, storing(want), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}
	err := d.Put(second, storing(want), func() (bool, error) { return false, d.Share(first, second) })
	if err != nil {
		t.Fatal(err)
	}
	readRanges(t, d, first, want)
	if found := files(t, where); len(found) != 2 {
		t.Errorf("%q remain, want one blob with a part", found)
	}
}

// TestShareDuringRemoval shows that an upload is whole although the blob it shares is removed, or swept,
// before its row is committed, and although a sweep does not find the row yet.
func TestShareDuringRemoval(t *testing.T) {
	d, where := open(t)
	want := content(100_000)
	for _, order := range []string{"removed before", "removed after", "swept after"} {
		first, second := newKey(t), newKey(t)
		if err := d.Put(first, storing(want), keeping(true, nil)); err != nil {
			t.Fatal(err)
		}
		if order == "removed before" {
			if err := d.Remove(first); err != nil {
				t.Fatal(err)
			}
		}

		err := d.Put(second, storing(want), sharing(d, first, second, func() {
			if order == "removed after" {
				if err := d.Remove(first); err != nil {
					t.Error(err)
				}
			}
			if err := d.Sweep(t.Context(), using()); err != nil {
				t.Error(err)
			}
		}))
		if err != nil {
			t.Fatalf("%s: %v", order, err)
		}

		readRanges(t, d, second, want)
		if err := d.Sweep(t.Context(), using()); err != nil {
			t.Fatal(err)
		}
		if found := files(t, where); len(found) != 0 {
			t.Errorf("%s: %q remain after both are gone", order, found)
		}
	}
}

// TestShareRaces shows that uploads of the same bytes that share, are removed and are swept at the same
// time are each whole as long as they are in use.
func TestShareRaces(t *testing.T) {
	d, where := open(t)
	want := content(50_000)
	donor := newKey(t)
	if err := d.Put(donor, storing(want), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var used []string
	inUse := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), used...)
	}

	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			from := donor
			for range 20 {
				key := newKey(t)
				err := d.Put(key, storing(want), func() (bool, error) {
					err := d.Share(from, key)
					mu.Lock()
					defer mu.Unlock()
					used = append(used, key)
					return true, err
				})
				if err != nil {
					t.Error(err)
				}
				from = key
			}
		})
		wait.Go(func() {
			for range 20 {
				// Keys that are added meanwhile are protected by the locks of their Puts only until they
				// are in use, so the sweep asks again for each.
				err := d.Sweep(t.Context(), func(ctx context.Context, first, last string) ([]string, error) {
					return using(inUse()...)(ctx, first, last)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()

	for _, key := range inUse() {
		f, err := d.Open(key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, %v", key, len(got), err)
		}
		_ = f.Close()
	}
	if found := files(t, path.Join(where, incoming)); len(found) != 0 {
		t.Errorf("%q remain of uploads", found)
	}
}
