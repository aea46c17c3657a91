package lint

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// need skips the test if a command is missing. If tests may not be skipped, it fails the test
// instead.
func need(t *testing.T, command string) {
	t.Helper()
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin"); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(command); err == nil {
		return
	}
	if os.Getenv("CI") == "true" || os.Getenv("SELVAGE_TEST_ALL") == "1" {
		t.Fatalf("%s is missing: run test/setup.sh", command)
	}
	t.Skipf("%s is missing", command)
}

// read returns the contents of a file after replacements. Each replacement is a regular expression,
// which must match, followed by the text that replaces it.
func read(t *testing.T, file string, replacements ...string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replacements); i += 2 {
		re := regexp.MustCompile(replacements[i])
		if !re.Match(raw) {
			t.Fatalf("%s has no %s", file, re)
		}
		raw = re.ReplaceAllLiteral(raw, []byte(replacements[i+1]))
	}
	return string(raw)
}

// write creates a file with a text, and returns the file's name.
func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestSystemd verifies the unit. It also checks that systemd rates the exposure of the service as
// at most 2 out of 10.
func TestSystemd(t *testing.T) {
	need(t, "systemd-analyze")
	unit := writeUnit(t, "../systemd/selvage.service", "/usr/local/bin/selvage")
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err = exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", unit).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// TestUnits checks the unit in deploy/systemd and that of the Debian package. Both must permit the server
// to read the state of the clock, and to list the addresses of the machine. They must restart the server
// no matter how often it has failed.
func TestUnits(t *testing.T) {
	need(t, "systemd-analyze")
	for file, program := range map[string]string{
		"../systemd/selvage.service":        "/usr/local/bin/selvage",
		"../../release/deb/selvage.service": "/usr/bin/selvage",
	} {
		unit := writeUnit(t, file, program)
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", unit).CombinedOutput()
		if err != nil {
			t.Errorf("systemd-analyze security of %s: %v\n%s", file, err, out)
		}
		for _, want := range []string{"adjtimex is allowed", "Service may allocate netlink sockets"} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("systemd-analyze security of %s does not say %q:\n%s", file, want, out)
			}
		}
		if !strings.Contains(read(t, file), "\nStartLimitIntervalSec=0\n") {
			t.Errorf("%s lets systemd give up after several failed starts", file)
		}
	}
}

// writeUnit writes a unit that starts /bin/true instead of the program, and returns the file's name.
func writeUnit(t *testing.T, file, program string) string {
	t.Helper()
	unit := write(t, filepath.Join(t.TempDir(), "selvage.service"), read(t, file, program, "/bin/true"))
	if err := os.Chmod(unit, 0o644); err != nil {
		t.Fatal(err)
	}
	return unit
}

// through returns a client that connects to a socket, regardless of the URL.
func through(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

// start runs a command until the end of the test.
func start(t *testing.T, name string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	c.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // fails if the process has already ended
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s: %s", name, out.String())
		}
	})
}

// get fetches a URL. It tries again until a server answers.
func get(t *testing.T, client *http.Client, url string) (*http.Response, []byte) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}

		resp, err := client.Do(req)
		if err != nil && time.Now().Before(deadline) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()

		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, body
	}
}

// A node is a server that lets the proxy in front of it send recordings.
type node struct {
	address   string // for clients
	ops       string // the address for health checks
	media     string // the media directory
	recording string // path of a recording
}

// serve starts a node.
func serve(t *testing.T) node {
	t.Helper()
	dir := t.TempDir()
	binary := os.Getenv("SELVAGE_BINARY")
	if binary == "" {
		binary = filepath.Join(dir, "selvage")
		build := exec.Command("go", "build", "-C", "../..", "-o", binary, "./cmd/selvage")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building: %v\n%s", err, out)
		}
	}

	t.Setenv("SELVAGE_RECORDINGS__OFFLOAD", "x-accel-redirect")
	t.Setenv("SELVAGE_TRUSTED_PROXIES", "127.0.0.1")
	start(t, binary, "serve", "--data", dir+"/data", "--listen", "127.0.0.1:0", "--listen-tls", "off",
		"--listen-ops", "127.0.0.1:0", "--listen-media", "off")
	address, ops := await(t, dir+"/data/run.json")

	first, err := os.ReadFile(dir + "/data/first-run.txt")
	if err != nil {
		t.Fatal(err)
	}
	return node{
		address:   address,
		ops:       ops,
		media:     dir + "/data/media",
		recording: regexp.MustCompile(`/api/laml/\S+\.wav`).FindString(string(first)),
	}
}

// await waits until a server is ready, and returns its addresses for clients and for health checks. A
// ready server writes run.json.
func await(t *testing.T, run string) (address, ops string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		raw, err := os.ReadFile(run)
		var running struct{ HTTP, Ops string }
		if err == nil && json.Unmarshal(raw, &running) == nil {
			return strings.TrimPrefix(running.HTTP, "http://"), strings.TrimPrefix(running.Ops, "http://")
		}
	}
	t.Fatal("the server is not ready")
	return "", ""
}

// checkProxy checks that a proxy forwards requests, and sends a recording itself.
func checkProxy(t *testing.T, n node, client *http.Client, url string) {
	t.Helper()
	resp, body := get(t, client, url+"/.well-known/openid-configuration")
	if resp.StatusCode != 200 {
		t.Fatalf("the OpenID configuration through the proxy = %d %s, want 200", resp.StatusCode, body)
	}
	var document struct{ Issuer string }
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatalf("the OpenID configuration through the proxy is %s: %v", body, err)
	}
	if document.Issuer == "" {
		t.Fatalf("the OpenID configuration through the proxy has no issuer: %s", body)
	}

	direct, body := get(t, http.DefaultClient, "http://"+n.address+n.recording)
	if direct.Header.Get("X-Accel-Redirect") == "" {
		t.Fatalf("the server returned the headers %v, want X-Accel-Redirect among them", direct.Header)
	}
	if len(body) > 0 {
		t.Fatalf("the server sent %d bytes of the recording itself, want none", len(body))
	}

	resp, body = get(t, client, url+n.recording)
	if resp.StatusCode != 200 {
		t.Errorf("the recording through the proxy = %d, want 200", resp.StatusCode)
	}
	if !bytes.HasPrefix(body, []byte("RIFF")) {
		t.Errorf("the recording through the proxy begins with %.4q, want RIFF", body)
	}
	for name, want := range map[string]string{
		"Content-Type":           direct.Header.Get("Content-Type"),
		"X-Content-Type-Options": "nosniff",
		"X-Accel-Redirect":       "",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("the recording through the proxy has %s %q, want %q", name, got, want)
		}
	}

	// A client cannot get a file unless the server has permitted it.
	name := strings.TrimPrefix(direct.Header.Get("X-Accel-Redirect"), "/selvage-media/")
	for _, path := range []string{"/selvage-media/" + name, "/" + name, "/srv/recordings/" + name} {
		if resp, body := get(t, client, url+path); resp.StatusCode != 404 {
			t.Errorf("GET %s = %d, %d bytes, want 404", path, resp.StatusCode, len(body))
		}
	}
}

// runNginx runs nginx with the configuration, after replacements, and returns a client for it.
func runNginx(t *testing.T, replacements ...string) *http.Client {
	t.Helper()
	need(t, "nginx")
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	site := write(t, dir+"/selvage.conf", read(t, "../nginx/selvage.conf", append(replacements,
		`listen 443 ssl http2;`, "listen unix:"+dir+"/socket ssl http2;", `(?m)^ *listen \[::\].*$`, "",
		`/etc/ssl/example\.org\.pem`, cert, `/etc/ssl/example\.org\.key`, key)...))
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // the owner of the media directory
	}
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "%s_temp_path %s/%s;", kind, dir, kind)
	}
	conf := write(t, dir+"/nginx.conf", user+"daemon off; pid "+dir+"/pid; error_log stderr; events {} http { "+
		"access_log off; "+temporary.String()+" include "+site+"; }")

	if out, err := exec.Command("nginx", "-t", "-e", "stderr", "-c", conf).CombinedOutput(); err != nil {
		t.Fatalf("nginx -t: %v\n%s", err, out)
	}
	start(t, "nginx", "-e", "stderr", "-c", conf)
	return through(dir + "/socket")
}

// TestNginx runs nginx with the configuration, in front of a server.
func TestNginx(t *testing.T) {
	need(t, "nginx")
	n := serve(t)
	client := runNginx(t, `10\.0\.0\.11:8080`, n.address, `(?m)^ *server 10\.0\.0\.12.*$`, "",
		`/srv/recordings/;`, n.media+"/;")
	checkProxy(t, n, client, "https://id.example.org")
}

// TestNginxLimits shows that a node that responds with 503 to a request, because the request exceeds a
// limit, still gets other requests. If a node does not respond at all, the other one gets its requests.
func TestNginxLimits(t *testing.T) {
	nodes := make([]*httptest.Server, 2)
	for i := range nodes {
		nodes[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/limited" {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, i)
		}))
		t.Cleanup(nodes[i].Close)
	}
	client := runNginx(t, `10\.0\.0\.11:8080`, nodes[0].Listener.Addr().String(),
		`10\.0\.0\.12:8080`, nodes[1].Listener.Addr().String())

	const url = "https://id.example.org"
	if resp, _ := get(t, client, url+"/limited"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("a request that exceeds a limit = %d %v, want 503 with Retry-After", resp.StatusCode, resp.Header)
	}
	responded := make(map[string]bool)
	for range 4 {
		_, body := get(t, client, url+"/")
		responded[string(body)] = true
	}
	if len(responded) != 2 {
		t.Errorf("after a response with the status 503, only the nodes %v get requests, want both", responded)
	}

	nodes[0].Close()
	for range 4 {
		if resp, body := get(t, client, url+"/"); resp.StatusCode != 200 || string(body) != "1" {
			t.Errorf("a request while a node is gone = %d %s, want 200 from node 1", resp.StatusCode, body)
		}
	}
}

// TestNginxSilentNode shows that the other node gets the requests if the machine of a node is off, and so
// does not even refuse connections.
func TestNginxSilentNode(t *testing.T) {
	running := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(running.Close)
	client := runNginx(t, `10\.0\.0\.11:8080`, silentAddress(t), `10\.0\.0\.12:8080`, running.Listener.Addr().String())
	for range 2 {
		if resp, _ := get(t, client, "https://id.example.org/"); resp.StatusCode != 200 {
			t.Errorf("a request while a machine is off = %d, want 200 from the other node", resp.StatusCode)
		}
	}
}

// silentAddress returns an address that neither accepts nor refuses connections, because others wait there.
func silentAddress(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(socket, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)

	for range 10 {
		waiting, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = waiting.Close() })
	}
	t.Fatal("the address still accepts connections")
	return ""
}

// TestCaddy validates the Caddyfile. It then runs Caddy with this file in front of a server, but
// without certificates. If the server's health could not be checked, Caddy would send no requests to
// it.
func TestCaddy(t *testing.T) {
	need(t, "caddy")
	if out, err := exec.Command("caddy", "validate", "--config", "../caddy/Caddyfile").CombinedOutput(); err != nil {
		t.Fatalf("caddy validate: %v\n%s", err, out)
	}
	n := serve(t)
	_, opsPort, err := net.SplitHostPort(n.ops)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	conf := write(t, dir+"/Caddyfile", "{\nadmin off\n}\n"+read(t, "../caddy/Caddyfile",
		`(?m)^id\.example\.org, .* \{$`, "http://id.example.org {\nbind unix/"+dir+"/socket",
		`10\.0\.0\.11:8080 10\.0\.0\.12:8080`, n.address, `health_port 9090`, "health_port "+opsPort,
		`/srv/recordings`, n.media))
	start(t, "caddy", "run", "--config", conf, "--adapter", "caddyfile")
	checkProxy(t, n, through(dir+"/socket"), "http://id.example.org")
}

// certificate writes a self-signed certificate and its key.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"id.example.org"},
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}

	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	return write(t, dir+"/cert.pem", string(certPEM)), write(t, dir+"/key.pem", string(keyPEM))
}
