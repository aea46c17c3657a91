package blob

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

	c := BucketConfig{
		Endpoint:  *endpoint,
		Name:      name,
		Prefix:    "calls",
		Region:    "us-east-1",
		AccessKey: s.Access,
		SecretKey: s.Secret,
		Spool:     t.TempDir(),
	}
	if cache > 0 {
		c.Cache, c.CacheSize = t.TempDir(), cache
	}
	return openBucket(t, c)
}

func openBucket(t *testing.T, c BucketConfig) *Bucket {
	t.Helper()
	b, err := OpenBucket(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// TestBucketWithoutRow shows that nothing remains of a blob if its row could not be created.
func TestBucketWithoutRow(t *testing.T) {
	s, name := servers.S3(t)
	b := bucketIn(t, s, name, 0)
	refused := newKey(t)
	if err := b.Put(refused, storing([]byte("x")), keeping(false, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(refused); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a refused row, Open returns %v, want fs.ErrNotExist", err)
	}

	failed := newKey(t)
	broken := errors.New("broken")
	failing := func(File) (map[string][]byte, error) { return nil, broken }
	if err := b.Put(failed, failing, keeping(true, nil)); !errors.Is(err, broken) {
		t.Errorf("Put with a failed write returns %v, want %v", err, broken)
	}
	if _, err := b.Open(failed); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a failed write, Open returns %v, want fs.ErrNotExist", err)
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
		object := b.object(Name(key))
		b.forget(object)
		f, err := b.open(object)
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
	if exists(orphan) {
		t.Error("after Sweep, the old object without an owner still exists")
	}
	if !exists(used) {
		t.Error("Sweep deleted an object with an owner")
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

	err := b.Put(newKey(t), storing([]byte("audio")), keeping(true, nil))
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("Put returns %v, want problem.Unavailable", err)
	}
	if b.Probe() == nil {
		t.Error("Probe finds no problem")
	}

	s.Start(t)
	if err := b.Probe(); err != nil {
		t.Errorf("Probe after the store is back = %v, want success", err)
	}
}

// TestBucketLink shows that a link serves the bytes with the given headers.
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
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the link serves %d bytes with status %s, want the %d bytes of the blob",
			len(got), res.Status, len(want))
	}
	if kind := res.Header.Get("Content-Type"); kind != "audio/x-wav" {
		t.Errorf("the link serves the content type %q, want audio/x-wav", kind)
	}
}

// TestBucketPublicLink shows that a link has the address at which clients reach the store, and that
// its signature covers this address.
func TestBucketPublicLink(t *testing.T) {
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

	b := openBucket(t, BucketConfig{
		Endpoint:  *endpoint,
		Public:    *public,
		Name:      name,
		Region:    "us-east-1",
		AccessKey: s.Access,
		SecretKey: s.Secret,
		Spool:     t.TempDir(),
	})
	key, want := newKey(t), content(1000)
	if err := b.Put(key, storing(want), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}

	link, err := b.Link(key, time.Minute, nil)
	if err != nil || !strings.HasPrefix(link, proxy.URL+"/"+name+"/") {
		t.Fatalf("Link = %q, %v, want a link to %s", link, err, proxy.URL)
	}
	status, got := fetch(t, link)
	if status != http.StatusOK {
		t.Errorf("the link returns status %d, want 200", status)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the link returns %d bytes, want the %d bytes of the blob", len(got), len(want))
	}

	internal := strings.Replace(link, proxy.URL, s.Endpoint, 1)
	if status, _ := fetch(t, internal); status != http.StatusForbidden {
		t.Errorf("the link with a different address returns status %d, want 403", status)
	}
}

// fetch returns the status and the body of the response to a request for link.
func fetch(t *testing.T, link string) (status int, body []byte) {
	t.Helper()
	res, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
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
		checkRanges(t, b, key, want)
		b.cache.running.Wait()
		checkRanges(t, b, key, want)
	}

	copied := func(key string) bool {
		f, err := b.cache.dir.Open(key)
		if err != nil {
			return false
		}
		return f.Close() == nil
	}

	got := [3]bool{copied(keys[0]), copied(keys[1]), copied(keys[2])}
	if want := [3]bool{false, true, true}; got != want {
		t.Errorf("the blobs have copies: %v, want %v", got, want)
	}

	if err := b.Remove(keys[2], "peaks"); err != nil {
		t.Fatal(err)
	}
	if copied(keys[2]) {
		t.Error("the copy of a blob exists after the removal of the blob")
	}
	if b.cache.used != 1000 {
		t.Errorf("the copies use %d bytes, want 1000", b.cache.used)
	}
}
