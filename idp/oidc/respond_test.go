package oidc_test

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
)

// TestResponseModes shows that codes and errors are sent in the requested response mode.
func TestResponseModes(t *testing.T) {
	w := newWorld(t)
	const registered = callback + "?a=b"
	c, _ := w.client(func(n *idp.Client) { n.RedirectURIs = []string{registered} })
	b := w.newBrowser()

	const (
		query    = registered + "&"
		fragment = registered + "#"
	)
	for _, tt := range []struct {
		responseType, mode string
		sentTo             string // the beginning of the redirect's target; "" means a form
		wantError          string // "" means a code
	}{
		{responseType: "code", mode: "", sentTo: query},
		{responseType: "code", mode: "query", sentTo: query},
		{responseType: "code", mode: "fragment", sentTo: fragment},
		{responseType: "code", mode: "form_post", sentTo: ""},
		{responseType: "token", mode: "", sentTo: fragment, wantError: "unsupported_response_type"},
		{responseType: "code id_token", mode: "", sentTo: fragment, wantError: "unsupported_response_type"},
		{responseType: "token", mode: "query", sentTo: fragment, wantError: "invalid_request"},
		{responseType: "token", mode: "form_post", sentTo: "", wantError: "unsupported_response_type"},
		{responseType: "code", mode: "web_message", sentTo: query, wantError: "invalid_request"},
		{responseType: "code", mode: "fragment query", sentTo: query, wantError: "invalid_request"},
	} {
		for _, prompt := range []string{"", "none"} {
			name := tt.responseType + " in the mode " + tt.mode + " with the prompt " + prompt
			got := b.authorize(request(c, "response_type", tt.responseType, "response_mode", tt.mode,
				"prompt", prompt))
			if strings.Contains(got.body, `id="login-submit"`) {
				got = b.logIn(got, email, secret)
			}

			wantParam(t, name, got, "state", "s")
			wantParam(t, name, got, "iss", w.url+"/")
			wantAnswer(t, name, got, tt.wantError)
			wantSentTo(t, name, got, tt.sentTo)
			if tt.sentTo == "" {
				wantText(t, name, got, `<form method="post" action="`+registered+`">`)
			} else {
				wantStatus(t, name, got, http.StatusSeeOther)
			}
		}
	}
}

// TestRequestObjectRefused shows that the error for a request object is sent with the response mode
// and the state in the object. Parameters of the request itself take precedence. Invalid values are
// ignored.
func TestRequestObjectRefused(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)

	unsigned := func(claims string) string {
		return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "."
	}
	const form, redirect = http.StatusOK, http.StatusSeeOther
	long := strings.Repeat("s", 4097)

	for name, tt := range map[string]struct {
		state, mode string // parameters of the request itself
		object      string
		wantStatus  int
		wantState   string
	}{
		"a mode and a state": {
			object:     unsigned(`{"state":"o","response_mode":"form_post"}`),
			wantStatus: form, wantState: "o",
		},
		"a state": {
			object:     unsigned(`{"state":"o"}`),
			wantStatus: redirect, wantState: "o",
		},
		"another state in the request": {
			state:      "s",
			object:     unsigned(`{"state":"o","response_mode":"form_post"}`),
			wantStatus: form, wantState: "s",
		},
		"another state and mode in the request": {
			state: "s", mode: "query",
			object:     unsigned(`{"state":"o","response_mode":"form_post"}`),
			wantStatus: redirect, wantState: "s",
		},
		"an unsupported mode": {
			object:     unsigned(`{"state":"o","response_mode":"form_post.jws"}`),
			wantStatus: redirect, wantState: "o",
		},
		"a state that a form alters": {
			object:     unsigned(`{"state":"a\nb","response_mode":"form_post"}`),
			wantStatus: redirect, wantState: "a\nb",
		},
		"a long state": {
			object:     unsigned(`{"state":"` + long + `","response_mode":"form_post"}`),
			wantStatus: redirect,
		},
		"a number as the state": {
			object:     unsigned(`{"state":1,"response_mode":"form_post"}`),
			wantStatus: redirect,
		},
		"null":        {object: unsigned(`null`), wantStatus: redirect},
		"not base64":  {object: "x.!.z", wantStatus: redirect},
		"not a token": {object: "x.y", wantStatus: redirect},
	} {
		got := w.newBrowser().authorize(request(c, "state", tt.state, "response_mode", tt.mode, "request", tt.object))
		wantStatus(t, name, got, tt.wantStatus)
		wantParam(t, name, got, "error", "request_not_supported")
		wantParam(t, name, got, "state", tt.wantState)
	}

	v := request(c, "request", unsigned(`{"state":"o","response_mode":"form_post"}`))
	v.Set("state", "")
	v.Set("response_mode", "")
	got := w.newBrowser().authorize(v)
	wantStatus(t, "empty parameters", got, form)
	wantParam(t, "empty parameters", got, "state", "o")
}

// TestResponseModeOfDenial shows that errors after a denial are also sent in the requested mode.
func TestResponseModeOfDenial(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.FirstParty = false })
	for mode, want := range map[string]int{"fragment": http.StatusSeeOther, "form_post": http.StatusOK} {
		b := w.newBrowser()
		page := b.logIn(b.authorize(request(c, "response_mode", mode)), email, secret)
		got := b.consent(page, "deny")
		wantStatus(t, "a denial in the mode "+mode, got, want)
		wantParam(t, "a denial in the mode "+mode, got, "error", "access_denied")
		wantParam(t, "a denial in the mode "+mode, got, "state", "s")
	}
}

// TestFormPostLimits shows that a form is not used for values that it would alter.
func TestFormPostLimits(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)

	for _, state := range []string{
		`"><script>alert(1)</script>`, "\u202e", "a b+c%20&amp;", strings.Repeat("s", 4096),
	} {
		got := b.authorize(request(c, "response_mode", "form_post", "state", state))
		if returned := got.param("state"); returned != state {
			t.Errorf("the state is returned as %.20q, want %.20q", returned, state)
		}
		if strings.Contains(got.body, "<script>") {
			t.Errorf("the page for the state %.20q contains a script: %s", state, got.body)
		}
	}

	// A form cannot contain line breaks and NUL unchanged.
	for _, state := range []string{"a\r\nb", "a\nb", "\x00"} {
		got := b.authorize(request(c, "response_mode", "form_post", "state", state))
		if got.location == nil {
			t.Fatalf("the state %q: status %d, want a redirect", state, got.status)
		}
		wantParam(t, "a state with a line break or NUL", got, "error", "invalid_request")
		wantParam(t, "a state with a line break or NUL", got, "state", state)
	}

	// A form cannot be posted to a URI with an app's private scheme.
	for _, uri := range []string{"com.dialer.app://cb", "http.dialer.app://cb"} {
		native, _ := w.client(func(n *idp.Client) {
			n.Type = idp.Native
			n.RedirectURIs = []string{uri}
		})
		got := b.authorize(request(native, "response_mode", "form_post"))
		wantParam(t, "form_post to "+uri, got, "error", "invalid_request")
		if got.location == nil || !strings.HasSuffix(got.location.Scheme, ".app") {
			t.Errorf("form_post to %s: status %d, sent to %v, want a redirect", uri, got.status, got.location)
		}
	}
}

// TestFraming shows that only the page that answers a prompt=none request may be in a frame, and
// only in a frame of the app.
func TestFraming(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()

	// Nobody is signed in for the first answer.
	for _, answer := range []string{"error", "code"} {
		silent := b.authorize(request(c, "response_mode", "form_post", "prompt", "none"))
		if silent.param(answer) == "" {
			t.Errorf("a prompt=none request returns %v, want the parameter %s", silent.parameters(), answer)
		}
		wantFramers(t, "the "+answer+" of a prompt=none request", silent, "https://app.example")
		wantHeader(t, "the "+answer+" of a prompt=none request", silent, "X-Frame-Options", "")

		page := b.authorize(request(c, "response_mode", "form_post"))
		wantFramers(t, "a page", page, "'none'")
		wantHeader(t, "a page", page, "X-Frame-Options", "DENY")

		b.code(c)
	}

	// The page that sends the error of a prompt=none request may be in a frame. An error page may
	// not.
	bad := b.authorize(request(c, "response_mode", "form_post", "prompt", "none", "scope", "bogus"))
	wantParam(t, "a failed prompt=none request", bad, "error", "invalid_scope")
	wantHeader(t, "a failed prompt=none request", bad, "X-Frame-Options", "")

	unproven := b.authorize(request(c, "redirect_uri", "https://evil.example/cb", "prompt", "none"))
	wantFramers(t, "the error page of an unverified redirect URI", unproven, "'none'")
	wantHeader(t, "the error page of an unverified redirect URI", unproven, "X-Frame-Options", "DENY")
}

// TestPageHeaders shows that pages may not be framed, cached or read by other origins.
func TestPageHeaders(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	for name, got := range map[string]reply{
		"the login page":                  w.newBrowser().authorize(request(c)),
		"the page for an unknown request": w.newBrowser().get("/login?id=x"),
		"the logout page":                 w.newBrowser().get("/logout"),
		"the page for a missing client":   w.newBrowser().get("/login/oauth/authorize"),
	} {
		wantFramers(t, name, got, "'none'")
		wantHeader(t, name, got, "Cache-Control", "no-store")
		wantHeader(t, name, got, "Access-Control-Allow-Origin", "")
	}
}

// wantFramers checks which sites may put a page in a frame, and the rest of its content security
// policy.
func wantFramers(t *testing.T, name string, got reply, framers string) {
	t.Helper()
	policy := got.header.Get("Content-Security-Policy")
	for _, want := range []string{"frame-ancestors " + framers, "default-src 'none'"} {
		if !slices.Contains(strings.Split(policy, "; "), want) {
			t.Errorf("%s: the Content-Security-Policy is %q, want %s", name, policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("%s: the Content-Security-Policy is %q, want nothing unsafe", name, policy)
	}
}

// TestDescriptions shows that an error_description contains only the characters of RFC 6749,
// section 5.2, even if it quotes the client.
func TestDescriptions(t *testing.T) {
	w := newWorld(t)
	b := w.newBank(t, nil)
	b.kid = "k\"\\é"
	refused := b.post(t, "/oauth/par", request(b.c)).json(t)
	c, _ := w.client(nil)
	sent := w.newBrowser().authorize(request(c, "scope", "openid \"\\é"))

	quoting := text(refused["error_description"])
	for name, description := range map[string]string{
		"a token endpoint": quoting,
		"a redirect":       sent.param("error_description"),
	} {
		isForbidden := func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }
		if description == "" || strings.ContainsFunc(description, isForbidden) {
			t.Errorf("%s says %q, want printable ASCII without quotes and backslashes", name, description)
		}
	}
	if !strings.Contains(quoting, "kid 'k'") {
		t.Errorf("the description is %q, want it to quote the kid", quoting)
	}
}
