package clients

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// newHome returns an empty home directory.
func newHome(t *testing.T) string {
	t.Helper()
	harness.Need(t, "certutil")
	return t.TempDir()
}

// plain returns an environment with little more than a home directory, and without this machine's
// certificate settings.
func plain(home string) []string {
	return []string{"HOME=" + home, "PATH=" + os.Getenv("PATH") + ":/usr/sbin", "LANG=C.UTF-8"}
}

// ca runs a subcommand of selvage ca with a home directory. The arguments must name stores in that
// home, because the command would otherwise change the machine's store when the test runs as root.
func ca(t *testing.T, s *harness.Server, home string, args ...string) string {
	t.Helper()
	if !slices.Contains(args, "--store") || slices.Contains(args, "system") {
		t.Fatalf("selvage ca %s would change this machine's store", strings.Join(args, " "))
	}
	cmd := exec.Command(harness.Binary(t), append([]string{"ca", "--data", s.Data}, args...)...)
	cmd.Env = plain(home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("selvage ca %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// overHTTPS returns the server's HTTPS address with a host from its certificate.
func overHTTPS(t *testing.T, s *harness.Server, host string) string {
	t.Helper()
	u, err := url.Parse(s.HTTPS)
	if err != nil {
		t.Fatal(err)
	}
	return "https://" + host + ":" + u.Port() + "/"
}

// visit opens a page in a new Chromium. It returns the page's title, or an error if the page did
// not open.
func visit(t *testing.T, home, address string) (title string, err error) {
	t.Helper()
	t.Run("visit", func(t *testing.T) { // Chromium stops at the end of this subtest
		b := completeTab(t, chromedp.NoInheritEnv, chromedp.Env(plain(home)...))
		if err = chromedp.Do(b.ctx, chromedp.Navigate(address)); err == nil {
			title = eval[string](b, "document.title")
		}
	})
	return title, err
}

func wantRefused(t *testing.T, home, address string) {
	t.Helper()
	const untrusted = "net::ERR_CERT_AUTHORITY_INVALID"
	if title, err := visit(t, home, address); err == nil || !strings.Contains(err.Error(), untrusted) {
		t.Errorf("%s opened as %q, %v, want %s", address, title, err, untrusted)
	}
}

func wantOpened(t *testing.T, home, address string) {
	t.Helper()
	if title, err := visit(t, home, address); err != nil || title != "selvage" {
		t.Errorf("%s opened as %q, %v, want the title selvage", address, title, err)
	}
}

// TestChromiumTrust shows that Chromium, with a new profile and no certificate flags, opens the
// server only after `selvage ca install`.
func TestChromiumTrust(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Shared(t)
	address := overHTTPS(t, s, "puc.localhost")

	t.Run("a home without a store", func(t *testing.T) {
		home := newHome(t)
		ca(t, s, home, "install", "--store", "chromium")
		wantOpened(t, home, address)
		wantOpened(t, home, overHTTPS(t, s, "127.0.0.1"))
	})
	t.Run("a home with a store that Chromium made", func(t *testing.T) {
		home := newHome(t)
		wantRefused(t, home, address)
		ca(t, s, home, "install", "--store", "chromium")
		ca(t, s, home, "install", "--store", "chromium") // a second time changes nothing
		if _, err := os.Stat(filepath.Join(home, ".pki")); err == nil {
			t.Error("the command created a second store, which hides Chromium's own")
		}
		wantOpened(t, home, address)
		ca(t, s, home, "uninstall", "--store", "chromium")
		wantRefused(t, home, address)
	})
}

// TestFirefoxTrust shows that every Firefox profile gets the certificate, and that the certificate
// replaces an older one with the same name.
func TestFirefoxTrust(t *testing.T) {
	harness.OneBackend(t)
	home := newHome(t)
	never := filepath.Join(home, ".mozilla/firefox/never.used")
	snap := filepath.Join(home, "snap/firefox/common/.mozilla/firefox/snap.default")
	away := filepath.Join(home, "elsewhere")
	for _, dir := range []string{never, snap, away} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}

	certutil(t, snap, "-N", "--empty-password")
	profiles := "[Profile1]\nIsRelative=1\nPath=never.used\n\n[Profile0]\nIsRelative=0\nPath=" + away + "\n"
	if err := os.WriteFile(filepath.Join(home, ".mozilla/firefox/profiles.ini"), []byte(profiles), 0o600); err != nil {
		t.Fatal(err)
	}

	old, s := harness.Start(t), harness.Shared(t)
	name := subject(t, s)
	for _, server := range []*harness.Server{old, s} {
		ca(t, server, home, "install", "--store", "firefox")
		want := strings.TrimSpace(server.Command(t, "", "ca", "export"))
		for _, dir := range []string{never, snap, away} {
			if got := strings.ReplaceAll(
				certutil(t, dir, "-L", "-a", "-n", name), "\r", ""); strings.TrimSpace(got) != want {
				t.Errorf("%s has\n%s\nwant\n%s", dir, got, want)
			}
			if table := certutil(t, dir, "-L"); !strings.Contains(table, " C,,") {
				t.Errorf("%s does not trust the certificate:\n%s", dir, table)
			}
		}
	}

	ca(t, s, home, "uninstall", "--store", "firefox")
	for _, dir := range []string{never, snap, away} {
		if table := certutil(t, dir, "-L"); strings.Contains(table, name) {
			t.Errorf("%s still contains the authority:\n%s", dir, table)
		}
	}
}

// subject returns the common name of a server's certificate authority.
func subject(t *testing.T, s *harness.Server) string {
	t.Helper()
	name, ok := s.CLI(t, "", "ca", "status")["subject"].(string)
	if !ok {
		t.Fatal("ca status printed no subject")
	}
	return name
}

func certutil(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("certutil", append(args, "-d", "sql:"+dir)...).CombinedOutput()
	if err != nil {
		t.Fatalf("certutil %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// systemScript replaces the machine's certificate stores with temporary ones, and checks whom curl
// trusts. It runs in a mount namespace, as root or as a user that is mapped to root there.
const systemScript = `
set -eu
mount --bind "$STORE/local" /usr/local/share/ca-certificates
mount --bind "$STORE/certs" /etc/ssl/certs
mount --bind "$STORE/hooks" /etc/ca-certificates/update.d
refused() { if curl -sS "$ADDRESS" >/dev/null 2>&1; then echo "curl trusts it $1"; exit 1; fi; }
refused before
"$SELVAGE" ca install --store system --data "$OTHER"
refused "by another"
"$SELVAGE" ca install --store system --data "$DATA"
"$SELVAGE" ca install --store system --data "$DATA"
test "$(ls "$STORE/local" | wc -l)" = 1
curl -sS "$ADDRESS" >/dev/null
cp "$STORE/certs/ca-certificates.crt" "$STORE/bundle"
"$SELVAGE" ca uninstall --store system --data "$DATA"
refused afterwards
test -z "$(ls "$STORE/local")"
if ls -l "$STORE/certs" | grep selvage; then exit 1; fi
`

// TestSystemTrust shows that curl and Go trust the server through Debian's store.
func TestSystemTrust(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "curl", "unshare")
	s, other := harness.Shared(t), filepath.Join(t.TempDir(), "other")
	address := overHTTPS(t, s, "puc.localhost")
	stores := t.TempDir()
	for _, dir := range []string{"local", "hooks"} {
		if err := os.Mkdir(filepath.Join(stores, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("cp", "-a", "/etc/ssl/certs", stores).CombinedOutput(); err != nil {
		t.Fatalf("copying the store: %v\n%s", err, out)
	}

	args := []string{"--mount", "sh", "-c", systemScript}
	if os.Geteuid() != 0 {
		args = append([]string{"--map-root-user"}, args...)
	}

	cmd := exec.Command("unshare", args...)
	cmd.Env = append(plain(t.TempDir()), "STORE="+stores, "ADDRESS="+address, "SELVAGE="+harness.Binary(t),
		"DATA="+s.Data, "OTHER="+other)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("in a mount namespace: %v\n%s", err, out)
	}

	bundle, err := os.ReadFile(filepath.Join(stores, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	resp, err := client.Get(overHTTPS(t, s, "localhost"))
	if err != nil {
		t.Fatalf("Go does not trust the certificate with the bundle: %v", err)
	}
	_ = resp.Body.Close()
}

// sudoScript adds an account whose home is $OWNER, mounted at a path that the account can reach.
const sudoScript = `
set -eu
cp /etc/passwd "$STORE/passwd"
echo "owner:x:54321:54321::/mnt:/bin/sh" >>"$STORE/passwd"
mount --bind "$STORE/passwd" /etc/passwd
mount --bind "$OWNER" /mnt
cp "$SELVAGE" /mnt/selvage
chmod 755 /mnt/selvage
if HOME=/mnt setpriv --reuid=54321 --regid=54321 --clear-groups \
	/mnt/selvage ca install --data /mnt/data >"$STORE/out" 2>&1; then
	echo "without root, ca install succeeded"
	exit 1
fi
cat "$STORE/out"
advice='selvage: system: only root can change it; run .sudo /mnt/selvage ca install --store system --data /mnt/data.'
grep -q "^$advice\$" "$STORE/out"
grep -q '^chromium  trusted' "$STORE/out"
grep -q '^firefox   trusted' "$STORE/out"
rm /mnt/selvage
export SUDO_UID=54321 SUDO_GID=54321
if "$SELVAGE" ca install --store chromium --data "$STORE/none" 2>/dev/null; then
	echo "root made an authority for another account"
	exit 1
fi
"$SELVAGE" ca install --store chromium,firefox --data "$DATA"
`

// TestSudoTrust shows that, without root, the command changes only the stores that it may change,
// and prints the command to run as root. Under sudo, it changes the browser stores of the account
// that called sudo, and leaves no files there that root owns.
func TestSudoTrust(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "certutil", "setpriv", "unshare")
	if os.Geteuid() != 0 {
		t.Skip("only root can change to another account")
	}
	s, owner, stores := harness.Shared(t), t.TempDir(), t.TempDir()

	profile := filepath.Join(owner, ".mozilla/firefox/a.default")
	if err := os.MkdirAll(profile, 0o755); err != nil {
		t.Fatal(err)
	}
	certutil(t, profile, "-N", "--empty-password")
	if out, err := exec.Command("chown", "-R", "54321:54321", owner).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	cmd := exec.Command("unshare", "--mount", "sh", "-c", sudoScript)
	cmd.Env = append(plain(t.TempDir()), "STORE="+stores, "OWNER="+owner, "SELVAGE="+harness.Binary(t),
		"DATA="+s.Data)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("in a mount namespace: %v\n%s", err, out)
	}

	for _, dir := range []string{profile, filepath.Join(owner, ".pki/nssdb")} {
		if table := certutil(t, dir, "-L"); !strings.Contains(table, subject(t, s)) {
			t.Errorf("%s does not contain the authority:\n%s", dir, table)
		}
	}
	foreign, err := exec.Command("find", owner, "!", "-uid", "54321").CombinedOutput()
	if err != nil || len(foreign) > 0 {
		t.Errorf("the home contains files of another account: %v\n%s", err, foreign)
	}
}

// TestFirefoxPassword shows that the command reports a profile with a password and leaves it
// unchanged, without waiting for the password.
func TestFirefoxPassword(t *testing.T) {
	harness.OneBackend(t)
	home, s := newHome(t), harness.Shared(t)
	profile, secret := filepath.Join(home, ".mozilla/firefox/a.default"), filepath.Join(home, "secret")
	if err := errors.Join(os.MkdirAll(profile, 0o700), os.WriteFile(secret, []byte("secret\n"), 0o600)); err != nil {
		t.Fatal(err)
	}

	certutil(t, profile, "-N", "-f", secret)
	cmd := exec.Command(harness.Binary(t), "ca", "install", "--store", "firefox", "--data", s.Data)
	cmd.Env = plain(home)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(
		string(out), "it is protected by a password: import ca.pem in the browser's settings") {
		t.Errorf("ca install = %v, want an error about the password\n%s", err, out)
	}
	if table := certutil(t, profile, "-L"); strings.Contains(table, subject(t, s)) {
		t.Errorf("the profile contains the certificate, want it unchanged:\n%s", table)
	}
}
