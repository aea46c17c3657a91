package blob

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path"
	"testing"

	"github.com/selvage/selvage/test/servers"
)

// testStores runs test with each kind of store. The function fileOf returns the path of the file
// that contains the blob with the given key.
func testStores(t *testing.T, test func(t *testing.T, s Store, fileOf func(key string) string)) {
	secret := sha256.Sum256([]byte(t.Name()))
	secrets := func() [][sha256.Size]byte { return [][sha256.Size]byte{secret} }

	newDir := func(t *testing.T) (Store, func(key string) string) {
		d, root := open(t)
		return d, func(key string) string { return path.Join(root, Name(key)) }
	}
	newBucket := func(t *testing.T) (Store, func(key string) string) {
		s, name := servers.S3(t)
		return bucketIn(t, s, name, 0), func(key string) string { return s.File(name, "calls/"+Name(key)) }
	}

	for name, newStore := range map[string]func(t *testing.T) (Store, func(key string) string){
		"directory": newDir,
		"bucket":    newBucket,
	} {
		t.Run(name, func(t *testing.T) {
			s, fileOf := newStore(t)
			test(t, s, fileOf)
		})
		t.Run("sealed in a "+name, func(t *testing.T) {
			s, fileOf := newStore(t)
			test(t, NewSealed(s, true, secrets), fileOf)
		})
	}
}

// content returns random bytes.
func content(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// storing returns a write function for Put. It writes b to the file, and returns the first five
// bytes as the content of the part peaks.
func storing(b []byte) func(File) (map[string][]byte, error) {
	return func(f File) (map[string][]byte, error) {
		_, err := f.Write(b)
		return map[string][]byte{"peaks": b[:min(len(b), 5)]}, err
	}
}

// TestEveryRange shows that all kinds of stores return exactly the requested ranges, for blobs of
// various sizes, and that a blob can be read while it is written.
func TestEveryRange(t *testing.T) {
	testStores(t, func(t *testing.T, s Store, _ func(string) string) {
		for _, size := range []int{1, 79, 80, 65535, 65536, 65537, 200_000, 3 << 20, sendSize + 12345} {
			want := content(size)
			key := newKey(t)
			write := func(f File) (map[string][]byte, error) {
				parts, err := storing(want)(f)
				got := make([]byte, size)
				if _, err := f.ReadAt(got, 0); err != nil && !errors.Is(err, io.EOF) {
					t.Errorf("reading %d bytes that were just written: %v", size, err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("the %d bytes read differ from those that were just written", size)
				}
				return parts, err
			}
			if err := s.Put(key, write, keeping(true, nil)); err != nil {
				t.Fatalf("storing %d bytes: %v", size, err)
			}

			checkRanges(t, s, key, want)
			part, err := s.ReadPart(key, "peaks")
			if err != nil || !bytes.Equal(part, want[:min(size, 5)]) {
				t.Errorf("ReadPart of a blob of %d bytes returns %q, %v, want its first five bytes", size, part, err)
			}
		}
	})
}

// checkRanges checks that a blob contains exactly the bytes in want, as a whole and in ranges.
func checkRanges(t *testing.T, s Store, key string, want []byte) {
	t.Helper()
	f, err := s.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	size := len(want)
	if end, err := f.Seek(0, io.SeekEnd); err != nil || end != int64(size) {
		t.Errorf("the end is at %d, %v, want %d", end, err, size)
	}

	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(whole, want) {
		t.Errorf("reading %d bytes returns %d, and the error %v, want the stored bytes", size, len(whole), err)
	}

	for _, from := range []int{0, 1, size / 3, size/2 + 1, size - 1, 65535, 65536, 131071} {
		if from >= size {
			continue
		}
		for _, length := range []int{1, 100, 65536, 65537} {
			to := min(size, from+length)
			got := make([]byte, to-from)
			if _, err := f.(io.ReaderAt).ReadAt(got, int64(from)); err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("reading bytes %d to %d of %d: %v", from, to, size, err)
			}
			if !bytes.Equal(got, want[from:to]) {
				t.Errorf("bytes %d to %d of %d differ from the stored ones", from, to, size)
			}
		}
	}
}

// TestDamageIsNoticed shows that reading a blob that was changed or truncated in the store returns
// either an error or the stored bytes.
func TestDamageIsNoticed(t *testing.T) {
	const size = 300_000
	damages := map[string]func(t *testing.T, file string){
		"changed": func(t *testing.T, file string) {
			f, err := os.OpenFile(file, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			one := make([]byte, 1)
			if _, err := f.ReadAt(one, size/2); err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte{one[0] ^ 1}, size/2); err != nil {
				t.Fatal(err)
			}
		},
		"truncated": func(t *testing.T, file string) { truncate(t, file, size/2) },
		"truncated by a piece": func(t *testing.T, file string) {
			truncate(t, file, int64(headSize)+2*(sealedPiece+sealedOverhead))
		},
		"truncated to a few bytes": func(t *testing.T, file string) { truncate(t, file, int64(headSize)+7) },
		"truncated to the header":  func(t *testing.T, file string) { truncate(t, file, int64(headSize)) },
	}

	testStores(t, func(t *testing.T, s Store, fileOf func(string) string) {
		if _, plain := s.(*Dir); plain {
			return // a plain file has no checksums; only `recording verify` finds damage in it
		}
		for name, damage := range damages {
			key, want := newKey(t), content(size)
			if err := s.Put(key, storing(want), keeping(true, nil)); err != nil {
				t.Fatal(err)
			}

			damage(t, fileOf(key))
			f, err := s.Open(key)
			if err != nil {
				continue // Open noticed the damage
			}
			got, err := io.ReadAll(f)
			end, _ := f.Seek(0, io.SeekEnd)
			if err == nil && end == size {
				t.Errorf("a blob that was %s is read without an error: %d bytes", name, len(got))
			}
			if !bytes.HasPrefix(want, got) {
				t.Errorf("a blob that was %s returns bytes that were not stored", name)
			}
			_ = f.Close()
		}
	})
}

func truncate(t *testing.T, file string, size int64) {
	t.Helper()
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
}
