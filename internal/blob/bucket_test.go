package blob

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/test/servers"
)

var (
	_ recordings.Media = (*Sealed)(nil)
	_ Store            = (*Dir)(nil)
	_ Store            = (*Bucket)(nil)
)

// bucketIn returns a bucket of the object store, with a cache of the given size in bytes. If cache
// is 0, the bucket has no cache.
func bucketIn(t *testing.T, s *servers.S3Server, name string, cache int64) *Bucket {
	t.Helper()
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}

	c := BucketConfig{Endpoint: *endpoint, Name: name, Prefix: "calls", Region: "us-east-1",
		AccessKey: s.Access, SecretKey: s.Secret, Spool: t.TempDir()}
	if cache > 0 {
		c.Cache, c.CacheSize = t.TempDir(), cache
	}

	b, err := OpenBucket(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// places runs try with each kind of store. The function stored returns the path of the file that
// contains the blob with the given key.
func places(t *testing.T, try func(t *testing.T, s Store, stored func(key string) string)) {
	secret := sha256.Sum256([]byte(t.Name()))
	seal := func(s Store) Store {
		return NewSealed(s, true, func() [][sha256.Size]byte { return [][sha256.Size]byte{secret} })
	}

	inDir := func(t *testing.T) (Store, func(key string) string) {
		d, where := open(t)
		return d, func(key string) string { return path.Join(where, Name(key)) }
	}

	inBucket := func(t *testing.T) (Store, func(key string) string) {
		s, name := servers.S3(t)
		return bucketIn(t, s, name, 0), func(key string) string { return s.File(name, "calls/"+Name(key)) }
	}

	for name, make := range map[string]func(t *testing.T) (Store, func(key string) string){
		"directory": inDir, "bucket": inBucket,
	} {
		t.Run(name, func(t *testing.T) {
			s, stored := make(t)
			try(t, s, stored)
		})
		t.Run("sealed in a "+name, func(t *testing.T) {
			s, stored := make(t)
			try(t, seal(s), stored)
		})
	}
}

// content returns random bytes.
func content(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func storing(b []byte) func(File) (map[string][]byte, error) {
	return func(f File) (map[string][]byte, error) {
		_, err := f.Write(b)
		return map[string][]byte{"peaks": b[:min(len(b), 5)]}, err
	}
}

// TestEveryRange shows that every range of a blob of any size is exact in every kind of store, and
// that a blob can be read while it is written.
func TestEveryRange(t *testing.T) {
	places(t, func(t *testing.T, s Store, _ func(string) string) {
		for _, size := range []int{1, 79, 80, 65535, 65536, 65537, 200_000, 3 << 20, multipart + 12345} {
			want := content(size)
			key := newKey(t)
			err := s.Put(key, func(f File) (map[string][]byte, error) {
				parts, err := storing(want)(f)
				got := make([]byte, size)
				if _, read := f.ReadAt(got, 0); read != nil && !errors.Is(read, io.EOF) {
					t.Errorf("reading %d bytes that were just written: %v", size, read)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("the %d bytes read differ from those that were just written", size)
				}
				return parts, err
			}, keeping(true, nil))
			if err != nil {
				t.Fatalf("storing %d bytes: %v", size, err)
			}

			readRanges(t, s, key, want)
			if part, err := s.ReadPart(key, "peaks"); err != nil || !bytes.Equal(part, want[:min(size, 5)]) {
				t.Errorf("ReadPart of a blob of %d bytes returns %q, %v, want its first five bytes", size, part, err)
			}
		}
	})
}

func readRanges(t *testing.T, s Store, key string, want []byte) {
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
		for _, length := range []int{1, 100, 65536, 65537} {
			to := min(size, from+length)
			if from >= size {
				continue
			}
			got := make([]byte, to-from)
			if _, err := f.(io.ReaderAt).ReadAt(got, int64(from)); err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("reading bytes %d to %d of %d: %v", from, to, size, err)
			}
			if !bytes.Equal(got, want[from:to]) {
				t.Errorf("bytes %d to %d of %d are wrong", from, to, size)
			}
		}
	}
}

// TestDamageIsNoticed shows that reading never returns bytes that were changed or truncated in the
// store. The exception is a plain file in a directory, which only `recording verify` checks.
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
		"cut": func(t *testing.T, file string) { cut(t, file, size/2) },
		"cut by a piece": func(t *testing.T, file string) {
			cut(t, file, int64(headSize)+2*(sealedPiece+sealedOverhead))
		},
		"cut to few bytes":  func(t *testing.T, file string) { cut(t, file, int64(headSize)+7) },
		"cut to the header": func(t *testing.T, file string) { cut(t, file, int64(headSize)) },
	}

	places(t, func(t *testing.T, s Store, stored func(string) string) {
		if _, plain := s.(*Dir); plain {
			return // a plain file has no checksums; only `recording verify` finds damage in it
		}
		for name, damage := range damages {
			key, want := newKey(t), content(size)
			if err := s.Put(key, storing(want), keeping(true, nil)); err != nil {
				t.Fatal(err)
			}

			damage(t, stored(key))
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
				t.Errorf("a blob that was %s returns wrong bytes", name)
			}
			_ = f.Close()
		}
	})
}

func cut(t *testing.T, file string, size int64) {
	t.Helper()
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
}

// TestBucketWithoutRow shows that nothing remains of a blob if its row could not be created.
func TestBucketWithoutRow(t *testing.T) {
	s, name := servers.S3(t)
	b := bucketIn(t, s, name, 0)
	broken := errors.New("broken")
	for what, put := range map[string]func(key string) error{
		"a refused row": func(key string) error { return b.Put(key, storing([]byte("x")), keeping(false, nil)) },
		"a failed write": func(key string) error {
			return b.Put(key, func(File) (map[string][]byte, error) { return nil, broken }, keeping(true, nil))
		},
	} {
		key := newKey(t)
		_ = put(key) // the second call fails
		if _, err := b.Open(key); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after %s, Open returns %v, want fs.ErrNotExist", what, err)
		}
	}

	if empty, err := b.Empty(t.Context()); err != nil || !empty {
		t.Errorf("Empty() = %v, %v, want true", empty, err)
	}
}

// TestBucketSweep shows that a sweep deletes only objects that are old and have no owner.
func TestBucketSweep(t *testing.T) {
	s, name := servers.S3(t)
	b := bucketIn(t, s, name, 1<<20)
	used, orphan := newKey(t), newKey(t)
	for _, key := range []string{used, orphan} {
		if err := b.Put(key, storing([]byte("audio")), keeping(true, nil)); err != nil {
			t.Fatal(err)
		}
	}

	exists := func(key string) bool {
		b.forget(b.object(Name(key)))
		f, err := b.open(b.object(Name(key)))
		if err != nil {
			return false
		}
		return f.Close() == nil
	}

	if err := b.sweepBefore(t.Context(), using(used), time.Now().Add(-orphanAge)); err != nil {
		t.Fatal(err)
	}
	if !exists(orphan) {
		t.Error("a sweep deleted an object that may belong to an upload")
	}
	if err := b.sweepBefore(t.Context(), using(used), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if exists(orphan) || !exists(used) {
		t.Errorf("after Sweep, the orphan exists: %v, the other: %v, want false and true", exists(orphan), exists(used))
	}
}

// TestBucketUnavailable shows that requests return problem.Unavailable while the store cannot be
// reached.
func TestBucketUnavailable(t *testing.T) {
	s := servers.OwnS3(t)
	b := bucketIn(t, s, s.NewBucket(t), 0)
	key := newKey(t)
	if err := b.Put(key, storing([]byte("audio")), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}

	s.Stop(t)
	b.forget(b.object(Name(key)))
	if _, err := b.Open(key); !errors.Is(err, problem.Unavailable) {
		t.Errorf("Open returns %v, want problem.Unavailable", err)
	}

	if err := b.Put(newKey(t), storing([]byte("audio")), keeping(true, nil)); !errors.Is(err, problem.Unavailable) {
		t.Errorf("Put returns %v, want problem.Unavailable", err)
	}
	if b.Probe() == nil {
		t.Error("Probe finds no problem")
	}

	s.Start(t)
	if err := b.Probe(); err != nil {
		t.Errorf("Probe of a store that is back: %v, want success", err)
	}
}

// TestBucketLink shows that a link serves the bytes with the given headers, and cannot be used for
// another object.
func TestBucketLink(t *testing.T) {
	s, name := servers.S3(t)
	b := bucketIn(t, s, name, 0)
	key, want := newKey(t), content(1000)
	if err := b.Put(key, storing(want), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}

	link, err := b.Link(key, time.Minute, map[string]string{"Content-Type": "audio/x-wav"})
	if err != nil {
		t.Fatal(err)
	}

	res, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	got, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Equal(got, want) || res.Header.Get("Content-Type") != "audio/x-wav" {
		t.Errorf("fetching the link returned %s with %q: %d bytes, %v, want the blob with audio/x-wav",
			res.Status, res.Header.Get("Content-Type"), len(got), err)
	}
}

// TestBucketLinkInPublic shows that a link has the address at which clients reach the store, and that its
// signature covers this address.
func TestBucketLinkInPublic(t *testing.T) {
	s, name := servers.S3(t)
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}

	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(endpoint)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	public, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}

	b, err := OpenBucket(BucketConfig{Endpoint: *endpoint, Public: *public, Name: name, Region: "us-east-1",
		AccessKey: s.Access, SecretKey: s.Secret, Spool: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })

	key, want := newKey(t), content(1000)
	if err := b.Put(key, storing(want), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}

	link, err := b.Link(key, time.Minute, nil)
	if err != nil || !strings.HasPrefix(link, proxy.URL+"/"+name+"/") {
		t.Fatalf("Link = %q, %v, want a link to %s", link, err, proxy.URL)
	}

	for at, status := range map[string]int{link: 200, strings.Replace(link, proxy.URL, s.Endpoint, 1): 403} {
		res, err := http.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != status || err != nil || status == 200 && !bytes.Equal(got, want) {
			t.Errorf("%s returned %s with %d bytes, %v, want %d", at, res.Status, len(got), err, status)
		}
	}
}

// TestBucketCache shows that reading a blob copies it into the cache, that the copies stay within
// their limit, and that removing a blob removes its copy.
func TestBucketCache(t *testing.T) {
	s, name := servers.S3(t)
	b := bucketIn(t, s, name, 2500)
	var keys []string
	for range 3 {
		key, want := newKey(t), content(1000)
		keys = append(keys, key)
		if err := b.Put(key, storing(want), keeping(true, nil)); err != nil {
			t.Fatal(err)
		}
		readRanges(t, b, key, want)
		b.cache.running.Wait()
		readRanges(t, b, key, want)
	}

	copied := func(key string) bool {
		f, err := b.cache.dir.Open(key)
		if err != nil {
			return false
		}
		return f.Close() == nil
	}

	if copied(keys[0]) || !copied(keys[1]) || !copied(keys[2]) {
		t.Errorf("the blobs have copies: %v, %v and %v, want copies of the last two",
			copied(keys[0]), copied(keys[1]), copied(keys[2]))
	}
	if err := b.Remove(keys[2], "peaks"); err != nil {
		t.Fatal(err)
	}
	if copied(keys[2]) || b.cache.used != 1000 {
		t.Errorf("after the removal of the blob, its copy exists: %v, and the copies use %d bytes, want false and 1000",
			copied(keys[2]), b.cache.used)
	}
}
