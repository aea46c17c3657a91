package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// nginxConfig makes nginx serve one directory with one process. Without tcp_nopush, nginx serves
// ranges on loopback faster.
const nginxConfig = `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 256; }
http {
	access_log off;
	sendfile on;
	tcp_nopush off;
	keepalive_requests 100000000;
	types { audio/x-wav wav; }
	client_body_temp_path .; proxy_temp_path .; fastcgi_temp_path .; uwsgi_temp_path .; scgi_temp_path .;
	server { listen %s; root .; }
}
`

// rivals holds the operations that are measured on another server, keyed by the name of the
// corresponding operation on selvage.
type rivals struct {
	operations map[string]operation
	pid        int
}

// startNginx starts nginx, if it is installed and selected. nginx serves the same recording as
// selvage.
func (w *world) startNginx(p *harness.Program, s settings, prefix []string) (r rivals) {
	nginx, err := exec.LookPath("nginx")
	if err != nil || !s.only.MatchString("nginx") {
		p.Logf("nginx is not measured")
		return r
	}

	dir, address := p.TempDir(), freeAddress(p)
	config := filepath.Join(dir, "nginx.conf")
	files := map[string][]byte{
		config:                           fmt.Appendf(nil, nginxConfig, address),
		filepath.Join(dir, "speech.wav"): w.speech,
	}
	for file, content := range files {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			p.Fatalf("%v", err)
		}
	}

	args := append(append([]string{}, prefix...), nginx, "-p", dir, "-c", config)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	if err := os.Chmod(dir, 0o755); err != nil {
		p.Fatalf("%v", err)
	}
	if err := cmd.Start(); err != nil {
		p.Fatalf("starting nginx: %v", err)
	}

	p.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // fails because the process was killed
	})
	harness.Eventually(p, 10*time.Second, "nginx to listen", func() error {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	})

	r.pid, r.operations = cmd.Process.Pid, make(map[string]operation)
	ours := w.mediaOperations("", w.media, recording)
	for i, op := range w.mediaOperations(address, "/speech.wav", nginxServer) {
		r.operations[ours[i].name] = op
	}
	return r
}

func freeAddress(p *harness.Program) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.Fatalf("%v", err)
	}
	defer l.Close()
	return l.Addr().String()
}
