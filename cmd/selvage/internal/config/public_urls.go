package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
)

// Where holds the URLs at which clients reach a server. Links and tokens contain them.
type Where struct {
	Public string // {base_url}
	Auth   string // {auth_url}
	Fabric string // host in fabric tokens
	MTLS   string // URL for connections with client certificates; "" if it equals Auth, or if there is none
	NoWSS  bool   // whether no known HTTPS listener serves the relay at Fabric
}

// Local reports whether Public and Auth are on this machine.
func (w Where) Local() bool {
	for _, raw := range []string{w.Public, w.Auth} {
		u, err := url.Parse(raw)
		if err != nil || !LocalHost(u.Hostname()) {
			return false
		}
	}
	return true
}

// LocalHost reports whether host is a name or address of this machine.
func LocalHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	return net.ParseIP(host).IsLoopback()
}

// Origins returns the origins at which clients reach the server, as far as the configuration shows.
// These are the origins of the URLs, and the origins that browser SDKs derive from the host in
// fabric tokens (docs/architecture.md, "Hosts"). If the server is local, Origins adds the loopback
// addresses.
func (w Where) Origins() []string {
	all := []string{w.Public, w.Auth, "https://" + w.Fabric}
	if w.MTLS != "" {
		all = append(all, w.MTLS)
	}

	if _, domain, ok := strings.Cut(w.Fabric, "."); ok {
		all = append(all, "https://fabric."+domain)
	}
	if !w.Local() {
		return all
	}

	for _, raw := range all {
		u, err := url.Parse(raw)
		if err != nil || !LocalHost(u.Hostname()) {
			continue
		}
		for _, host := range []string{"localhost", "127.0.0.1", "::1", "id.localhost"} {
			all = append(all, origin(u.Scheme, host, u.Port()))
		}
	}
	return all
}

// Issuer returns the issuer in every token.
func (w Where) Issuer() string { return w.Auth + "/" }

// Locate returns the configured URLs. It derives missing ones from the ports of HTTP and HTTPS.
func Locate(c Config, httpPort, httpsPort string) Where {
	w := Where{
		Public: string(c.PublicURL),
		Auth:   string(c.AuthURL),
		Fabric: string(c.FabricHost),
		MTLS:   string(c.MTLSURL),
	}
	w.NoWSS = c.FabricHost == "" && c.TLSAddress() == Off // a configured host may belong to a proxy
	if w.Public == "" {
		w.Public = origin("http", nameOf(c.Listen), httpPort)
	}
	if w.Auth == "" {
		w.Auth = w.Public
	}
	if w.Fabric == "" {
		w.Fabric = net.JoinHostPort("puc.localhost", httpsPort)
	}
	return w
}

// LocateMTLS returns w with the URL for client certificates. port is the port of the listener for
// them. If a URL is configured, LocateMTLS returns w unchanged.
func (w Where) LocateMTLS(port string) Where {
	if u, err := url.Parse(w.Auth); err == nil && w.MTLS == "" {
		w.MTLS = origin("https", u.Hostname(), port)
	}
	return w
}

// LocateRunning returns the URLs of the server that is running in the data directory. If there is
// none, it returns the URLs that a server would have. Commands need the URLs because tokens contain
// the server's issuer.
func LocateRunning(c Config) Where {
	w := Locate(c, portOf(c.Listen, "8080"), portOf(c.TLSAddress(), "8443"))
	r, ok := datadir.ReadRunning(c.Data)
	if !ok {
		return w
	}
	if c.PublicURL == "" {
		w.Public = r.PublicURL
	}
	if c.AuthURL == "" && c.PublicURL == "" {
		w.Auth = r.AuthURL
	}

	if c.FabricHost != "" {
		return w
	}
	w.NoWSS = r.HTTPS == ""
	if u, err := url.Parse(r.HTTPS); err == nil && u.Port() != "" {
		w.Fabric = net.JoinHostPort("puc.localhost", u.Port())
	}
	return w
}

// impliedPorts maps each scheme to its default port.
var impliedPorts = map[string]string{"http": "80", "https": "443"}

// origin returns the origin of a host and a port as browsers write it, without an implied port.
func origin(scheme, host, port string) string {
	if port == "" {
		port = impliedPorts[scheme]
	}
	address := net.JoinHostPort(host, port)
	return scheme + "://" + strings.TrimSuffix(address, ":"+impliedPorts[scheme])
}

// nameOf returns the host name at which browsers on this machine reach an address.
func nameOf(a HostPort) string {
	host, _, err := net.SplitHostPort(string(a))
	if err != nil || isAny(host) || net.ParseIP(host).IsLoopback() {
		return "localhost"
	}
	return host
}

// portOf returns the port of an address, or fallback if the address has no port or port 0.
func portOf(a HostPort, fallback string) string {
	_, port, err := net.SplitHostPort(string(a))
	if err != nil || port == "0" {
		return fallback
	}
	return port
}

// TLSAddress returns the address for HTTPS, or Off. If a certificate is configured, the default
// address has the host of HTTP. Its port is 443 if HTTP uses port 80, and 8443 otherwise.
func (c Config) TLSAddress() HostPort {
	switch {
	case c.ListenTLS != Auto:
		return c.ListenTLS
	case c.TLS.Cert != "" || len(c.TLS.ACME.Hosts) > 0:
		host, port, _ := net.SplitHostPort(string(c.Listen))
		if port == "80" {
			return HostPort(net.JoinHostPort(host, "443"))
		}
		return HostPort(net.JoinHostPort(host, "8443"))
	case c.Listen.Loopback():
		return "127.0.0.1:8443"
	}
	return Off
}

// LocalCertificate reports whether HTTPS uses the local certificate authority.
func (c Config) LocalCertificate() bool { return c.TLS.Cert == "" && len(c.TLS.ACME.Hosts) == 0 }

// MediaListener returns the address for the media of calls, or Off.
func (c Config) MediaListener() HostPort {
	switch {
	case c.ListenMedia != Auto:
		return c.ListenMedia
	case c.Listen.Loopback():
		return "127.0.0.1:8444"
	}
	return ":8444"
}

// CertifiedHosts lists the names and addresses that the local certificate needs in addition
// to localhost.
func (c Config) CertifiedHosts() []string {
	hosts := append([]string(nil), c.TLS.Hosts...)
	for _, raw := range []BaseURL{c.PublicURL, c.AuthURL, c.ownMTLSURL()} {
		if u, err := url.Parse(string(raw)); err == nil {
			hosts = append(hosts, u.Hostname())
		}
	}

	if host, _, err := net.SplitHostPort(string(c.FabricHost)); err == nil {
		// Browser SDKs replace the first label (docs/architecture.md, "Hosts").
		_, domain, _ := strings.Cut(host, ".")
		hosts = append(hosts, host)
		if domain != "" && net.ParseIP(host) == nil {
			hosts = append(hosts, "fabric."+domain)
		}
	}

	for _, address := range []HostPort{c.Listen, c.TLSAddress()} {
		host, _, _ := net.SplitHostPort(string(address))
		if !isAny(host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// ownMTLSURL returns the URL for client certificates if this server listens there. It returns "" if
// a proxy listens there.
func (c Config) ownMTLSURL() BaseURL {
	if c.ListenMTLS == Off {
		return ""
	}
	return c.MTLSURL
}

// SecureHosts lists the hosts of the public URLs that use https.
func (c Config) SecureHosts() (hosts []string) {
	for _, raw := range []BaseURL{c.PublicURL, c.AuthURL, c.ownMTLSURL()} {
		u, err := url.Parse(string(raw))
		if err != nil || u.Scheme != "https" {
			continue
		}
		if !slices.Contains(hosts, u.Hostname()) {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}
