package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
)

// localDomains are domains that are never registered on the Internet (RFC 6761, 6762 and 8375; ICANN
// reserves internal).
var localDomains = []string{"localhost", "local", "test", "internal", "home.arpa"}

// localRanges are the ranges of addresses within a machine or a private network.
var localRanges = []string{
	"127.0.0.0/8",
	"10.0.0.0/8",
	"172.16.0.0/12",
	"192.168.0.0/16",
	"169.254.0.0/16",
	"::1/128",
	"fc00::/7",
	"fe80::/10",
}

// Name returns the common name for an authority created on this machine.
func Name() string {
	owner := "this machine"
	if name, err := os.Hostname(); err == nil {
		owner = name
	}
	return "selvage local CA on " + owner
}

// authority returns a new certificate for the authority, which can issue certificates only for local names
// and the configured hosts (RFC 5280, section 4.2.1.10).
func (a *Authority) authority() ([]byte, error) {
	template := &x509.Certificate{
		SerialNumber:                serial(),
		Subject:                     pkix.Name{CommonName: Name(), Organization: []string{"selvage"}},
		NotBefore:                   a.now().Add(-clockSkew),
		NotAfter:                    a.now().Add(lifetime),
		KeyUsage:                    x509.KeyUsageCertSign,
		BasicConstraintsValid:       true,
		IsCA:                        true,
		MaxPathLenZero:              true,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         append([]string(nil), localDomains...),
	}

	for _, cidr := range localRanges {
		_, ipRange, err := net.ParseCIDR(cidr)
		if err != nil {
			return nil, fmt.Errorf("constraining certificate: %w", err)
		}
		template.PermittedIPRanges = append(template.PermittedIPRanges, ipRange)
	}

	for _, host := range a.hosts {
		if permits(template, host) {
			continue
		}
		if ip := net.ParseIP(host); ip != nil {
			template.PermittedIPRanges = append(template.PermittedIPRanges, single(ip))
		} else {
			template.PermittedDNSDomains = append(template.PermittedDNSDomains, host)
		}
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("creating certificate authority: %w", err)
	}
	return der, nil
}

// issue returns a new certificate for the server, with a new key.
func (a *Authority) issue() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating key: %w", err)
	}

	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: a.hosts[0], Organization: []string{"selvage"}},
		NotBefore:    a.now().Add(-clockSkew),
		NotAfter:     a.now().Add(leafLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}

	for _, host := range a.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}

	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("creating certificate: %w", err)
	}

	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("creating certificate: %w", err)
	}
	return &tls.Certificate{
		Certificate: [][]byte{der, a.cert.Raw},
		PrivateKey:  key,
		Leaf:        leaf,
	}, nil
}

// serial returns 128 random bits.
func serial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b)
	return new(big.Int).SetBytes(b)
}

// single returns the range that contains only ip.
func single(ip net.IP) *net.IPNet {
	if v4 := ip.To4(); v4 != nil {
		return &net.IPNet{IP: v4, Mask: net.CIDRMask(32, 32)}
	}
	return &net.IPNet{IP: ip, Mask: net.CIDRMask(128, 128)}
}

// within reports whether name is the domain or a name below it. It ignores case.
func within(name, domain string) bool {
	name, domain = strings.ToLower(name), strings.ToLower(domain)
	return name == domain || strings.HasSuffix(name, "."+domain)
}
