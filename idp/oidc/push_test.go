package oidc_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// push pushes an authorization request for a public client.
func (w *world) push(c idp.Client, pairs ...string) reply {
	w.t.Helper()
	return w.newBrowser().post("/oauth/par", request(c, pairs...))
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
	wantStatus(t, "pushing", got, http.StatusCreated)
	wantHeader(t, "pushing", got, "Cache-Control", "no-store")
	doc := got.json(t)
	if doc["expires_in"] != 90.0 {
		t.Errorf("expires_in is %v, want 90", doc["expires_in"])
	}
	uri := text(doc["request_uri"])
	if !strings.HasPrefix(uri, "urn:ietf:params:oauth:request_uri:") {
		t.Fatalf("the request_uri is %s, want a URN for request URIs", uri)
	}

	b := w.newBrowser()
	b.authorize(reference(c, uri))
	page := b.authorize(with(reference(c, uri), "state", "outside", "redirect_uri", "https://evil.example/"))
	w.pass(2 * time.Minute) // a person may take longer than the lifetime of the request_uri
	answer := b.logIn(page, email, secret)
	wantCode(t, "the pushed request", answer)
	wantParam(t, "the pushed request", answer, "state", "pushed")
	if id := idClaims(t, w.redeem(c, answer.param("code")).json(t)); id["nonce"] != "n" {
		t.Errorf("the nonce in the ID token is %v, want n", id["nonce"])
	}

	again := b.authorize(reference(c, uri))
	wantText(t, "the request_uri after its response", again, "used before")
	if again.location != nil {
		t.Errorf("the request_uri after its response redirects to %v, want a page", again.location)
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
		browsers[i] = w.newBrowser()
		browsers[i].code(c) // signed in
	}

	var requests sync.WaitGroup
	var codes atomic.Int32
	for _, b := range browsers {
		requests.Go(func() {
			if b.authorize(reference(c, uri)).param("code") != "" {
				codes.Add(1)
			}
		})
	}
	requests.Wait()
	if n := codes.Load(); n != 1 {
		t.Errorf("%d browsers got a code, want 1", n)
	}

	// Another node resolves the request, but only for its client.
	uri = w.pushed(c)
	node := w.second().Requests
	if _, _, err := node.Resolve(t.Context(), c, reference(c, uri)); err != nil {
		t.Errorf("Resolve by another node: %v", err)
	}
	other, _ := w.client(nil)
	_, _, err := node.Resolve(t.Context(), other, reference(other, uri))
	if p := problem.First(err); p == nil || p.Code != "invalid_request_uri" {
		t.Errorf("Resolve for another client: %v, want invalid_request_uri", err)
	}
}

// TestPushErrors shows that a request that the authorization endpoint would refuse cannot be
// pushed. It also shows that a request_uri is useless to other clients and after it has expired.
func TestPushErrors(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	confidential, clientSecret := w.client(func(n *idp.Client) { n.Type, n.AuthMethod = idp.Web, idp.AuthPost })
	for name, tt := range map[string]struct {
		params    url.Values
		wantError string
	}{
		"a request_uri":               {request(c, "request_uri", w.pushed(c)), "invalid_request"},
		"an unregistered address":     {request(c, "redirect_uri", callback+"/x"), "invalid_request"},
		"no address":                  {request(c, "redirect_uri", ""), "invalid_request"},
		"no challenge":                {request(c, "code_challenge", ""), "invalid_request"},
		"the method plain":            {request(c, "code_challenge_method", "plain"), "invalid_request"},
		"no scope":                    {request(c, "scope", ""), "invalid_scope"},
		"an unknown response type":    {request(c, "response_type", "code none"), "unsupported_response_type"},
		"prompt=create":               {request(c, "prompt", "create"), "invalid_request"},
		"an unsigned request object":  {request(c, "request", "eyJhbGciOiJub25lIn0.e30."), "request_not_supported"},
		"no credentials":              {request(confidential), "invalid_client"},
		"a wrong secret":              {request(confidential, "client_secret", clientSecret+"x"), "invalid_client"},
		"an unknown client":           {request(c, "client_id", "x"), "invalid_client"},
		"a secret of a public client": {request(c, "client_secret", "x"), "invalid_client"},
	} {
		got := w.newBrowser().post("/oauth/par", tt.params)
		wantError(t, name, got, tt.wantError)
		if got.status < 400 || got.status > 499 {
			t.Errorf("%s: status %d, want one from 400 to 499", name, got.status)
		}
	}

	uri := w.pushed(c)
	for name, params := range map[string]url.Values{
		"of another client": reference(confidential, uri),
		"altered":           reference(c, uri[:len(uri)-1]+"1"),
		"short":             reference(c, uri[:len(uri)-1]),
		"with a request":    with(reference(c, uri), "request", "a.b.c"),
	} {
		got := w.newBrowser().authorize(params)
		wantStatus(t, "a request_uri "+name, got, http.StatusBadRequest)
		wantText(t, "a request_uri "+name, got, `id="error-page"`)
	}

	w.pass(91 * time.Second)
	expired := w.newBrowser().authorize(reference(c, uri))
	wantStatus(t, "an expired request_uri", expired, http.StatusBadRequest)
	if expired.location != nil {
		t.Errorf("an expired request_uri redirects to %v, want a page", expired.location)
	}

	wantStatus(t, "GET", w.newBrowser().get("/oauth/par"), http.StatusMethodNotAllowed)
}

// TestPushRequired shows that a client that must push its requests cannot send them in another way.
func TestPushRequired(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.RequirePushed = true })
	direct := w.newBrowser().authorize(request(c))
	wantParam(t, "a request that is not pushed", direct, "error", "invalid_request")
	wantParam(t, "a request that is not pushed", direct, "state", "s")

	b := w.newBrowser()
	pushed := b.logIn(b.authorize(reference(c, w.pushed(c))), email, secret)
	wantCode(t, "a pushed request", pushed)
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
