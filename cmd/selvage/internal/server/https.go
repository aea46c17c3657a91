package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/ca"
	"github.com/selvage/selvage/cmd/selvage/internal/certs"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// certificates provides the certificate of the HTTPS listener: from the local authority, from
// files, or by ACME.
type certificates interface {
	TLS() *tls.Config
	Reload() error
	Ends() time.Time // the earliest expiry of a certificate; zero if one is missing
}

// Some sources of certificates do more while the server runs.
type (
	// A runner takes over renewed files (Files), or renews certificates itself (ACME).
	runner interface{ Run(ctx context.Context) }
	// A challenged source answers the challenges of an authority over HTTP (ACME).
	challenged interface {
		Handler(next http.Handler) http.Handler
	}
)

var (
	_ certificates = (*ca.Authority)(nil)
	_ certificates = (*certs.Files)(nil)
	_ certificates = (*certs.ACME)(nil)
	_ runner       = (*certs.Files)(nil)
	_ runner       = (*certs.ACME)(nil)
	_ challenged   = (*certs.ACME)(nil)
)

// openCertificates opens the configured source of certificates. Certificates from ACME are
// shared with other nodes through the app's database.
func openCertificates(c config.Config, a *App, log *slog.Logger) (certificates, error) {
	switch {
	case c.TLS.Cert != "":
		return certs.OpenFiles(certs.FilesConfig{
			Cert:  string(c.TLS.Cert),
			Key:   string(c.TLS.Key),
			Hosts: c.SecureHosts(),
			Log:   log,
		})
	case len(c.TLS.ACME.Hosts) > 0:
		return certs.OpenACME(certs.ACMEConfig{
			Hosts:     c.TLS.ACME.Hosts,
			Email:     c.TLS.ACME.Email,
			Directory: string(c.TLS.ACME.Directory),
			CA:        string(c.TLS.ACME.CA),
			Store:     a.Store,
			Sealer:    a.Ring,
			Log:       log,
		})
	}
	return ca.Open(ca.Config{Dir: c.Data, Hosts: c.CertifiedHosts()})
}

// readClientCAs reads the authorities that issue client certificates from a PEM file. It returns nil
// if file is "".
func readClientCAs(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading tls.client_ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("tls.client_ca: %s has no certificate in PEM", file)
	}
	return pool, nil
}

// strictTransport makes browsers use only HTTPS for the hosts of public https URLs (RFC 6797). The
// header applies to all ports of a host. It is not sent for localhost, because other programs serve plain
// HTTP there, and not for IP addresses, because browsers ignore it for them.
func strictTransport(c config.Config, next http.Handler) http.Handler {
	hosts := slices.DeleteFunc(c.SecureHosts(), func(h string) bool {
		return config.LocalHost(h) || net.ParseIP(h) != nil
	})
	if len(hosts) == 0 {
		return next
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if slices.Contains(hosts, host) {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}
