package blob

import (
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/test/servers"
)

// TestBucketRoundTrips shows that it takes one request to the store to open a blob and read a byte, at the
// beginning or further on.
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
	proxyURL, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}

	b := openBucket(t, BucketConfig{
		Endpoint:  *proxyURL,
		Name:      name,
		Region:    "us-east-1",
		AccessKey: s.Access,
		SecretKey: s.Secret,
		Spool:     t.TempDir(),
	})
	key, want := newKey(t), content(5<<20)
	if err := b.Put(key, storing(want), keeping(true, nil)); err != nil {
		t.Fatal(err)
	}

	b.forget(b.object(Name(key))) // as after a restart, and on other nodes
	for _, offset := range []int64{0, 4 << 20} {
		before := requests.Load()
		if got := readByte(t, b, key, offset); got != want[offset] {
			t.Errorf("the byte at %d is %#x, want %#x", offset, got, want[offset])
		}
		if trips := requests.Load() - before; trips != 1 {
			t.Errorf("reading the byte at %d took %d requests, want 1", offset, trips)
		}
	}
}

// readByte opens a blob and reads one byte.
func readByte(t *testing.T, b *Bucket, key string, offset int64) byte {
	t.Helper()
	f, err := b.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	read := make([]byte, 1)
	if _, err := io.ReadFull(f, read); err != nil {
		t.Fatal(err)
	}
	return read[0]
}
