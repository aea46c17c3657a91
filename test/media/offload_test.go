package media

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// frontConfig is an nginx configuration for the location in docs/high-availability.md that sends
// recordings. The other settings are what nginx needs in a test.
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

// documentedLocation returns the location block from docs/high-availability.md, with dir as the
// media directory.
func documentedLocation(t *testing.T, dir string) string {
	t.Helper()
	manual, err := os.ReadFile("../../docs/high-availability.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "    location /selvage-media/ {", "\n    }"
	_, rest, found := strings.Cut(string(manual), begin)
	if !found {
		t.Fatalf("docs/high-availability.md does not contain %q", begin)
	}
	settings, _, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("the location /selvage-media/ in docs/high-availability.md does not end with %q", end)
	}
	return begin + strings.Replace(settings, "/srv/recordings/", dir+"/", 1) + end
}

// TestNginxSendsFiles shows that nginx, configured as in the documentation, sends whole files, and
// that the server sends everything else.
func TestNginxSendsFiles(t *testing.T) {
	harness.Need(t, "nginx")
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_RECORDINGS__OFFLOAD=x-accel-redirect"}})
	p := s.NewProject(t)
	front := startNginx(t, s, documentedLocation(t, filepath.Join(s.Data, "media")))
	wav := harness.ReadSpeech(t)

	sid := p.Upload(t, wav)
	path := p.LaML("/Recordings/" + sid)

	request := func(method, path string, opts ...harness.Option) harness.Answer {
		t.Helper()
		a, err := s.TryURL(method, front+path, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}

	whole := request("GET", path+".wav").Want(t, 200)
	if !bytes.Equal(whole.Body, wav) {
		t.Fatalf("GET through nginx returned %d bytes, want the %d bytes of the file", len(whole.Body), len(wav))
	}
	if server := whole.Header.Get("Server"); !strings.HasPrefix(server, "nginx") {
		t.Fatalf("the file comes from the server %q, want nginx", server)
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
	} {
		if got := whole.Header.Values(name); !slices.Equal(got, []string{want}) {
			t.Errorf("nginx returned the header %s: %q, want %q", name, got, want)
		}
	}
	if got := whole.Header.Get("X-Accel-Redirect"); got != "" {
		t.Errorf("nginx returned the header X-Accel-Redirect: %q, want none", got)
	}

	etag := whole.Header.Get("ETag")
	if etag == "" {
		t.Error("nginx returned no ETag")
	}
	part := request("GET", path, harness.Header("Range", "bytes=100-199"), harness.Header("If-Range", etag))
	part.Want(t, 206)
	if !bytes.Equal(part.Body, wav[100:200]) {
		t.Errorf("a range through nginx has %d bytes, want the 100 bytes of the range", len(part.Body))
	}
	request("GET", path+".wav", harness.Header("If-None-Match", etag)).Want(t, 304)

	head := request("HEAD", path+".wav").Want(t, 200)
	if got, want := head.Header.Get("Content-Length"), fmt.Sprint(len(wav)); got != want {
		t.Errorf("HEAD through nginx returned Content-Length %q, want %q", got, want)
	}

	mp3 := request("GET", path+".mp3").Want(t, 200)
	if got := mp3.Header.Get("Content-Type"); got != "audio/mpeg" {
		t.Errorf("an MP3 through nginx has Content-Type %q, want audio/mpeg", got)
	}
	if got, want := mp3.Header.Get("Content-Length"), fmt.Sprint(len(mp3.Body)); got != want {
		t.Errorf("an MP3 through nginx has Content-Length %q, want %q", got, want)
	}

	// Clients cannot request the location of the files.
	request("GET", "/selvage-media/"+sid[:6]+"/"+sid).Want(t, 404)

	p.Do(t, "DELETE", path, p.Basic()).Want(t, http.StatusNoContent)
	gone := request("GET", path+".wav").Want(t, 404)
	if code := gone.Object(t)["code"]; code != 20404.0 {
		t.Errorf("a deleted recording returned the code %v, want 20404", code)
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
		_ = cmd.Wait() // fails because the process was killed
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
