package main

import (
	"net"
	"net/url"
	"strings"

	"github.com/selvage/selvage/internal/datadir"
)

// where is how clients reach a server: what goes into links and tokens.
type where struct {
	public string // {base_url}
	auth   string // {auth_url}
	fabric string // the host in fabric tokens
	noWSS  bool   // nothing serves the relay at that host by HTTPS, as far as is known here
}

// local reports whether links lead to this machine.
func (w where) local() bool {
	for _, raw := range []string{w.public, w.auth} {
		u, err := url.Parse(raw)
		if err != nil {
			return false
		}
		if !localHost(u.Hostname()) {
			return false
		}
	}
	return true
}

// localHost reports whether a name or address is this machine.
func localHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// issuer gives the issuer of every token.
func (w where) issuer() string { return w.auth + "/" }

// locate gives what was configured, with the ports of HTTP and HTTPS in what was
// not.
func locate(c Config, httpPort, httpsPort string) where {
	w := where{public: string(c.PublicURL), auth: string(c.AuthURL), fabric: string(c.FabricHost)}
	w.noWSS = c.FabricHost == "" && c.tlsAddress() == off // a configured host may be a proxy's
	if w.public == "" {
		w.public = "http://" + net.JoinHostPort(nameOf(c.Listen), httpPort)
	}
	if w.auth == "" {
		w.auth = w.public
	}
	if w.fabric == "" {
		w.fabric = net.JoinHostPort("puc.localhost", httpsPort)
	}
	return w
}

// locateBeside gives where the server of the data directory is, or would be: a
// command that makes tokens makes them as the server does.
func locateBeside(c Config) where {
	w := locate(c, portOf(c.Listen, "8080"), portOf(c.tlsAddress(), "8443"))
	r, ok := datadir.ReadRunning(c.Data)
	if !ok {
		return w
	}
	if c.PublicURL == "" {
		w.public = r.PublicURL
	}
	if c.AuthURL == "" && c.PublicURL == "" {
		w.auth = r.AuthURL
	}
	w.noWSS = c.FabricHost == "" && r.HTTPS == ""
	if u, err := url.Parse(r.HTTPS); err == nil && u.Port() != "" && c.FabricHost == "" {
		w.fabric = net.JoinHostPort("puc.localhost", u.Port())
	}
	return w
}

// nameOf gives the name by which browsers on this machine reach an address.
func nameOf(a hostPort) string {
	host, _, err := net.SplitHostPort(string(a))
	ip := net.ParseIP(host)
	if err != nil || host == "" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		return "localhost"
	}
	return host
}

func portOf(a hostPort, otherwise string) string {
	_, port, err := net.SplitHostPort(string(a))
	if err != nil || port == "0" {
		return otherwise
	}
	return port
}

// tlsAddress gives the address for HTTPS, or off. Where a certificate is
// configured it is beside HTTP, on the port that goes with that of HTTP.
func (c Config) tlsAddress() hostPort {
	switch {
	case c.ListenTLS != auto:
		return c.ListenTLS
	case c.TLS.Cert != "" || len(c.TLS.ACME.Hosts) > 0:
		host, port, _ := net.SplitHostPort(string(c.Listen))
		if port == "80" {
			return hostPort(net.JoinHostPort(host, "443"))
		}
		return hostPort(net.JoinHostPort(host, "8443"))
	case c.Listen.loopback():
		return "127.0.0.1:8443"
	}
	return off
}

// certified lists the names and addresses that the local certificate needs
// beside localhost and its like.
func (c Config) certified() []string {
	hosts := append([]string(nil), c.TLS.Hosts...)
	for _, u := range []baseURL{c.PublicURL, c.AuthURL} {
		if p, err := url.Parse(string(u)); err == nil {
			hosts = append(hosts, p.Hostname())
		}
	}
	if host, _, err := net.SplitHostPort(string(c.FabricHost)); err == nil {
		// Browser SDKs exchange the first label (docs/architecture.md, "Hosts").
		_, domain, _ := strings.Cut(host, ".")
		hosts = append(hosts, host)
		if domain != "" && net.ParseIP(host) == nil {
			hosts = append(hosts, "fabric."+domain)
		}
	}
	for _, a := range []hostPort{c.Listen, c.tlsAddress()} {
		host, _, _ := net.SplitHostPort(string(a))
		if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
