package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/ca"
	"github.com/selvage/selvage/internal/certs"
	"github.com/selvage/selvage/internal/config"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/store"
	"github.com/selvage/selvage/internal/truststore"
	"github.com/selvage/selvage/keys"
)

func (e *examination) certificateChecks() []check {
	if e.config.TLSAddress() == config.Off {
		return []check{{"Certificates", "HTTPS", func(context.Context) []finding {
			return []finding{skippedf("switched off; what is in front of this server has its own")}
		}}}
	}
	served := check{"Certificates", "served", e.servedCertificate}
	switch {
	case e.config.TLS.Cert != "":
		return []check{{"Certificates", "files", e.certificateFiles}, served}
	case len(e.config.TLS.ACME.Hosts) > 0:
		return []check{{"Certificates", "ACME", e.acme}, served}
	}
	return []check{{"Certificates", "local authority", e.localAuthority}, {"Certificates", "trust", e.trust}, served}
}

// localAuthority looks at the authority, which a start makes.
func (e *examination) localAuthority(context.Context) []finding {
	dir := e.config.Data
	_, certErr := os.Stat(filepath.Join(dir, ca.CertFile))
	_, keyErr := os.Stat(filepath.Join(dir, ca.KeyFile))
	switch missing := func(err error) bool { return errors.Is(err, fs.ErrNotExist) }; {
	case missing(certErr) && missing(keyErr):
		return []finding{skippedf("there is none yet; a start makes it")}
	case missing(certErr) || missing(keyErr):
		return []finding{brokenf(fmt.Sprintf("put back what is missing, or delete both to have new ones made (cd %s && rm %s %s)", dir, ca.CertFile, ca.KeyFile),
			"of %s and %s one is missing", ca.CertFile, ca.KeyFile)}
	}
	a, err := ca.Open(ca.Config{Dir: dir, Hosts: e.config.Certified()})
	if err != nil {
		found, remedy, _ := strings.Cut(strings.Replace(err.Error(), ": delete", "; delete", 1), "; ")
		return []finding{brokenf(remedy, "%s", found)}
	}
	end := a.Certificate().NotAfter
	if time.Until(end) < 60*24*time.Hour {
		return []finding{warnedf(fmt.Sprintf("delete %s and %s, restart the server, then `selvage ca install`", ca.CertFile, ca.KeyFile), "it ends on %s", end.Format(time.DateOnly))}
	}
	return []finding{finef("until %s, for %s", end.Format(time.DateOnly), strings.Join(a.Names(), " "))}
}

// trust looks at whether programs and browsers of this machine take its word.
func (e *examination) trust(ctx context.Context) []finding {
	cert, err := ca.Read(e.config.Data)
	if err != nil {
		return nil // told of the authority
	}
	stores, err := truststore.Open(truststore.Config{Cert: cert, Name: cert.Subject.CommonName, Getenv: e.cli.getenv})
	if err != nil {
		return []finding{skippedf("%v", err)}
	}
	var not []string
	places := stores.Status(ctx)
	for _, p := range places {
		switch {
		case p.Err != nil:
			not = append(not, fmt.Sprintf("%s (%v)", p.Kind, p.Err))
		case p.State != truststore.Trusted:
			not = append(not, fmt.Sprintf("%s (%s)", p.Kind, p.State))
		}
	}
	switch {
	case len(places) == 0:
		return []finding{skippedf("there is no store on this machine")}
	case not != nil:
		return []finding{warnedf("`selvage ca install`, where browsers or programs of this machine are to use HTTPS; it says what needs root", "not trusted by %s", strings.Join(not, ", "))}
	}
	return []finding{finef("trusted by %s of this machine", plural(len(places), "store"))}
}

// certificateFiles looks at the files as a start does, and whether they prove
// themselves to strangers.
func (e *examination) certificateFiles(context.Context) []finding {
	c := e.config
	f, err := certs.OpenFiles(certs.FilesConfig{Cert: string(c.TLS.Cert), Key: string(c.TLS.Key), Hosts: c.SecureHosts()})
	if err != nil {
		found, remedy, _ := strings.Cut(err.Error(), "; ")
		return []finding{brokenf(remedy, "%s", found)}
	}
	pair, err := f.TLS().GetCertificate(nil)
	if err != nil {
		return []finding{brokenf("look at the files", "%v", err)}
	}
	all := []finding{ending(pair.Leaf, string(c.TLS.Cert))}
	chain := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			chain.AddCert(cert)
		}
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Intermediates: chain}); err != nil {
		all = append(all, warnedf("have tls.cert name the file with the whole chain (certbot: fullchain.pem); where the authority is your own, clients must know it",
			"this machine does not trust it: %v", err).of("chain"))
	}
	return all
}

// ending tells until when a certificate holds, and whether it should have been
// renewed: in the last fifth of its life.
func ending(leaf *x509.Certificate, what string) finding {
	left, life := time.Until(leaf.NotAfter), leaf.NotAfter.Sub(leaf.NotBefore)
	told := fmt.Sprintf("%s, until %s", what, leaf.NotAfter.Local().Format(stampLayout))
	switch {
	case left < 0:
		return brokenf("renew it; the server reads it by itself", "%s: expired", told)
	case left < life/5:
		return warnedf("find out why it was not renewed", "%s, in %s", told, left.Round(time.Hour))
	}
	return finef("%s", told)
}

// acme looks at what the authority has given, and whether it can find the hosts.
func (e *examination) acme(ctx context.Context) (all []finding) {
	for _, host := range e.config.TLS.ACME.Hosts {
		if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
			all = append(all, brokenf("give it an A or AAAA record that leads here", "%s: %v", host, err).of("DNS"))
		}
	}
	return append(all, e.overRows(ctx, func(s *store.Store) []finding {
		master, _ := e.master(true)
		if master == nil {
			return []finding{skippedf("it is sealed, and the master key cannot be used")}
		}
		ring, err := keys.Read(ctx, e.config.RingConfig(s, master))
		if err != nil {
			return []finding{skippedf("%s", plainly(err))}
		}
		var given []finding
		for _, host := range e.config.TLS.ACME.Hosts {
			leaf, err := certs.Stored(ctx, s, ring, host)
			switch {
			case errors.Is(err, problem.NotFound):
				given = append(given, warnedf("see the server's log for \"asking for a certificate\"; the authority must reach this server on port 80 or 443", "%s: there is none yet", host))
			case err != nil:
				given = append(given, brokenf("see what is found of the keys", "%s: %s", host, plainly(err)))
			default:
				given = append(given, ending(leaf, host))
			}
		}
		return given
	})...)
}

// servedCertificate looks at what the running server shows to who knocks.
func (e *examination) servedCertificate(ctx context.Context) []finding {
	u, err := url.Parse(e.running.HTTPS)
	if err != nil || !e.alive || u.Host == "" {
		return nil
	}
	name := "localhost"
	if hosts := append(e.config.SecureHosts(), e.config.TLS.ACME.Hosts...); len(hosts) > 0 {
		name = hosts[0]
	}
	// Nothing is sent: whether it is trusted is another question.
	dialer := tls.Dialer{Config: &tls.Config{ServerName: name, InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return []finding{brokenf("see the server's log for why it has no certificate", "%s, asked for %s: %s", u.Host, name, netCause(err))}
	}
	defer conn.Close()
	leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	if err := leaf.VerifyHostname(name); err != nil {
		return []finding{brokenf("have one made that names it", "%s: %v", u.Host, err)}
	}
	return []finding{ending(leaf, name)}
}
