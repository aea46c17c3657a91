package doctor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// publicURL requests the discovery document from the public address, as clients do. The request passes
// through all proxies in front of the server.
func (e *Examination) publicURL(ctx context.Context) []Finding {
	var all []Finding
	for _, address := range slices.Compact([]string{e.where.Public, e.where.Auth}) {
		local := config.Where{Public: address, Auth: address}.Local()
		if strings.HasPrefix(address, "http:") && !local {
			unencrypted := warnedf("%s is not https: passwords and tokens cross the network unencrypted", address).
				withRemedy("put TLS in front of the server, and set --public-url to https://…")
			all = append(all, unencrypted.of("encryption"))
		}
	}

	if !e.alive {
		return append(all, skippedf("%s: no server is running here", e.where.Auth))
	}
	if !e.Config.Services.Has(config.IDP) {
		return append(all, skippedf("%s: this server does not serve %s", e.where.Auth, config.IDP))
	}

	all = append(all, e.discovery(ctx)...)
	return append(all, e.uploads(ctx)...)
}

// discovery checks that the public address leads to this server and names the right issuer.
func (e *Examination) discovery(ctx context.Context) []Finding {
	var doc struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}

	address := e.where.Auth + "/.well-known/openid-configuration"
	status, err := getJSON(ctx, e.client(), address, &doc)
	byProxy := []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	var moved *redirected
	switch {
	case errors.As(err, &moved):
		return []Finding{brokenf("%s is redirected to %s", address, moved.to).
			withRemedy(e.redirectRemedy(moved.to))}
	case err != nil && status == 0:
		return []Finding{brokenf("%s does not answer: %s", address, netCause(err)).
			withRemedy(e.connectRemedy(err, "--public-url"))}
	case slices.Contains(byProxy, status):
		remedy := textf("configure the proxy to forward requests to this server; for nginx:\n%s", e.nginx())
		return []Finding{brokenf("%s returns %s: a proxy answers, but does not reach the server",
			address, status).withRemedy(remedy)}
	case err != nil || status != http.StatusOK:
		return []Finding{brokenf("%s returns %s, and not selvage's document", address, status).
			withRemedy(e.pathRemedy())}
	case doc.Issuer != e.where.Issuer():
		const remedy = "set --public-url (or --auth-url) to the URL at which clients reach this server, " +
			"or point that address to this server"
		return []Finding{brokenf("%s has issuer \"%s\", but this server has \"%s\"; clients compare them byte for byte",
			address, doc.Issuer, e.where.Issuer()).
			withRemedy(remedy)}
	}

	// Another installation with the same issuer may have answered.
	if !e.sameKeys(ctx, doc.JWKS) {
		return []Finding{brokenf("%s leads to another server with other keys", e.where.Auth).
			withRemedy("point that address to this server, or to one with the same database")}
	}
	return []Finding{finef("%s answers, the issuer is %s", e.where.Auth, doc.Issuer)}
}

// sameKeys reports whether the JWKS at a URL and the local server's JWKS have a key in common. It
// returns true if it cannot read either of them. One common key is enough, because nodes do not learn
// of new keys at the same time.
func (e *Examination) sameKeys(ctx context.Context, address string) bool {
	public, err := kids(ctx, e.client(), address)
	if err != nil {
		return true
	}
	local, err := kids(ctx, plainClient(), e.running.HTTP+"/oauth/jwks")
	if err != nil {
		return true
	}
	return slices.ContainsFunc(public, func(kid string) bool { return slices.Contains(local, kid) })
}

// kids returns the IDs of the keys in a JWKS (RFC 7517, section 4.5).
func kids(ctx context.Context, client *http.Client, address string) (all []string, err error) {
	var jwks struct {
		Keys []struct {
			Kid string `json:"kid"`
		} `json:"keys"`
	}
	if _, err := getJSON(ctx, client, address, &jwks); err != nil {
		return nil, err
	}
	for _, k := range jwks.Keys {
		all = append(all, k.Kid)
	}
	return all, nil
}

// uploads checks that proxies accept the largest recording. It announces a body of that size but
// does not send it. A proxy with a lower limit refuses the request before it waits for the body.
func (e *Examination) uploads(ctx context.Context) []Finding {
	if !e.Config.Services.Has(config.Recordings) {
		return nil
	}

	address := e.where.Public + "/api/laml/2010-04-01/Accounts/doctor/Recordings"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, unsent{})
	if err != nil {
		return nil
	}

	req.ContentLength = int64(e.Config.Recordings.MaxUpload)
	req.Header.Set("Content-Type", "audio/wav")
	req.Header.Set("Expect", "100-continue")
	resp, err := e.client().Do(req)
	if err != nil {
		return nil // the server asked for the body, or did not respond, which the discovery check reports
	}
	defer resp.Body.Close()

	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		return nil
	}

	rejected := warnedf("uploads of %s, which recordings.max_upload allows, are rejected at %s",
		e.Config.Recordings.MaxUpload, e.where.Public).
		withRemedy(textf("raise the proxy's limit; for nginx:\n%s", e.nginx()))
	return []Finding{rejected.of("uploads")}
}

// unsent is a request body that is announced but never sent.
type unsent struct{}

func (unsent) Read([]byte) (int, error) { return 0, errors.New("not sent") }

// nginx returns the nginx configuration for a proxy in front of this server.
func (e *Examination) nginx() string {
	return `map $http_upgrade $connection { default upgrade; "" ""; }
location / {
    proxy_pass ` + e.running.HTTP + `;
    proxy_http_version 1.1;
    proxy_set_header Host $host;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection;
    proxy_request_buffering off;
    client_max_body_size 0;
}`
}

// redirectRemedy returns the remedy for a redirect to a different address.
func (e *Examination) redirectRemedy(to string) Text {
	u, err := url.Parse(to)
	if err == nil && strings.HasPrefix(u.Path, "/.well-known/") {
		return textf("clients do not follow this redirect: set --public-url %s", u.Scheme+"://"+u.Host)
	}
	return e.pathRemedy()
}

// pathRemedy returns the remedy for a proxy that changes requests.
func (e *Examination) pathRemedy() Text {
	return textf("configure the proxy to forward every path unchanged; for nginx:\n%s", e.nginx())
}

// connectRemedy returns the remedy for a host that does not respond. flag is the flag that sets the
// host.
func (e *Examination) connectRemedy(err error, flag string) Text {
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &dns):
		return textf("add a DNS record for that name, or set %s to a name that has one", flag)
	case errors.As(err, &unknown):
		return textf("for the local authority, run `selvage ca install`; otherwise complete the certificate " +
			"chain of the proxy")
	case errors.As(err, &name):
		return textf("use a certificate for that host in the proxy, or set %s to a host that the certificate has", flag)
	case errors.Is(err, syscall.ECONNREFUSED):
		return textf("start the server or proxy at that address, or set %s to the address at which clients reach "+
			"this server", flag)
	}

	return textf("set %s to the address at which clients reach this server; if it is correct, check firewalls "+
		"and proxies in between", flag)
}

// A redirected error reports a redirect. Clients do not follow redirects from the discovery
// document.
type redirected struct{ to string }

func (r *redirected) Error() string { return "redirected to " + r.to }

// client returns an HTTP client with this machine's trust store.
func (e *Examination) client() *http.Client { return plainClient() }

// plainClient returns a client that does not follow redirects or reuse connections.
func plainClient() *http.Client { return clientWith(plainTransport()) }

// clientWith returns a client with a transport. It does not follow redirects.
func clientWith(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     transport,
		Timeout:       5 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// plainTransport returns a transport that does not reuse connections. It waits two seconds for 100
// Continue.
func plainTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	transport.ExpectContinueTimeout = 2 * time.Second
	return transport
}

// getJSON requests a JSON document. The status is 0 if there was no response.
func getJSON(ctx context.Context, client *http.Client, address string, into any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	target := resp.Header.Get("Location")
	if resp.StatusCode/100 == 3 && target != "" {
		return resp.StatusCode, &redirected{target}
	}
	return resp.StatusCode, json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(into)
}

// netCause formats the error of a request. It omits the method and the URL.
func netCause(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var e net.Error
	timedOut := errors.As(err, &e) && e.Timeout()
	if timedOut || errors.Is(err, context.DeadlineExceeded) {
		return "timed out"
	}
	return err.Error()
}
