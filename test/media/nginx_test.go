package media

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// cacheConfig makes nginx a typical cache, which identifies a response only by its URL.
const cacheConfig = `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 256; }
http {
	access_log off;
	client_max_body_size 0;
	client_body_temp_path .; fastcgi_temp_path .; uwsgi_temp_path .; scgi_temp_path .; proxy_temp_path .;
	proxy_cache_path cache keys_zone=recordings:1m use_temp_path=off;
	server {
		listen %s;
		location / {
			proxy_pass %s;
			proxy_set_header Host $proxy_host;
			proxy_cache recordings;
			add_header X-Cache $upstream_cache_status always;
		}
	}
}
`

// startCache starts nginx as a cache in front of a server and returns its origin.
func startCache(t *testing.T, behind string) string {
	t.Helper()
	harness.Need(t, "nginx")
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, cacheConfig, address, behind), 0o600); err != nil {
		t.Fatal(err)
	}

	var faults bytes.Buffer
	cmd := exec.Command("nginx", "-p", dir, "-c", config)
	cmd.Stderr = &faults
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // fails because the process was killed
		if t.Failed() {
			t.Logf("nginx: %s", faults.String())
		}
	})

	harness.Eventually(t, time.Minute, "nginx to listen", func() error {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	})
	return "http://" + address
}

// TestCacheNeverMixes shows that a cache never confuses the media and the document of a recording,
// which have the same URL. The test requests them in every order and concurrently. The document is
// never returned without credentials, and media is never returned instead of the document.
func TestCacheNeverMixes(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	cache := startCache(t, p.HTTP)
	wav := harness.ReadSpeech(t)

	asks := map[string]struct {
		opts []harness.Option
		json bool
	}{
		"anybody":           {nil, false},
		"anybody, for JSON": {[]harness.Option{harness.Header("Accept", "application/json")}, false},
		"a stranger, for JSON": {[]harness.Option{harness.Header("Accept", "application/json"),
			harness.Basic(p.ID, "wrong")}, false},
		"the project":           {[]harness.Option{p.Basic()}, false},
		"the project, for JSON": {[]harness.Option{harness.Header("Accept", "application/json"), p.Basic()}, true},
		"the project, for either": {[]harness.Option{harness.Header(
			"Accept", "audio/*, application/json;q=0.5"), p.Basic()}, true},
	}

	check := func(name, url string) {
		ask := asks[name]
		a, err := p.TryURL("GET", url, ask.opts...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}

		right := bytes.Equal(a.Body, wav)
		if ask.json {
			right = strings.HasPrefix(string(a.Body), `{"sid":`)
		}
		if a.Status != 200 || !right {
			t.Errorf("%s got %d, %d bytes of %s from the cache (%s)", name, a.Status, len(a.Body),
				a.Header.Get("Content-Type"), a.Header.Get("X-Cache"))
		}
		if ask.json && a.Header.Get("X-Cache") == "HIT" {
			t.Errorf("%s: the document was returned by the cache", name)
		}
	}

	for first := range asks {
		url := cache + p.LaML("/Recordings/"+p.Upload(t, wav))
		check(first, url)
		for second := range asks {
			check(second, url)
			check(first, url)
		}
	}

	url := cache + p.LaML("/Recordings/"+p.Upload(t, wav))
	var wait sync.WaitGroup
	for range 10 {
		for name := range asks {
			wait.Go(func() { check(name, url) })
		}
	}

	wait.Wait()
	harness.Eventually(t, time.Minute, "the cache to contain the media (else the test proves nothing)",
		func() error {
			if got := p.Get(t, url).Want(t, 200).Header.Get("X-Cache"); got != "HIT" {
				return fmt.Errorf("X-Cache = %s, want HIT", got)
			}
			return nil
		})
}

// TestCacheKeepsFormatsApart shows that a cache returns the same bytes as the server for each
// format of a recording.
func TestCacheKeepsFormatsApart(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	cache := startCache(t, p.HTTP)
	path := p.LaML("/Recordings/" + p.Upload(t, harness.ReadSpeech(t)))

	for range 2 {
		for end, kind := range map[string]string{
			".wav":                          "audio/x-wav",
			".mp3":                          "audio/mpeg",
			".peaks.json":                   "application/json",
			".peaks.json?format=wavesurfer": "application/json",
		} {
			direct, cached := p.Get(t, path+end).Want(t, 200), p.Get(t, cache+path+end).Want(t, 200)
			if !bytes.Equal(direct.Body, cached.Body) || cached.Header.Get("Content-Type") != kind {
				t.Errorf("%s: %d bytes of %s from the cache, want %d of %s", end, len(cached.Body),
					cached.Header.Get("Content-Type"), len(direct.Body), kind)
			}
		}

		p.Get(t, cache+path+".json").Want(t, 401)
		p.Get(t, cache+path+".json", p.Basic()).Want(t, 200)
	}
}
