package blob

import (
	"bytes"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/test/servers"
)

// TestBucketRoundTrips shows that reading the first byte of a blob takes one request to the store,
// and that reading any later range takes one more.
func TestBucketRoundTrips(t *testing.T) {
	s, name := servers.S3(t)
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}

	var requests atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		requests.Add(1)
		r.SetURL(endpoint)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}

	b, err := OpenBucket(BucketConfig{
		Endpoint:  *at,
		Name:      name,
		Region:    "us-east-1",
		AccessKey: s.Access,
		SecretKey: s.Secret,
		Spool:     t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	key, want := newKey(t), content(5<<20)
	if err := b.Put(key, storing(want), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}

	b.forget(b.object(Name(key))) // as after a restart, and on other nodes
	for _, from := range []int64{0, 4 << 20} {
		before := requests.Load()
		f, err := b.Open(key)
		if err != nil {
			t.Fatal(err)
		}

		got := make([]byte, 1)
		_, err = f.Seek(from, io.SeekStart)
		if err == nil {
			_, err = io.ReadFull(f, got)
		}

		if trips := requests.Load() - before; err != nil || !bytes.Equal(got, want[from:from+1]) || trips != 1 {
			t.Errorf("reading the byte at %d took %d requests, %v, want 1", from, trips, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
