package clients

import (
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
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A pebble is an ACME server which proves names as a public authority does: it
// looks them up and connects to where they lead, this machine.
type pebble struct {
	directory string // its URL
	ca        string // the file that vouches for its HTTPS
	manage    string // where it tells of itself
	client    *http.Client
}

// pebbleConfig says how names are proven. A port where nobody listens makes that
// proof fail.
type pebbleConfig struct {
	http, tls int           // the ports of http-01 and tls-alpn-01
	lifetime  time.Duration // of certificates
}

// built is whether there is a directory of programs to remove.
var built atomic.Bool

// buildPebble builds the programs of test/pebble once and gives their directory.
var buildPebble = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "selvage-pebble-")
	if err != nil {
		return "", err
	}
	built.Store(true)
	cmd := exec.Command("go", "build", "-o", dir+"/", "tool")
	cmd.Dir = "../pebble"
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building pebble: %w\n%s", err, out)
	}
	return dir, nil
})

// removePebble removes what was built.
func removePebble() {
	if built.Load() {
		dir, _ := buildPebble() // which it tells where it failed, too
		_ = os.RemoveAll(dir)
	}
}

// freePort gives a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func startPebble(t *testing.T, c pebbleConfig) *pebble {
	t.Helper()
	bin, err := buildPebble()
	if err != nil {
		harness.Missing(t, err.Error())
	}
	dir := t.TempDir()
	dns, acme, manage := local(freePort(t)), local(freePort(t)), local(freePort(t))
	start(t, nil, filepath.Join(bin, "pebble-challtestsrv"), "-dnsserver", dns, "-management", local(freePort(t)),
		"-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "")

	p := &pebble{directory: "https://" + acme + "/dir", manage: "https://" + manage, ca: filepath.Join(dir, "pebble.pem")}
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: certifyPebble(t, p.ca, filepath.Join(dir, "pebble-key.pem"))}}}
	text, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": acme, "managementListenAddress": manage,
		"certificate": p.ca, "privateKey": filepath.Join(dir, "pebble-key.pem"),
		"httpPort": c.http, "tlsPort": c.tls,
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles": map[string]any{"default": map[string]any{"description": "the only one", "validityPeriod": int(c.lifetime.Seconds())}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, []string{"PEBBLE_VA_NOSLEEP=1"}, filepath.Join(bin, "pebble"), "-config", file, "-dnsserver", dns, "-strict")
	harness.Eventually(t, patience, "pebble to answer", func() error {
		_, err := p.get(p.directory)
		return err
	})
	return p
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// start starts a program that ends with the test.
func start(t *testing.T, env []string, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("log of %s:\n%s", filepath.Base(program), text)
		}
		_ = log.Close()
	})
}

// certifyPebble makes the certificate of pebble's own HTTPS, and gives a pool with
// it.
func certifyPebble(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, content := range map[string][]byte{certFile: text, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}

func (p *pebble) get(url string) ([]byte, error) {
	resp, err := p.client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// roots gives the authority that certifies what pebble was asked for; it is new
// with each pebble.
func (p *pebble) roots(t *testing.T) *x509.CertPool {
	t.Helper()
	text, err := p.get(p.manage + "/roots/0")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("pebble's root is %q", text)
	}
	return pool
}
