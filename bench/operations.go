package main

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
)

// operations lists what is measured. The goals are CPU milliseconds on the
// machine that docs/performance.md names.
func (w *world) operations(p *program) []operation {
	at := strings.TrimPrefix(w.HTTP, "http://")
	bearer := "Authorization: Bearer " + w.sat.Token
	oauthBearer := "Authorization: Bearer " + w.tokens.AccessToken
	credentials := func(grant url.Values, id, secret string) []byte {
		return w.post("/oauth/token", form, grant.Encode(), basic(id, secret))
	}
	one := func(name string, goal float64, request []byte, status int, parts ...string) operation {
		return operation{name: name, address: at, connections: 8, goal: goal, task: func(int) task { return once(request, status, parts...) }}
	}
	service := url.Values{"grant_type": {"client_credentials"}}
	ops := []operation{
		one("SAT issue, known subscriber", 0.035, w.post("/api/fabric/subscribers/tokens", object, `{"reference":"bench"}`, basic(w.ID, w.Key)), 200, `"refresh_token"`, w.sat.SubscriberID),
		one("subscriber info by SAT", 0.035, w.get("/subscriber/info", bearer), 200, w.sat.SubscriberID),
		one("guest token", 0.045, w.post("/api/fabric/guests/tokens", object, `{"allowed_addresses":["`+w.address+`"]}`, basic(w.ID, w.Key)), 201, `"token"`),
		one("client_credentials, sealed", 0.045, credentials(service, w.sealed.ID, w.sealed.Secret), 200, `"access_token"`),
		one("client_credentials, JWT ES256", 0.055, credentials(service, w.signed.ID, w.signed.Secret), 200, `"access_token":"ey`),
		one("introspection", 0.030, w.post("/oauth/introspect", form, url.Values{"token": {w.tokens.AccessToken}}.Encode(), basic(w.web.ID, w.web.Secret)), 200, `"active":true`),
		one("userinfo", 0.028, w.get("/oauth/userinfo", oauthBearer), 200, w.sub.ID),
		one("JWKS", 0.018, w.get("/oauth/jwks"), 200, `"keys"`),
		one("discovery", 0.018, w.get("/.well-known/openid-configuration"), 200, w.Issuer()),
		one("recording, HEAD", 0, w.head(w.media), 200),
		one("recording, 64 KiB range", 0, w.get(w.media, "Range: bytes=4096000-4161535"), 206),
		one("recording, 1 MiB range", 0, w.get(w.media, "Range: bytes=4096000-5144575"), 206),
		{name: "recording, whole (9.6 MB)", address: at, connections: 4, task: func(int) task { return w.wholeFile() }},
		{name: "code flow, no password", address: at, connections: 8, goal: 0.27, task: func(int) task { return w.codeFlow() }},
		{name: "code flow, no password", address: at, connections: 64, goal: 0.27, pace: 500, task: func(int) task { return w.codeFlow() }},
		{name: "refresh with rotation", address: at, connections: 8, goal: 0.13, task: func(int) task { return w.refreshChain(p) }},
		{name: "refresh with rotation", address: at, connections: 64, goal: 0.13, task: func(int) task { return w.refreshChain(p) }},
		{name: "password login (3 requests)", address: at, connections: 8, goal: 20, task: func(int) task { return w.passwordLogin() }},
	}
	for i := range ops {
		if ops[i].name == "client_credentials, sealed" {
			ops[i].pace = 5000
		}
	}
	return ops
}

// The types of bodies.
const (
	form   = "application/x-www-form-urlencoded"
	object = "application/json"
)

func (w *world) get(path string, headers ...string) []byte {
	return w.request("GET", path, "", headers...)
}

func (w *world) head(path string) []byte { return w.request("HEAD", path, "") }

func (w *world) post(path, kind, body string, headers ...string) []byte {
	return w.request("POST", path, body, append(headers, "Content-Type: "+kind, fmt.Sprintf("Content-Length: %d", len(body)))...)
}

// request gives a request as it goes over the wire.
func (w *world) request(method, path, body string, headers ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, hostOf(w.PublicURL))
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	b.WriteString("\r\n" + body)
	return []byte(b.String())
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

func basic(id, secret string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// wholeFile fetches the recording and looks at its length and beginning.
func (w *world) wholeFile() task {
	request := w.get(w.media)
	return func(c *wire) error {
		a, err := c.do(request)
		if err != nil {
			return err
		}
		if len(a.body) != w.mediaLen {
			return fmt.Errorf("%d bytes of %d", len(a.body), w.mediaLen)
		}
		return a.want(200)
	}
}
