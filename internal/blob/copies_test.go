package blob

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCopyThatCannotBeRemoved shows that a copy that cannot be removed stays, and that it is removed
// later.
func TestCopyThatCannotBeRemoved(t *testing.T) {
	dir := t.TempDir()
	c, err := openCopies(dir, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()

	first, second := "0190aaaa-0000-7000-8000-000000000001", "0190aaaa-0000-7000-8000-000000000002"
	for _, key := range []string{first, second} {
		open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("12345678")), nil }
		if err := c.copy(key, 8, open); err != nil {
			t.Fatal(err)
		}
		c.insert(key, 8)
	}

	// A directory that is not empty cannot be removed as a file.
	obstacle := replaceByDirectory(t, dir, first[len(first)-4:])
	c.shrink()
	if c.used != 16 || len(c.order) != 2 {
		t.Errorf("%d copies use %d bytes, want 2 and 16", len(c.order), c.used)
	}

	if err := os.RemoveAll(obstacle); err != nil {
		t.Fatal(err)
	}
	c.shrink()
	if c.used != 8 || len(c.order) != 1 || c.order[0].key != second {
		t.Errorf("the copies %v use %d bytes, want only the second one", c.order, c.used)
	}
}

// TestCopiesWithLessSpace shows that copies of an earlier process are removed if the cache has become
// smaller.
func TestCopiesWithLessSpace(t *testing.T) {
	dir := t.TempDir()
	before, err := openCopies(dir, 16)
	if err != nil {
		t.Fatal(err)
	}
	older, newer := "0190aaaa-0000-7000-8000-000000000001", "0190bbbb-0000-7000-8000-000000000002"
	for _, key := range []string{older, newer} {
		open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("12345678")), nil }
		if err := before.copy(key, 8, open); err != nil {
			t.Fatal(err)
		}
	}
	if err := before.close(); err != nil {
		t.Fatal(err)
	}

	after, err := openCopies(dir, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer after.close()
	if after.used != 8 {
		t.Errorf("the copies use %d bytes, want 8", after.used)
	}
	if _, err := os.Stat(filepath.Join(dir, Name(older))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of the older copy = %v, want %v", err, fs.ErrNotExist)
	}
}

// TestCopyAgain shows that a blob that is copied twice counts once.
func TestCopyAgain(t *testing.T) {
	c, err := openCopies(t.TempDir(), 100)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()

	const key = "0190aaaa-0000-7000-8000-000000000001"
	for range 2 {
		open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("12345678")), nil }
		c.add(key, 8, open)
		c.running.Wait()
	}
	if c.used != 8 || len(c.order) != 1 {
		t.Errorf("the copies %v use %d bytes, want one copy of 8 bytes", c.order, c.used)
	}
	if err := c.remove(key); err != nil {
		t.Fatal(err)
	}
	if c.used != 0 || len(c.order) != 0 {
		t.Errorf("after the removal, the copies %v use %d bytes, want none", c.order, c.used)
	}
}

// TestSweptCopies shows that copies that a sweep has removed no longer count.
func TestSweptCopies(t *testing.T) {
	c, err := openCopies(t.TempDir(), 100)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()

	used, unused := "0190aaaa-0000-7000-8000-000000000001", "0190bbbb-0000-7000-8000-000000000002"
	for _, key := range []string{unused, used} {
		open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("12345678")), nil }
		if err := c.copy(key, 8, open); err != nil {
			t.Fatal(err)
		}
		c.insert(key, 8)
	}

	if err := c.sweep(t.Context(), using(used)); err != nil {
		t.Fatal(err)
	}
	if c.used != 8 || len(c.order) != 1 || c.order[0].key != used {
		t.Errorf("the copies %v use %d bytes, want only the one in use", c.order, c.used)
	}
}

// TestMissingCopyMadeAgain shows that a copy still counts if it is made again after a sweep found its
// file missing.
func TestMissingCopyMadeAgain(t *testing.T) {
	c, err := openCopies(t.TempDir(), 100)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()

	const key = "0190aaaa-0000-7000-8000-000000000001"
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("12345678")), nil }
	c.add(key, 8, open)
	c.running.Wait()
	if err := c.dir.Remove(key); err != nil {
		t.Fatal(err)
	}

	missing := c.missing()
	if !slices.Equal(missing, []string{key}) {
		t.Errorf("the copies %q are missing, want %s", missing, key)
	}
	c.add(key, 8, open)
	c.running.Wait()
	c.forgetMissing(missing)
	if c.used != 8 || len(c.order) != 1 {
		t.Errorf("the copies %v use %d bytes, want the one that was made again", c.order, c.used)
	}
}

// replaceByDirectory replaces the file below dir whose name has the given end with a directory that
// contains a file. It returns the path of the directory.
func replaceByDirectory(t *testing.T, dir, end string) (path string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"+end))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Fatalf("%d files end with %s, want 1", len(files), end)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(files[0], "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	return files[0]
}
