package media

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// frontConfig is the nginx configuration for sending recordings from docs/high-availability.md,
// with additional settings that a process in a test needs.
const frontConfig = `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 64; }
http {
	access_log off;
	sendfile on;
	client_body_temp_path .; proxy_temp_path .; fastcgi_temp_path .; uwsgi_temp_path .; scgi_temp_path .;
	server {
		listen %[1]s;
		client_max_body_size 0;
		location / { proxy_pass %[2]s; proxy_set_header Host $host; }
%[3]s
	}
}
`

// documented returns the location block of the manual for a media directory.
func documented(t *testing.T, dir string) string {
	t.Helper()
	manual, err := os.ReadFile("../../docs/high-availability.md")
	if err != nil {
		t.Fatal(err)
	}
	from := strings.Index(string(manual), "    location /selvage-media/ {")
	to := strings.Index(string(manual[max(from, 0):]), "\n    }")
	if from < 0 || to < 0 {
		t.Fatal("docs/high-availability.md has no location /selvage-media/")
	}
	return strings.Replace(string(manual[from:from+to+6]), "/srv/recordings/", dir+"/", 1)
}

// TestNginxSendsFiles shows that nginx, configured as in the manual, sends whole files. The server
// sends everything else.
func TestNginxSendsFiles(t *testing.T) {
	harness.Need(t, "nginx")
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_RECORDINGS__OFFLOAD=x-accel-redirect"}})
	p := s.NewProject(t)
	front := startNginx(t, s, documented(t, filepath.Join(s.Data, "media")))
	wav := harness.ReadSpeech(t)

	sid := p.Upload(t, wav)
	path := front + p.LaML("/Recordings/"+sid)

	get := func(method, end string, opts ...harness.Option) harness.Answer {
		t.Helper()
		a, err := s.TryURL(method, path+end, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}

	whole := get("GET", ".wav")
	if whole.Status != 200 || !bytes.Equal(whole.Body, wav) ||
		!strings.HasPrefix(whole.Header.Get("Server"), "nginx") {
		t.Fatalf("GET through nginx = %d with %d bytes, want the file", whole.Status, len(whole.Body))
	}

	for name, want := range map[string]string{
		"Content-Type":                 "audio/x-wav",
		"Content-Disposition":          `inline; filename="` + sid + `.wav"`,
		"X-Content-Type-Options":       "nosniff",
		"Content-Security-Policy":      "default-src 'none'; sandbox",
		"X-Robots-Tag":                 "noindex, nofollow, noarchive",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Resource-Policy": "cross-origin",
		"Access-Control-Allow-Origin":  "*",
		"Cache-Control":                "public, max-age=300, must-revalidate",
		"Accept-Ranges":                "bytes",
		"X-Accel-Redirect":             "",
	} {
		if got := whole.Header.Values(name); fmt.Sprint(got) != fmt.Sprint([]string{want}) &&
			(want != "" || len(got) != 0) {
			t.Errorf("nginx returns the header %s: %q, want %q", name, got, want)
		}
	}

	etag := whole.Header.Get("ETag")
	if a := get("GET", "", harness.Header("Range", "bytes=100-199"),
		harness.Header("If-Range", etag)); a.Status != 206 || !bytes.Equal(a.Body, wav[100:200]) {
		t.Errorf("a range through nginx = %d with %d bytes, want 206 with the range", a.Status, len(a.Body))
	}

	if a := get("GET", ".wav", harness.Header("If-None-Match", etag)); a.Status != 304 || etag == "" {
		t.Errorf("If-None-Match %s = %d, want 304", etag, a.Status)
	}
	if a := get("HEAD", ".wav"); a.Status != 200 || a.Header.Get("Content-Length") != fmt.Sprint(len(wav)) {
		t.Errorf("HEAD through nginx = %d, Content-Length %s, want the file's length", a.Status,
			a.Header.Get("Content-Length"))
	}

	if a := get("GET", ".mp3"); a.Status != 200 || a.Header.Get("Content-Type") != "audio/mpeg" ||
		a.Header.Get("Content-Length") != fmt.Sprint(len(a.Body)) {
		t.Errorf("MP3 through nginx = %d %s with %d bytes, want an MP3", a.Status, a.Header.Get("Content-Type"),
			len(a.Body))
	}

	if a, err := s.TryURL("GET", front+"/selvage-media/"+sid[:6]+"/"+sid); err != nil || a.Status != 404 {
		t.Errorf("the location of the files from outside = %d, %v, want 404", a.Status, err)
	}

	p.Do(t, "DELETE", p.LaML("/Recordings/"+sid), p.Basic()).Want(t, http.StatusNoContent)
	if a := get("GET", ".wav"); a.Status != 404 || a.Object(t)["code"] != 20404.0 {
		t.Errorf("after DELETE = %d %s, want 404", a.Status, a.Body)
	}
}

// startNginx starts nginx in front of a server and returns its URL.
func startNginx(t *testing.T, s *harness.Server, location string) string {
	t.Helper()
	dir := t.TempDir()
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, frontConfig, address, s.HTTP, location), 0o600); err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command("nginx", "-p", dir, "-c", config)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting nginx: %v", err)
	}

	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
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
