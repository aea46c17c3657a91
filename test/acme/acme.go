// Package acme runs the ACME server pebble for tests. Like a public authority, pebble validates
// names: it looks them up and connects to their addresses, on configurable ports. Every name
// resolves to this machine.
package acme

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A Config sets the ports at which the server validates names. If nothing listens on a port, the
// challenge that uses it fails.
type Config struct {
	HTTP, TLS int           // ports for http-01 and tls-alpn-01
	Lifetime  time.Duration // lifetime of certificates
}

// A Server is a running pebble.
type Server struct {
	Directory string // URL of the ACME directory
	CA        string // PEM file with the CA of the directory's HTTPS certificate

	manage string // URL of the management interface
	client *http.Client
}

// patience limits the time for one step of an order.
const patience = time.Minute

// Start starts a pebble, which is stopped at the end of the test.
func Start(t harness.T, c Config) *Server {
	t.Helper()
	dir := t.TempDir()
	dns, acme, manage := Local(harness.FreePort(t)), Local(harness.FreePort(t)), Local(harness.FreePort(t))
	run(t, nil, program(t, "pebble-challtestsrv"), "-dnsserver", dns, "-management", Local(harness.FreePort(t)),
		"-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "")

	s := &Server{
		Directory: "https://" + acme + "/dir",
		manage:    "https://" + manage,
		CA:        filepath.Join(dir, "pebble.pem"),
	}

	key := filepath.Join(dir, "pebble-key.pem")
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: certify(t, s.CA, key)}}}

	text, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress":           acme,
		"managementListenAddress": manage,
		"certificate":             s.CA,
		"privateKey":              key,
		"httpPort":                c.HTTP,
		"tlsPort":                 c.TLS,
		"retryAfter":              map[string]int{"authz": 1, "order": 1},
		"profiles": map[string]any{"default": map[string]any{"description": "the only one",
			"validityPeriod": int(c.Lifetime.Seconds())}},
	}})
	if err != nil {
		t.Fatalf("%v", err)
	}

	file := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatalf("%v", err)
	}

	run(t, []string{"PEBBLE_VA_NOSLEEP=1"}, program(t, "pebble"), "-config", file, "-dnsserver", dns, "-strict")

	harness.Eventually(t, patience, "pebble to answer", func() error {
		_, err := s.get(s.Directory)
		return err
	})
	return s
}

// program returns the path of a program from the pebble module. It builds the program unless Go's
// build cache contains it.
func program(t harness.T, name string) string {
	t.Helper()
	cmd := exec.Command("go", "tool", "-n", name)
	cmd.Dir = filepath.Join("..", "acme", "pebble") // the suites are sibling directories
	cmd.Stderr = new(strings.Builder)
	out, err := cmd.Output()

	if err != nil {
		harness.Missing(t, fmt.Sprintf("%s (%v: %s)", name, err, cmd.Stderr))
	}
	return strings.TrimSpace(string(out))
}

// run runs a program until the end of the test. If the test has failed, run logs the program's
// output.
func run(t harness.T, env []string, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatalf("%v", err)
	}

	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v", err)
	}

	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // fails because the process was killed
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("log of %s:\n%s", filepath.Base(program), text)
		}
		_ = log.Close()
	})
}

func (s *Server) get(url string) ([]byte, error) {
	resp, err := s.client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// Roots returns a pool with the root of the issued certificates. Every server has a new root.
func (s *Server) Roots(t harness.T) *x509.CertPool {
	t.Helper()
	text, err := s.get(s.manage + "/roots/0")
	if err != nil {
		t.Fatalf("%v", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("pebble's root is %q", text)
	}
	return pool
}

// Env returns the environment variables that make selvage order certificates for the hosts.
func (s *Server) Env(hosts ...string) []string {
	return []string{
		"SELVAGE_TLS__ACME__HOSTS=" + strings.Join(hosts, ","), "SELVAGE_TLS__ACME__ACCEPT_TERMS=true",
		"SELVAGE_TLS__ACME__EMAIL=ops@selvage.test",
		"SELVAGE_TLS__ACME__DIRECTORY=" + s.Directory, "SELVAGE_TLS__ACME__CA=" + s.CA,
	}
}

// Local returns the loopback address of a port.
func Local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
