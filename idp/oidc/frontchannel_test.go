package oidc_test

import (
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
)

var framed = regexp.MustCompile(`<iframe [^>]*src="([^"]+)"`)

// framesIn returns the URLs that page loads in frames.
func framesIn(page string) (urls []string) {
	for _, m := range framed.FindAllStringSubmatch(page, -1) {
		urls = append(urls, html.UnescapeString(m[1]))
	}
	return urls
}

// TestFrontchannelLogout shows that the page after a logout loads the logout URI of each app that
// used the login. It then leads to the app. The URI contains iss and the sid that the app has for
// the login.
func TestFrontchannelLogout(t *testing.T) {
	w := newWorld(t)
	front := func(uri string, more ...func(*idp.Client)) idp.Client {
		c, _ := w.client(func(n *idp.Client) {
			withLogout(n)
			n.FrontchannelLogoutURI, n.FrontchannelLogoutSession = uri, true
			for _, change := range more {
				change(n)
			}
		})
		return c
	}

	chat := front("https://app.example/bye")
	mail := front("https://app.example/bye?app=mail", func(n *idp.Client) {
		n.SubjectType, n.AccessToken = idp.Pairwise, idp.JWTToken
	})
	front("https://app.example/unused")
	plain, _ := w.client(withLogout)

	b := w.browser()
	tokens := make(map[string]map[string]any)
	for _, c := range []idp.Client{chat, mail, plain} {
		tokens[c.ID] = w.redeem(c, b.code(c)).json(t)
	}
	sidOf := func(c idp.Client) string { return text(idClaims(t, tokens[c.ID])["sid"]) }

	got := b.get("/oauth/logout?" + url.Values{"id_token_hint": {text(tokens[plain.ID]["id_token"])},
		"post_logout_redirect_uri": {goodbye}, "state": {"a&b"}}.Encode())
	const to = goodbye + "?state=a%26b"
	if got.status != 200 || got.header.Get("Refresh") != "6; url="+to || !strings.Contains(got.body, `href="`+to+`"`) {
		t.Errorf("logout: %d, Refresh %q, want a page that leads to %s", got.status, got.header.Get("Refresh"), to)
	}
	if csp := got.header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-src https:;") {
		t.Errorf("the page's policy is %q, want one that permits frames", csp)
	}

	frames := framesIn(got.body)
	slices.Sort(frames)
	iss := url.QueryEscape(w.url + "/")
	want := []string{"https://app.example/bye?app=mail&iss=" + iss + "&sid=" + sidOf(mail),
		"https://app.example/bye?iss=" + iss + "&sid=" + sidOf(chat)}
	if !slices.Equal(frames, want) || sidOf(chat) == sidOf(mail) {
		t.Errorf("the page loads %q, want %q", frames, want)
	}
	if b.signedIn(plain) {
		t.Error("the browser is still signed in")
	}
}

// TestFrontchannelWithoutRedirect shows that a confirmed logout also loads the URIs. A logout that
// ends no login loads none.
func TestFrontchannelWithoutRedirect(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) {
		withLogout(n)
		n.FrontchannelLogoutURI = "https://app.example/bye"
	})
	b := w.browser()
	w.redeem(c, b.code(c))

	got := b.submit(b.get("/logout"))
	if len(framesIn(got.body)) != 1 || got.header.Get("Refresh") != "" {
		t.Errorf("signing out: frames %q, Refresh %q, want one frame", framesIn(got.body), got.header.Get("Refresh"))
	}

	again := b.get("/oauth/logout?" + url.Values{"client_id": {c.ID}, "post_logout_redirect_uri": {goodbye}}.Encode())
	if again.location == nil || again.location.String() != goodbye {
		t.Errorf("signing out again: %d to %v, want a redirect", again.status, again.location)
	}
}
