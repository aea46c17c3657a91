package blob

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/servers"
)

// TestBucketRemovesOthersAgain shows that if the store refuses to delete an object, Sweep still deletes
// the others, and deletes this object later. Objects that a row owns stay.
func TestBucketRemovesOthersAgain(t *testing.T) {
	keys := []string{newKey(t), newKey(t), newKey(t)}
	slices.Sort(keys)
	stuck, other, used := keys[0], keys[1], keys[2]
	s, name := servers.S3(t)
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}

	var refuses atomic.Bool
	refuses.Store(true)
	store := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(endpoint)
		r.Out.Host = r.In.Host // the signature covers it
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() && r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, Name(stuck)) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)

	b := bucketIn(t, &servers.S3Server{Endpoint: proxy.URL, Access: s.Access, Secret: s.Secret}, name, 0)
	for _, key := range keys {
		if err := b.Put(key, storing([]byte("audio")), keeping(true, nil)); err != nil {
			t.Fatal(err)
		}
		b.doubt([]string{b.object(Name(key))})
	}

	b.swept = time.Now() // so that Sweep does not list the bucket, and only visits those passed to doubt
	type objects struct{ Stuck, Other, Used bool }
	exists := func(key string) bool {
		_, err := os.Stat(s.File(name, b.object(Name(key))))
		return err == nil
	}
	existing := func() objects {
		return objects{Stuck: exists(stuck), Other: exists(other), Used: exists(used)}
	}

	if err := b.Sweep(t.Context(), using(used)); err == nil {
		t.Error("Sweep does not report that the store refuses to delete an object")
	}
	if got, want := existing(), (objects{Stuck: true, Used: true}); got != want {
		t.Errorf("while the store refuses to delete an object, these exist: %+v, want %+v", got, want)
	}

	refuses.Store(false)
	if err := b.Sweep(t.Context(), using(used)); err != nil {
		t.Error(err)
	}
	if got, want := existing(), (objects{Used: true}); got != want {
		t.Errorf("when the store deletes objects again, these exist: %+v, want %+v", got, want)
	}
}

// TestBucketSweepsBesideCache shows that if a copy cannot be removed from the cache, Sweep still deletes
// objects.
func TestBucketSweepsBesideCache(t *testing.T) {
	s, name := servers.S3(t)
	b := bucketIn(t, s, name, 100)
	key := newKey(t)
	if err := b.Put(key, storing([]byte("audio")), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}
	b.doubt([]string{b.object(Name(key))})
	b.swept = time.Now() // so that Sweep only visits the objects passed to doubt

	const stuck = "0190aaaa-0000-7000-8000-000000000001"
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("12345678")), nil }
	if err := b.cache.copy(stuck, 8, open); err != nil {
		t.Fatal(err)
	}
	replaceByDirectory(t, b.cache.dir.root.Name(), stuck[len(stuck)-4:])

	if err := b.Sweep(t.Context(), using()); err == nil {
		t.Error("Sweep does not report that a copy cannot be removed")
	}
	_, err := os.Stat(s.File(name, b.object(Name(key))))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of the object without an owner = %v, want %v", err, fs.ErrNotExist)
	}
}
