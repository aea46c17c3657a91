package blob

import (
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

// TestBucketRemovesOthersAgain shows that an object that the store refuses to delete does not keep
// Sweep from deleting others. Objects that a row owns stay.
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

	b.swept = time.Now() // so that Sweep does not list the bucket, and only visits the objects passed to doubt
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
