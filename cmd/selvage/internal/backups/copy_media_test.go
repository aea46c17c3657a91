package backups

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store/storetest"
	"github.com/selvage/selvage/test/servers"
)

// A cutResponse aborts a response after a part of its body.
type cutResponse struct{ http.ResponseWriter }

func (c cutResponse) Write(body []byte) (int, error) {
	_, _ = c.ResponseWriter.Write(body[:len(body)/2])
	panic(http.ErrAbortHandler)
}

// silent is a Progress that shows nothing.
type silent struct{}

func (silent) ExpectThings(int) {}
func (silent) Steps(int)        {}

// TestCopyMediaOutage shows that a copy fails if the object store fails in the middle of an object, but
// that other objects are copied. Only an object that is truncated or changed is listed as damaged.
func TestCopyMediaOutage(t *testing.T) {
	s, name := servers.S3(t)
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	objects := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(endpoint)
		r.Out.Host = r.In.Host // the signature covers it
	}}
	var failing atomic.Pointer[string] // the path of an object that cannot be read completely
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := failing.Load(); {
		case path == nil:
		case *path == r.URL.Path:
			w = cutResponse{w}
		default:
			time.Sleep(50 * time.Millisecond) // the other objects are read later
		}
		objects.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := blob.OpenBucket(blob.BucketConfig{
		Endpoint:  *address,
		Name:      name,
		Prefix:    "calls",
		Region:    "us-east-1",
		AccessKey: s.Access,
		SecretKey: s.Secret,
		Spool:     t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bucket.Close() })

	rows := storetest.Open(t, storetest.Dir(t), nil)
	archive := recordings.New(recordings.Config{Store: rows, Media: bucket})
	projectID := storetest.AddProject(t, rows, time.Now())
	wav, err := os.ReadFile("../demo/welcome.wav")
	if err != nil {
		t.Fatal(err)
	}
	ingest := func() recordings.Recording {
		t.Helper()
		wav[len(wav)-1]++ // the archive stores equal media once
		rec, _, err := archive.Ingest(t.Context(), recordings.Upload{
			ProjectID: projectID,
			Body:      bytes.NewReader(wav),
			Describe:  func() (recordings.Description, error) { return recordings.Description{}, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	rec := ingest()
	for range 2 * copiers { // more than are copied at the same time
		ingest()
	}

	object := "calls/" + blob.Name(rec.MediaKey)
	path := "/" + name + "/" + object
	failing.Store(&path)
	copied, err := CopyMedia(t.Context(), rows, bucket, storetest.Media(t, t.TempDir()), silent{})
	if !errors.Is(err, problem.Unavailable) || len(copied.Damaged) > 0 {
		t.Errorf("during an outage, CopyMedia lists %q as damaged and returns %v, want problem.Unavailable",
			copied.Damaged, err)
	}
	if copied.Files != 2*copiers {
		t.Errorf("during an outage of one object, CopyMedia copies %d others, want %d", copied.Files, 2*copiers)
	}

	failing.Store(nil)
	file := s.File(name, object)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(whole)
	changed[len(changed)-1] ^= 1
	for what, content := range map[string][]byte{
		"truncated": whole[:len(whole)-1],
		"emptied":   nil,
		"changed":   changed,
	} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		copied, err := CopyMedia(t.Context(), rows, bucket, storetest.Media(t, t.TempDir()), silent{})
		if err != nil || !slices.Equal(copied.Damaged, []string{rec.MediaKey}) {
			t.Errorf("of an object that is %s, CopyMedia lists %q as damaged and returns %v, want %s",
				what, copied.Damaged, err, rec.MediaKey)
		}
	}
}
