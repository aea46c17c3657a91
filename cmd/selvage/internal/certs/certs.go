// Package certs keeps the server's certificate where others vouch for it: in
// files, which something else renews, or by ACME, which this package speaks.
//
// A certificate that cannot be used never takes the place of one that can. What
// the local authority vouches for is package ca.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"time"
)

// check reports why the leaf of a certificate cannot be used; what names it.
func check(leaf *x509.Certificate, what string, now time.Time, hosts []string) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("%s expired on %s: renew it", what, leaf.NotAfter.Format(time.DateOnly))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%s holds from %s on only, and this machine's clock says %s", what,
			leaf.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	for _, h := range hosts {
		if leaf.VerifyHostname(h) != nil {
			return fmt.Errorf("%s does not name %s, where clients reach this server; it names %s", what, h,
				names(leaf))
		}
	}
	return nil
}

func names(leaf *x509.Certificate) string {
	all := append([]string(nil), leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// ending reports whether a certificate is in the last fifth of its life, in which
// it should have been renewed.
func ending(leaf *x509.Certificate, now time.Time) bool {
	return now.After(leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore) / 5))
}

// config returns what all listeners have in common: TLS 1.2 or newer, with the
// suites and curves of Go.
func config(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get}
}
