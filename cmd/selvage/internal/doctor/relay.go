package doctor

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/ca"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// fabricHost checks the hosts that browser SDKs connect to. These are the fabric host, for its
// WebSocket, and the API host derived from it.
func (e *Examination) fabricHost(ctx context.Context) []Finding {
	switch {
	case !e.alive:
		return []Finding{skippedf("%s: no server is running here", e.where.Fabric)}
	case !e.Config.Services.Has(config.Relay):
		return []Finding{skippedf("%s: this server does not serve %s", e.where.Fabric, config.Relay)}
	case e.Config.FabricHost == "" && e.running.HTTPS == "":
		return []Finding{skippedf("needs HTTPS; if a proxy terminates TLS, set --fabric-host")}
	}

	socket := e.webSocket(ctx)
	if socket.Status != Fine {
		return []Finding{socket}
	}
	host, ok := apiHost(e.where.Fabric)
	if !ok {
		return []Finding{socket}
	}
	return []Finding{socket, e.fabricAPI(ctx, host)}
}

// apiHost returns the API host, with its port, that browser SDKs derive from the fabric host: they
// replace the first label of its name with "fabric". ok is false if they cannot do so because the
// fabric host is an IP address or a name with a single label.
func apiHost(fabricHost string) (host string, ok bool) {
	name, port, err := net.SplitHostPort(fabricHost)
	if err != nil || net.ParseIP(name) != nil {
		return "", false
	}
	_, domain, hasDomain := strings.Cut(name, ".")
	if !hasDomain {
		return "", false
	}
	return net.JoinHostPort("fabric."+domain, port), true
}

// webSocket opens a WebSocket on the fabric host and closes it (RFC 6455, section 4.1).
func (e *Examination) webSocket(ctx context.Context) Finding {
	key := make([]byte, 16)
	rand.Read(key)
	resp, err := e.askFabric(ctx, e.where.Fabric, "/", http.Header{
		"Connection":            {"Upgrade"},
		"Upgrade":               {"websocket"},
		"Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key":     {base64.StdEncoding.EncodeToString(key)},
	})
	if err != nil {
		return brokenf("wss://%s does not answer: %s", e.where.Fabric, netCause(err)).
			withRemedy(e.connectRemedy(err, "--fabric-host"))
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusSwitchingProtocols {
		return brokenf("wss://%s returns %s and opens no WebSocket", e.where.Fabric, strconv.Itoa(resp.StatusCode)).
			withRemedy(textf("configure the proxy to forward the upgrade; for nginx:\n%s", e.nginx()))
	}
	return finef("wss://%s opens WebSockets", e.where.Fabric)
}

// fabricAPI checks that the API responds at host, which SDKs derive from the fabric host.
func (e *Examination) fabricAPI(ctx context.Context, host string) Finding {
	resp, err := e.askFabric(ctx, host, "/subscriber/info", http.Header{})
	if err != nil {
		remedy := textf("browser SDKs derive that name from --fabric-host:").
			and(e.connectRemedy(err, "--fabric-host"))
		return brokenf("https://%s does not answer: %s", host, netCause(err)).withRemedy(remedy).of("fabric API")
	}
	defer resp.Body.Close()

	// A request without a token must get 401. But if this server does not serve the API, the proxy may
	// forward requests for this host to a different server, so every response is accepted.
	servesAPI := e.Config.Services.Has(config.Fabric)
	if servesAPI && resp.StatusCode != http.StatusUnauthorized {
		return brokenf("https://%s returns %s for a request without a token", host, strconv.Itoa(resp.StatusCode)).
			withRemedy(textf("configure the proxy to forward that host, too; for nginx:\n%s", e.nginx())).
			of("fabric API")
	}
	return finef("https://%s answers", host).of("fabric API")
}

// askFabric sends a GET request over HTTPS. It sends requests for hosts under .localhost to this
// machine without using DNS. It trusts the local authority; the check "trust" reports whether
// browsers also trust it.
func (e *Examination) askFabric(ctx context.Context, host, path string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header

	transport := plainTransport()
	transport.TLSClientConfig = &tls.Config{RootCAs: e.roots()} // also disables HTTP/2, which has no upgrades
	transport.DialContext = dialLocalhost
	return clientWith(transport).Do(req)
}

// dialLocalhost connects to an address. It looks up all names except those under .localhost.
func dialLocalhost(ctx context.Context, network, address string) (net.Conn, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, ".localhost") {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// roots returns the system's authorities and the local authority.
func (e *Examination) roots() *x509.CertPool {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if text, err := os.ReadFile(filepath.Join(e.Config.Data, ca.CertFile)); err == nil {
		roots.AppendCertsFromPEM(text)
	}
	return roots
}
