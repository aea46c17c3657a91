package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/ca"
	"github.com/selvage/selvage/cmd/selvage/internal/certs"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/truststore"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

// certificates has the checks of HTTPS.
type certificates struct{ *Examination }

// sourceChecks returns the checks for the configured source of the certificate.
func (e certificates) sourceChecks() []check {
	if e.Config.TLSAddress() == config.Off {
		return []check{{"Certificates", "HTTPS", func(context.Context) []Finding {
			return []Finding{skippedf("off; the proxy in front of this server has its own certificate")}
		}}}
	}
	served := check{group: "Certificates", name: "served", look: e.servedCertificate}
	switch {
	case e.Config.TLS.Cert != "":
		return []check{{"Certificates", "files", e.certificateFiles}, served}
	case len(e.Config.TLS.ACME.Hosts) > 0:
		return []check{{"Certificates", "ACME", e.acme}, served}
	}
	return []check{
		{"Certificates", "local authority", e.localAuthority},
		{"Certificates", "trust", e.trust},
		served,
	}
}

// warnBefore is how long before the expiry of the local authority the check warns.
const warnBefore = 60 * 24 * time.Hour

// localAuthority checks the two files of the local authority, and when its certificate expires. If the
// files do not exist, it skips the check, because the next start creates them.
func (e certificates) localAuthority(context.Context) []Finding {
	dir := e.Config.Data
	_, certErr := os.Stat(filepath.Join(dir, ca.CertFile))
	_, keyErr := os.Stat(filepath.Join(dir, ca.KeyFile))
	noCert := errors.Is(certErr, fs.ErrNotExist)
	noKey := errors.Is(keyErr, fs.ErrNotExist)
	switch {
	case noCert && noKey:
		return []Finding{skippedf("missing; the first start creates it")}
	case noCert || noKey:
		remedy := textf("restore the missing file, or delete both to create new ones (cd %s && rm %s %s)",
			dir, ca.CertFile, ca.KeyFile)
		return []Finding{brokenf("%s or %s is missing", ca.CertFile, ca.KeyFile).withRemedy(remedy)}
	}

	// Both files exist, so Open only reads them. Its errors end with a remedy.
	a, err := ca.Open(ca.Config{Dir: dir, Hosts: e.Config.CertifiedHosts()})
	if err != nil {
		found, remedy, _ := strings.Cut(strings.Replace(err.Error(), ": delete", "; delete", 1), "; ")
		return []Finding{brokenf("%s", found).withRemedy(Text(remedy))}
	}

	end := a.Certificate().NotAfter
	if time.Until(end) < warnBefore {
		remedy := textf("delete %s and %s, restart the server, then `selvage ca install`", ca.CertFile, ca.KeyFile)
		return []Finding{warnedf("expires on %s", end.Format(time.DateOnly)).withRemedy(remedy)}
	}
	return []Finding{finef("valid until %s, for %s", end.Format(time.DateOnly), strings.Join(a.Names(), " "))}
}

// trust reports whether the certificate stores of this machine trust the local authority.
func (e certificates) trust(ctx context.Context) []Finding {
	cert, err := ca.Read(e.Config.Data)
	if err != nil {
		return nil // localAuthority has reported it
	}

	stores, err := truststore.Open(truststore.Config{Cert: cert, Name: cert.Subject.CommonName, Getenv: e.Getenv})
	if err != nil {
		return []Finding{skippedf("%s", err)}
	}

	places := stores.Status(ctx)
	isUntrusted := func(p truststore.Place) bool { return p.Err != nil || p.State != truststore.Trusted }

	switch {
	case len(places) == 0:
		return []Finding{skippedf("no certificate store found on this machine")}
	case slices.ContainsFunc(places, isUntrusted):
		const remedy = "run `selvage ca install` if browsers or programs on this machine use HTTPS; " +
			"it reports what needs root"
		untrusted := warnedf("not every certificate store of this machine trusts it: " +
			"`selvage ca status` lists them").withRemedy(remedy)
		return []Finding{untrusted}
	}

	return []Finding{finef("every certificate store of this machine trusts it (%s)", len(places))}
}

// certificateFiles reads the certificate files in the same way as a server does at startup. It also
// checks that this machine trusts the chain of the certificate.
func (e certificates) certificateFiles(context.Context) []Finding {
	c := e.Config
	f, err := certs.OpenFiles(certs.FilesConfig{
		Cert:  string(c.TLS.Cert),
		Key:   string(c.TLS.Key),
		Hosts: c.SecureHosts(),
	})
	if err != nil {
		found, remedy, _ := strings.Cut(err.Error(), "; ")
		return []Finding{brokenf("%s", found).withRemedy(Text(remedy))}
	}

	pair, err := f.TLS().GetCertificate(nil)
	if err != nil {
		return []Finding{brokenf("%s", err).withRemedy("check the files")}
	}

	all := []Finding{expiry(pair.Leaf, string(c.TLS.Cert))}
	// Verify only with the intermediates in the file, as clients do.
	chain := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			chain.AddCert(cert)
		}
	}

	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Intermediates: chain}); err != nil {
		all = append(all, warnedf("not trusted by this machine: %s", err).
			withRemedy("set tls.cert to the file with the whole chain (certbot: fullchain.pem); for a private "+
				"authority, install it on all clients").of("chain"))
	}
	return all
}

// expiry reports when a certificate expires. It warns in the last fifth of the certificate's
// lifetime, because the certificate should have been renewed earlier.
func expiry(leaf *x509.Certificate, what string) Finding {
	left := time.Until(leaf.NotAfter)
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	end := stamp(leaf.NotAfter)
	switch {
	case left < 0:
		return brokenf("%s, expired on %s", what, end).withRemedy("renew it; the server reloads it automatically")
	case left < lifetime/5:
		return warnedf("%s, expires on %s, in %s", what, end, left.Round(time.Hour)).
			withRemedy("find out why it was not renewed")
	}
	return finef("%s, valid until %s", what, end)
}

// acme checks that each host resolves, and reports the certificates obtained so far.
func (e certificates) acme(ctx context.Context) (all []Finding) {
	for _, host := range e.Config.TLS.ACME.Hosts {
		if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
			unknown := brokenf("%s: %s", host, err).withRemedy("add an A or AAAA record that points to this server")
			all = append(all, unknown.of("DNS"))
		}
	}
	obtained := e.overRows(ctx, func(s *store.Store) []Finding { return e.obtained(ctx, s) })
	return append(all, obtained...)
}

// obtained reports the stored certificates of all hosts.
func (e certificates) obtained(ctx context.Context, s *store.Store) (all []Finding) {
	master, _ := e.master(true)
	if master == nil {
		return []Finding{skippedf("encrypted, and the master key cannot be used")}
	}

	// Stored certificates are encrypted with a key from the ring.
	ring, err := keys.Read(ctx, e.Config.RingConfig(s, master))
	if err != nil {
		return []Finding{skippedf("%s", plainly(err))}
	}

	for _, host := range e.Config.TLS.ACME.Hosts {
		leaf, err := certs.Stored(ctx, s, ring, host)
		switch {
		case errors.Is(err, problem.NotFound):
			const remedy = "see the server's log for \"requesting a certificate\"; " +
				"the authority must reach this server on port 80 or 443"
			all = append(all, warnedf("%s: no certificate yet", host).withRemedy(remedy))
		case err != nil:
			all = append(all, brokenf("%s: %s", host, plainly(err)).withRemedy("see the findings about the keys"))
		default:
			all = append(all, expiry(leaf, host))
		}
	}
	return all
}

// servedCertificate checks the certificate that the running server presents to clients.
func (e certificates) servedCertificate(ctx context.Context) []Finding {
	u, err := url.Parse(e.running.HTTPS)
	if err != nil || u.Host == "" || !e.alive {
		return nil
	}

	name := "localhost"
	if hosts := append(e.Config.SecureHosts(), e.Config.TLS.ACME.Hosts...); len(hosts) > 0 {
		name = hosts[0]
	}

	// The check sends no data over this connection, so it need not verify the certificate. Other
	// checks verify trust and the chain.
	dialer := tls.Dialer{Config: &tls.Config{ServerName: name, InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return []Finding{brokenf("%s, requested for %s: %s", u.Host, name, netCause(err)).
			withRemedy("see the server's log for the reason")}
	}
	defer conn.Close()

	leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	if err := leaf.VerifyHostname(name); err != nil {
		return []Finding{brokenf("%s: %s", u.Host, err).withRemedy("use a certificate that includes this name")}
	}
	return []Finding{expiry(leaf, name)}
}
