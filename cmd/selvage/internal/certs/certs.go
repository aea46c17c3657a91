// Package certs provides the server's certificate from an outside authority. The certificate comes
// from files that another program renews, or from ACME, which this package implements.
//
// An invalid certificate never replaces a valid one. Package ca issues the certificates of the
// local authority.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// check returns an error if a certificate cannot be used. what describes the certificate in errors.
func check(leaf *x509.Certificate, what string, now time.Time, hosts []string) error {
	if now.Before(leaf.NotBefore) {
		return fmt.Errorf("%s is not valid before %s, and this machine's clock is at %s", what,
			leaf.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	for _, host := range hosts {
		if leaf.VerifyHostname(host) != nil {
			return fmt.Errorf("%s is not valid for %s, where clients reach this server; it is valid for %s",
				what, host, names(leaf))
		}
	}

	if now.After(leaf.NotAfter) {
		return fmt.Errorf("%s %w on %s: renew it", what, errExpired, leaf.NotAfter.Format(time.DateOnly))
	}
	return nil
}

// errExpired is the error for a certificate whose only fault is its age.
var errExpired = errors.New("expired")

// names returns the names and addresses in a certificate, joined by commas.
func names(leaf *x509.Certificate) string {
	hosts := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	if len(hosts) == 0 {
		return "nothing"
	}
	return strings.Join(hosts, ", ")
}

// ending reports whether a certificate is in the last fifth of its lifetime. By then it should have
// been renewed.
func ending(leaf *x509.Certificate, now time.Time) bool {
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	return now.After(leaf.NotAfter.Add(-lifetime / 5))
}

// config returns the TLS configuration that all listeners build on: TLS 1.2 or newer, with Go's
// cipher suites and curves.
func config(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get}
}
