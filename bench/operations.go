package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"github.com/selvage/selvage/test/harness"
)

// operations returns the operations to measure. Goals are in CPU milliseconds on the reference
// machine.
func (w *world) operations(p *harness.Program) []operation {
	at := strings.TrimPrefix(w.HTTP, "http://")
	bearer := "Authorization: Bearer " + w.sat.Token
	oauthBearer := "Authorization: Bearer " + w.tokens.AccessToken
	credentials := func(grant url.Values, id, secret string) []byte {
		return w.post("/oauth/token", form, grant.Encode(), basic(id, secret))
	}

	who := url.Values{"token": {w.tokens.AccessToken}}.Encode()
	signature := work{signatures: 1}
	one := func(name string, goal float64, request []byte, status int, parts ...string) operation {
		return operation{
			name:        name,
			address:     at,
			connections: 8,
			goal:        goal,
			task:        func(int) task { return once(request, status, parts...) },
		}
	}

	b := w.newBank(p)
	service := url.Values{"grant_type": {"client_credentials"}}
	ops := []operation{
		one("SAT issue, known subscriber", 0.035, w.post("/api/fabric/subscribers/tokens", object,
			`{"reference":"bench"}`, basic(w.ID, w.Key)), 200, `"refresh_token"`, w.sat.SubscriberID),
		one("subscriber info by SAT", 0.035, w.get("/subscriber/info", bearer), 200, w.sat.SubscriberID),
		one("guest token", 0.045, w.post("/api/fabric/guests/tokens", object,
			`{"allowed_addresses":["`+w.address+`"]}`, basic(w.ID, w.Key)), 201, `"token"`),
		one("client_credentials, sealed", 0.045, credentials(service, w.sealed.ID, w.sealed.Secret), 200,
			`"access_token"`),
		one("client_credentials, JWT ES256", 0.055, credentials(service, w.signed.ID, w.signed.Secret), 200,
			`"access_token":"ey`),
		one("introspection", 0.030, w.post("/oauth/introspect", form, who, basic(w.web.ID, w.web.Secret)),
			200, `"active":true`),
		one("userinfo", 0.028, w.get("/oauth/userinfo", oauthBearer), 200, w.sub.ID),
		one("userinfo by JWT ES256", 0.085,
			w.get("/oauth/userinfo", "Authorization: Bearer "+w.jwt.AccessToken), 200, w.sub.ID),
		one("JWKS", 0.018, w.get("/oauth/jwks"), 200, `"keys"`),
		one("discovery", 0.018, w.get("/.well-known/openid-configuration"), 200, w.Issuer()),
		{
			name:        "code flow, no password",
			address:     at,
			connections: 8,
			goal:        0.27,
			work:        signature,
			task:        func(int) task { return w.codeFlow() },
		},
		{
			name:        "code flow, no password",
			address:     at,
			connections: 64,
			goal:        0.27,
			work:        signature,
			pace:        500,
			task:        func(int) task { return w.codeFlow() },
		},
		{
			name:        "refresh with rotation",
			address:     at,
			connections: 8,
			goal:        0.13,
			work:        signature,
			task:        func(int) task { return w.refreshChain(p) },
		},
		{
			name:        "refresh with rotation",
			address:     at,
			connections: 64,
			goal:        0.13,
			work:        signature,
			task:        func(int) task { return w.refreshChain(p) },
		},
		{
			name:        "FAPI 2.0 flow with DPoP, no password",
			address:     at,
			connections: 8,
			goal:        0.75,
			work:        work{signatures: 2, verifications: 4},
			task:        func(int) task { return w.provenFlow(b) },
		},
		{
			name:        "userinfo by JWT ES256 with DPoP",
			address:     at,
			connections: 8,
			goal:        0.16,
			work:        work{verifications: 1},
			task:        func(int) task { return w.provenUserinfo(b) },
		},
		{
			name:        "password login (3 requests)",
			address:     at,
			connections: 8,
			goal:        20,
			work:        work{hashes: 1},
			task:        func(int) task { return w.passwordLogin() },
		},
	}

	for i := range ops {
		switch ops[i].name {
		case "client_credentials, sealed":
			ops[i].pace = 5000
		case "client_credentials, JWT ES256":
			ops[i].work = signature
		}
	}
	return append(ops, w.mediaOperations(at, w.media, recording)...)
}

// The name of a media operation consists of the name of a server and of what is read.
const (
	recording   = "recording" // selvage
	nginxServer = "nginx"

	fileHead   = ", HEAD"
	smallRange = ", 64 KiB range"
	largeRange = ", 1 MiB range"
	wholeFile  = ", whole (9.6 MB)"
)

// mediaOperations returns the operations on a ten-minute recording at path, on the server at
// address. who names the server in the results.
func (w *world) mediaOperations(address, path, who string) []operation {
	part := func(from, length int) func(int) task {
		request := w.get(path, fmt.Sprintf("Range: bytes=%d-%d", from, from+length-1))
		return func(int) task { return bytesOf(request, 206, w.speech[from:from+length]) }
	}

	whole, head := w.get(path), w.request("HEAD", path, "")
	return []operation{
		{name: who + fileHead, address: address, connections: 8, task: func(int) task { return once(head, 200) }},
		{name: who + smallRange, address: address, connections: 8, task: part(4_000_001, 64<<10)},
		{name: who + largeRange, address: address, connections: 8, task: part(4_000_001, 1<<20)},
		{
			name:        who + wholeFile,
			address:     address,
			connections: 4,
			task:        func(int) task { return bytesOf(whole, 200, w.speech) },
		},
	}
}

// These are the content types of request bodies.
const (
	form   = "application/x-www-form-urlencoded"
	object = "application/json"
)

func (w *world) get(path string, headers ...string) []byte {
	return w.request("GET", path, "", headers...)
}

func (w *world) post(path, kind, body string, headers ...string) []byte {
	return postTo(hostOf(w.PublicURL), path, kind, body, headers...)
}

func (w *world) request(method, path, body string, headers ...string) []byte {
	return request(hostOf(w.PublicURL), method, path, body, headers...)
}

func postTo(host, path, kind, body string, headers ...string) []byte {
	return request(host, "POST", path, body,
		append(headers, "Content-Type: "+kind, fmt.Sprintf("Content-Length: %d", len(body)))...)
}

// request returns the bytes of a request.
func request(host, method, path, body string, headers ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, host)
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

// bytesOf returns a task that sends request. The response body must be want: the task checks its
// length and its beginning.
func bytesOf(request []byte, status int, want []byte) task {
	return func(c *wire) error {
		a, err := c.do(request)
		if err == nil && (a.length != int64(len(want)) || !bytes.HasPrefix(want, a.body)) {
			err = fmt.Errorf("the body has %d bytes that differ from the %d bytes wanted", a.length,
				len(want))
		}
		if err != nil {
			return err
		}
		return a.want(status)
	}
}
