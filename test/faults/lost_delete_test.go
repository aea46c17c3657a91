package faults

import (
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// TestLostDeletes deletes recordings while the object store refuses to delete objects, or claims to
// have deleted them but keeps them. The recordings are gone immediately. Their objects are deleted
// after the store works again.
func TestLostDeletes(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	store, bucket := servers.S3(t)
	// Status with which DELETE requests are answered instead of reaching the store; 0 lets them through.
	var answer atomic.Int64
	endpoint := startProxy(t, store.Endpoint, &answer)
	var env []string
	for name, value := range store.Env(bucket) {
		env = append(env, name+"="+strings.ReplaceAll(value, store.Endpoint, endpoint))
	}
	p := harness.StartConfig(t, harness.Config{Env: env}).NewProject(t)
	objects := filepath.Dir(store.File(bucket, "any"))

	for i, fault := range []struct{ answer, want int }{{204, 204}, {403, 503}} {
		sid := p.Upload(t, harness.Tone(8000+i, 2))
		answer.Store(int64(fault.answer))
		p.Do(t, "DELETE", p.LaML("/Recordings/"+sid), p.Basic()).Want(t, fault.want)
		p.Get(t, p.LaML("/Recordings/"+sid+".wav"), p.Basic()).Want(t, 404)
		if kept := files(t, objects); len(kept) == 0 {
			t.Fatal("the store has deleted the objects")
		}
		answer.Store(0)
	}

	harness.Eventually(t, sweepDeadline, "the objects to be deleted", func() error {
		if kept := files(t, objects); len(kept) > 0 {
			return errors.New("the store has " + strings.Join(kept, " "))
		}
		return nil
	})
}

// startProxy starts a proxy for the object store, and returns its URL. If status is not 0, the
// proxy answers DELETE requests itself, with that status.
func startProxy(t *testing.T, to string, status *atomic.Int64) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}

	proxy := &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // the request's signature covers the host
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := int(status.Load()); n != 0 && r.Method == http.MethodDelete {
			w.WriteHeader(n)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// files returns the paths of all files below a directory.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted during the walk
		}
		if err == nil && d.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
