package oidc_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// push pushes an authorization request for a public client.
func (w *world) push(c idp.Client, pairs ...string) reply {
	w.t.Helper()
	return w.browser().post("/oauth/par", request(c, pairs...))
}

// pushed returns the request_uri of a pushed request.
func (w *world) pushed(c idp.Client, pairs ...string) string {
	w.t.Helper()
	got := w.push(c, pairs...)
	if got.status != http.StatusCreated {
		w.t.Fatalf("pushing: %d %s, want 201", got.status, got.body)
	}
	return text(got.json(w.t)["request_uri"])
}

// reference returns the parameters of an authorization request with this request_uri.
func reference(c idp.Client, uri string) url.Values {
	return url.Values{"client_id": {c.ID}, "request_uri": {uri}}
}

// TestPush shows that a pushed request can be opened several times but answered only once.
func TestPush(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	got := w.push(c, "state", "pushed", "nonce", "n", "unknown", "not-stored")
	if stored := strings.Join(w.entries(), "\n"); strings.Contains(stored, "not-stored") {
		t.Errorf("an unknown parameter is stored: %s", stored)
	}
	doc := got.json(t)
	uri := text(doc["request_uri"])
	if got.status != http.StatusCreated || doc["expires_in"] != 90.0 || got.header.Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(uri, "urn:ietf:params:oauth:request_uri:") {
		t.Fatalf("pushing: %d %v %s", got.status, got.header, got.body)
	}

	b := w.browser()
	b.authorize(reference(c, uri))
	page := b.authorize(with(reference(c, uri), "state", "outside", "redirect_uri", "https://evil.example/"))
	w.pass(2 * time.Minute) // a person may take longer than the lifetime of the request_uri
	answer := b.logIn(page, email, secret)
	if answer.param("state") != "pushed" || answer.param("code") == "" {
		t.Fatalf("the response is %v, want state=pushed and a code", answer.parameters())
	}
	if id := idClaims(t, w.redeem(c, answer.param("code")).json(t)); id["nonce"] != "n" {
		t.Errorf("the ID token is %v, want the nonce n", id)
	}
	if again := b.authorize(reference(c, uri)); again.location != nil || !strings.Contains(again.body, "used before") {
		t.Errorf("after its response: %d %v, want a page about it", again.status, again.location)
	}
}

// TestPushedOnce shows that only one of several browsers with the same pushed request gets a code,
// even if different nodes answer.
func TestPushedOnce(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	uri := w.pushed(c)
	browsers := make([]*browser, 8)
	for i := range browsers {
		browsers[i] = w.browser()
		browsers[i].code(c) // signed in
	}

	var all sync.WaitGroup
	codes := make([]string, len(browsers))
	for i, b := range browsers {
		all.Go(func() { codes[i] = b.authorize(reference(c, uri)).param("code") })
	}
	all.Wait()
	if n := len(strings.Fields(strings.Join(codes, " "))); n != 1 {
		t.Errorf("%d browsers got a code, want 1", n)
	}

	other, _ := w.client(nil)
	uri, second := w.pushed(c), w.second().Requests
	for name, tt := range map[string]struct {
		c  idp.Client
		ok bool
	}{"the client": {c, true}, "another client": {other, false}} {
		_, _, err := second.Resolve(context.Background(), tt.c, reference(tt.c, uri))
		if first := problem.First(err); (first == nil) != tt.ok || first != nil && first.Code != "invalid_request_uri" {
			t.Errorf("another node resolves the request of %s: %v", name, err)
		}
	}
}

// TestPushErrors shows that a request that the authorization endpoint would refuse cannot be
// pushed. It also shows that a request_uri is useless to other clients and after it has expired.
func TestPushErrors(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	confidential, own := w.client(func(n *idp.Client) { n.Type, n.AuthMethod = idp.Web, idp.AuthPost })
	for name, tt := range map[string]struct {
		v    url.Values
		code string
	}{
		"a request_uri":               {request(c, "request_uri", w.pushed(c)), "invalid_request"},
		"an unregistered address":     {request(c, "redirect_uri", callback+"/x"), "invalid_request"},
		"no address":                  {request(c, "redirect_uri", ""), "invalid_request"},
		"no challenge":                {request(c, "code_challenge", ""), "invalid_request"},
		"the method plain":            {request(c, "code_challenge_method", "plain"), "invalid_request"},
		"no scope":                    {request(c, "scope", ""), "invalid_scope"},
		"an unknown response type":    {request(c, "response_type", "code none"), "unsupported_response_type"},
		"an unsigned request object":  {request(c, "request", "eyJhbGciOiJub25lIn0.e30."), "request_not_supported"},
		"no credentials":              {request(confidential), "invalid_client"},
		"a wrong secret":              {request(confidential, "client_secret", own+"x"), "invalid_client"},
		"a client that is not known":  {request(c, "client_id", "x"), "invalid_client"},
		"a secret of a public client": {request(c, "client_secret", "x"), "invalid_client"},
	} {
		if got := w.browser().post("/oauth/par", tt.v); got.status/100 != 4 || got.json(t)["error"] != tt.code {
			t.Errorf("%s: %d %s, want %s", name, got.status, got.body, tt.code)
		}
	}

	uri := w.pushed(c)
	for name, v := range map[string]url.Values{
		"of another client": reference(confidential, uri), "altered": reference(c, uri[:len(uri)-1]+"1"),
		"short": reference(c, uri[:len(uri)-1]), "with a request": with(reference(c, uri), "request", "a.b.c"),
	} {
		if got := w.browser().authorize(v); got.status != 400 || !strings.Contains(got.body, `id="error-page"`) {
			t.Errorf("%s: %d %v, want 400 and the error page", name, got.status, got.location)
		}
	}

	w.pass(91 * time.Second)
	if got := w.browser().authorize(reference(c, uri)); got.status != 400 || got.location != nil {
		t.Errorf("expired: %d %v, want 400", got.status, got.location)
	}

	if got := w.browser().get("/oauth/par"); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d, want 405", got.status)
	}
}

// TestPushRequired shows that a client that must push its requests cannot send them in another way.
func TestPushRequired(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.RequirePushed = true })
	if got := w.browser().authorize(request(c)); got.param("error") != "invalid_request" || got.param("state") != "s" {
		t.Errorf("not pushed: %v, want invalid_request", got.parameters())
	}
	b := w.browser()
	if got := b.logIn(b.authorize(reference(c, w.pushed(c))), email, secret); got.param("code") == "" {
		t.Errorf("pushed: %v, want a code", got.parameters())
	}
}

// TestPushedLate shows that a pushed request is answered only once, even long after it has expired.
// A browser can keep its pages valid for hours.
func TestPushedLate(t *testing.T) {
	w := newWorld(t)
	late := idp.AuthRequest{Pushed: "id", PushedUntil: w.now().Add(-24 * time.Hour)}
	must(t, w.idp.Requests.EndPushed(t.Context(), late))
	must(t, w.idp.Sweep(t.Context()))
	if err := w.idp.Requests.EndPushed(t.Context(), late); !errors.Is(err, problem.NotFound) {
		t.Errorf("the second answer: %v, want %v", err, problem.NotFound)
	}
}
