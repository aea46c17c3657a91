package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// A Store keeps certificates, and the state needed to obtain them, for all nodes.
type Store interface {
	FindCertificate(ctx context.Context, name string) (sealed string, err error)
	PutCertificate(ctx context.Context, name, sealed string) error
	DeleteCertificate(ctx context.Context, name string) error
	// ClaimCertificate reserves name for the caller until the given time or until ReleaseCertificate.
	// It returns problem.Conflict while name is reserved for another caller.
	ClaimCertificate(ctx context.Context, name string, until time.Time) error
	ReleaseCertificate(ctx context.Context, name string, until time.Time) error
}

// A Sealer encrypts the data in the Store.
type Sealer interface {
	SealSecret(name string, secret []byte) (string, error)
	OpenSecret(name, sealed string) ([]byte, error)
}

// ACMEConfig sets which certificates to request, and from which authority.
type ACMEConfig struct {
	Hosts     []string // each host gets its own certificate
	Email     string   // for messages from the authority; may be ""
	Directory string   // "" means Let's Encrypt
	CA        string   // PEM file with the CA of the directory's HTTPS certificate; "" means the system's CAs
	Store     Store
	Sealer    Sealer
	Log       *slog.Logger     // nil means slog.Default
	Now       func() time.Time // nil means time.Now
}

// ACME obtains certificates as defined by RFC 8555. It proves control of a host by tls-alpn-01 (RFC 8737)
// on the HTTPS listener or by http-01 on the HTTP listener. Only [ACME.Run] requests new certificates; a
// connection cannot trigger a request.
type ACME struct {
	c       ACMEConfig
	manager *autocert.Manager
	reasons *reasons

	mu       sync.RWMutex
	ready    map[string]bool // hosts that have a certificate
	reloaded chan struct{}   // closed and replaced by Reload
}

// OpenACME prepares to obtain certificates. By calling it, the caller accepts the terms of service of the
// directory.
func OpenACME(c ACMEConfig) (*ACME, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Directory == "" {
		c.Directory = acme.LetsEncryptURL
	}

	transport, err := transportOf(c.CA)
	if err != nil {
		return nil, err
	}

	a := &ACME{
		c:        c,
		reasons:  &reasons{next: transport, by: make(map[string]string)},
		ready:    make(map[string]bool),
		reloaded: make(chan struct{}),
	}
	// The manager also renews the certificates that it has loaded or obtained.
	a.manager = &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      cache{rows: c.Store, seal: c.Sealer, log: c.Log},
		HostPolicy: func(_ context.Context, host string) error { return a.allow(host) },
		Email:      c.Email,
		Client: &acme.Client{
			DirectoryURL: c.Directory,
			UserAgent:    "selvage",
			HTTPClient:   &http.Client{Transport: a.reasons, Timeout: time.Minute},
		},
	}

	return a, nil
}

// transportOf returns a transport that trusts the CAs in a PEM file, or the system's CAs if file is
// "".
func transportOf(file string) (http.RoundTripper, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if file == "" {
		return t, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading tls.acme.ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading tls.acme.ca: %s has no PEM certificate", file)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}

// allow returns an error for hosts that are not configured.
func (a *ACME) allow(host string) error {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !slices.Contains(a.c.Hosts, host) {
		return errors.New("this server does not serve this name")
	}
	return nil
}

// TLS returns the configuration of the HTTPS listener.
func (a *ACME) TLS() *tls.Config {
	c := config(a.certificate)
	c.NextProtos = []string{"h2", "http/1.1", acme.ALPNProto}
	return c
}

// Ends returns the earliest expiry of a certificate. It returns the zero time if a host has no
// certificate.
func (a *ACME) Ends() (first time.Time) {
	for _, host := range a.c.Hosts {
		if !a.has(host) {
			return time.Time{}
		}
		pair, err := a.get(host)
		if err != nil {
			continue
		}
		end := pair.Leaf.NotAfter
		if first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}

// has reports whether a host has a certificate.
func (a *ACME) has(host string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.ready[host]
}

func (a *ACME) setReady(host string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ready[host] = true
}

// Handler answers http-01 challenges and passes all other requests to next.
func (a *ACME) Handler(next http.Handler) http.Handler { return a.manager.HTTPHandler(next) }

// certificate returns the certificate for a handshake, or the response to a challenge.
func (a *ACME) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if host == "" {
		host = a.c.Hosts[0] // the client used an IP address
	}
	if err := a.allow(host); err != nil {
		return nil, err
	}

	if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
		return a.manager.GetCertificate(&tls.ClientHelloInfo{
			ServerName:      host,
			SupportedProtos: hello.SupportedProtos,
		})
	}

	if !a.has(host) {
		return nil, fmt.Errorf("no certificate for %s yet", host)
	}
	return a.get(host)
}

// get returns the certificate of a host from the manager, which requests one if there is none. get
// asks only for ECDSA certificates, which all current clients support. Otherwise anyone could make
// the manager request a second certificate by posing as a client without ECDSA.
func (a *ACME) get(host string) (*tls.Certificate, error) {
	return a.manager.GetCertificate(&tls.ClientHelloInfo{
		ServerName:   host,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	})
}
