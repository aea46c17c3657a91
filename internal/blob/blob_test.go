package blob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/recordings"
)

var _ recordings.Media = (*Dir)(nil)

func open(t *testing.T) (d *Dir, path string) {
	t.Helper()
	path = t.TempDir()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, path
}

func newKey(t *testing.T) string {
	t.Helper()
	key, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return key.String()
}

// files returns the names of all files below path.
func files(t *testing.T, path string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			found = append(found, filepath.Base(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// filling returns a write function for Put. It writes text to the file, and returns the same text
// as the content of each part.
func filling(text string, parts ...string) func(File) (map[string][]byte, error) {
	return func(f File) (map[string][]byte, error) {
		_, err := io.WriteString(f, text)
		contents := make(map[string][]byte)
		for _, part := range parts {
			contents[part] = []byte(text)
		}
		return contents, err
	}
}

func keeping(keep bool, err error) func() (bool, error) {
	return func() (bool, error) { return keep, err }
}

// using returns an InUse that reports the given keys.
func using(keys ...string) InUse {
	return func(_ context.Context, first, last string) (used []string, err error) {
		for _, key := range keys {
			if first <= key && key <= last {
				used = append(used, key)
			}
		}
		return used, nil
	}
}

func TestPutAndOpen(t *testing.T) {
	d, path := open(t)
	key := newKey(t)
	if err := d.Put(key, filling("hello"), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}

	f, err := d.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	if _, ok := f.(*os.File); !ok {
		t.Errorf("Open returns a %T, want an *os.File, which sendfile needs", f)
	}
	if got, err := io.ReadAll(f); err != nil || string(got) != "hello" {
		t.Errorf("reading %s = %q, %v, want hello", key, got, err)
	}

	if err := d.Remove(key); err != nil {
		t.Errorf("Remove(%s): %v, want success", key, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); err != nil || string(got) != "hello" {
		t.Errorf("reading a removed blob that is still open = %q, %v, want hello", got, err)
	}

	if _, err := d.Open(key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a removed key: %v, want fs.ErrNotExist", err)
	}
	if err := d.Remove(key); err != nil {
		t.Errorf("second Remove(%s): %v, want success", key, err)
	}

	if left := files(t, path); len(left) != 0 {
		t.Errorf("remaining files: %q, want none", left)
	}
}

func TestParts(t *testing.T) {
	d, path := open(t)
	key := newKey(t)
	if err := d.Put(key, filling("hello", "peaks", "index"), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}

	if got, err := d.ReadPart(key, "peaks"); err != nil || string(got) != "hello" {
		t.Errorf("ReadPart = %q, %v, want hello", got, err)
	}

	for _, part := range []string{"", ".", "..", "PEAKS", "peaks2", "/etc/passwd", "../" + key, "x"} {
		if _, err := d.ReadPart(key, part); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("ReadPart(%q): %v, want fs.ErrNotExist", part, err)
		}
	}

	if err := d.Remove(key, "peaks", "none"); err != nil {
		t.Errorf("Remove of a part that exists and one that does not: %v, want success", err)
	}
	if got, want := files(t, path), []string{key + ".index"}; !slices.Equal(got, want) {
		t.Errorf("files after Remove: %q, want the part that was not named, %q", got, want)
	}

	if err := d.Sweep(t.Context(), using()); err != nil {
		t.Fatal(err)
	}
	if left := files(t, path); len(left) != 0 {
		t.Errorf("files after a sweep: %q, want none", left)
	}
}

func TestPutFails(t *testing.T) {
	d, path := open(t)
	broken := errors.New("broken")
	refuses := func(File) (map[string][]byte, error) { return nil, broken }

	tests := []struct {
		name   string
		write  func(File) (map[string][]byte, error)
		commit func() (bool, error)
		want   error
		left   int // number of remaining files
	}{
		{
			name:   "write fails",
			write:  refuses,
			commit: keeping(true, nil),
			want:   broken,
		},
		{
			name:   "a part has an invalid name",
			write:  filling("x", "peaks", "../x"),
			commit: keeping(true, nil),
			want:   fs.ErrNotExist,
		},
		{
			name:   "not kept",
			write:  filling("x", "peaks", "index"),
			commit: keeping(false, nil),
		},
		{
			name:   "commit fails with an unknown outcome",
			write:  filling("x", "peaks"),
			commit: keeping(false, broken),
			want:   broken,
			left:   2,
		},
	}

	for _, tt := range tests {
		if err := d.Put(newKey(t), tt.write, tt.commit); !errors.Is(err, tt.want) {
			t.Errorf("%s: Put: %v, want %v", tt.name, err, tt.want)
		}
		if got := len(files(t, path)); got != tt.left {
			t.Errorf("%s: %d remaining files, want %d", tt.name, got, tt.left)
		}
	}

	if err := d.Sweep(t.Context(), using()); err != nil {
		t.Fatal(err)
	}
	if left := files(t, path); len(left) != 0 {
		t.Errorf("files after a sweep: %q, want none", left)
	}
}

func TestKeysReachNothingOutside(t *testing.T) {
	d, path := open(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}

	planted := newKey(t)
	if err := os.Mkdir(filepath.Join(path, planted[:prefix]), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(path, planted[:prefix], planted)); err != nil {
		t.Fatal(err)
	}

	if f, err := d.Open(planted); err == nil {
		_ = f.Close()
		t.Errorf("Open(%q), a symbolic link, succeeds, want an error", planted)
	}
	_ = d.Put(planted, filling("x"), keeping(true, nil)) // may replace the link, but not follow it

	for _, key := range []string{
		"", ".", "..", "../../etc/passwd", "incoming", "/etc/passwd", "a\x00b", "{" + newKey(t) + "}",
	} {
		if f, err := d.Open(key); err == nil {
			_ = f.Close()
			t.Errorf("Open(%q) succeeds, want an error", key)
		}
		if err := d.Put(key, filling("x"), keeping(true, nil)); err == nil {
			t.Errorf("Put(%q) succeeds, want an error", key)
		}
	}

	if got, err := os.ReadFile(secret); err != nil || string(got) != "secret" {
		t.Errorf("the file outside the directory is %q, %v, want secret", got, err)
	}
}

func TestSweepKeepsOwned(t *testing.T) {
	d, path := open(t)
	owned, orphan := newKey(t), newKey(t)
	for _, key := range []string{owned, orphan} {
		if err := d.Put(key, filling("x", "peaks"), keeping(true, nil)); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.Mkdir(filepath.Join(path, "lost+found"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, owned[:prefix], "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	if err := d.Sweep(t.Context(), using(owned)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, "lost+found")); err != nil {
		t.Fatal(err)
	}

	got, want := files(t, path), []string{owned, owned + ".peaks", "README"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("files after a sweep: %q, want %q", got, want)
	}
}

// TestSweepInTurns shows that after the first sweep, each sweep looks only at some folders, and that
// the following sweeps look at the others.
func TestSweepInTurns(t *testing.T) {
	d, path := open(t)
	d.atOnce = 2
	put := func(folder string) {
		t.Helper()
		key := folder + "00-0000-7000-8000-000000000000"
		if err := d.Put(key, filling("x"), keeping(true, nil)); err != nil {
			t.Fatal(err)
		}
	}
	folders := []string{"019a00", "019a01", "019a02", "019a03", "019a04"}
	sweep := func(left int) {
		t.Helper()
		if err := d.Sweep(t.Context(), using()); err != nil {
			t.Fatal(err)
		}
		if got := len(files(t, path)); got != left {
			t.Errorf("%d files are left, want %d", got, left)
		}
	}

	for _, folder := range folders {
		put(folder)
	}
	sweep(0)

	for _, folder := range folders {
		put(folder)
	}
	sweep(3)
	put("019a00")
	sweep(2)
	sweep(0)
}

// TestSweepDuringPut shows that a sweep spares a file that is being written. The writer holds a
// lock until its row is committed; before that, no row names the file.
func TestSweepDuringPut(t *testing.T) {
	d, path := open(t)
	sweep := func() error { return d.Sweep(t.Context(), using()) }
	write := func(f File) (map[string][]byte, error) {
		parts, err := filling("x", "peaks")(f)
		return parts, errors.Join(err, sweep())
	}
	commit := func() (bool, error) { return true, sweep() }

	key := newKey(t)
	if err := d.Put(key, write, commit); err != nil {
		t.Fatal(err)
	}

	if got, want := files(t, path), []string{key, key + ".peaks"}; !slices.Equal(got, want) {
		t.Errorf("files after sweeps during Put: %q, want %q", got, want)
	}
}

func TestSweepDuringManyPuts(t *testing.T) {
	d, path := open(t)

	var mu sync.Mutex
	rows := make(map[string]bool)
	inUse := func(ctx context.Context, first, last string) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		var keys []string
		for key := range rows {
			keys = append(keys, key)
		}
		return using(keys...)(ctx, first, last)
	}

	ctx, stop := context.WithCancel(t.Context())
	var sweeper, putters sync.WaitGroup
	sweeper.Go(func() {
		for ctx.Err() == nil {
			if err := d.Sweep(ctx, inUse); err != nil && ctx.Err() == nil {
				t.Errorf("Sweep: %v", err)
			}
		}
	})

	for range 50 {
		key := newKey(t)
		putters.Go(func() {
			err := d.Put(key, filling("x", "peaks"), func() (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				rows[key] = true
				return true, nil
			})
			if err != nil {
				t.Errorf("Put(%s): %v", key, err)
			}
		})
	}

	putters.Wait()
	stop()
	sweeper.Wait()
	if got := len(files(t, path)); got != 100 {
		t.Errorf("%d files after 50 puts of two files each while a sweeper ran, want 100", got)
	}
}
