package oidc_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
)

var frameSource = regexp.MustCompile(`<iframe [^>]*src="([^"]+)"`)

// framesIn returns the URLs that page loads in frames.
func framesIn(page string) (urls []string) {
	for _, m := range frameSource.FindAllStringSubmatch(page, -1) {
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

	b := w.newBrowser()
	tokens := make(map[string]map[string]any)
	for _, c := range []idp.Client{chat, mail, plain} {
		tokens[c.ID] = w.redeem(c, b.code(c)).json(t)
	}
	sidOf := func(c idp.Client) string { return text(idClaims(t, tokens[c.ID])["sid"]) }

	hint := text(tokens[plain.ID]["id_token"])
	got := b.endSession("id_token_hint", hint, "post_logout_redirect_uri", goodbye, "state", "a&b")
	const target = goodbye + "?state=a%26b"
	wantStatus(t, "the logout", got, http.StatusOK)
	wantHeader(t, "the logout", got, "Refresh", "6; url="+target)
	wantText(t, "the logout", got, `href="`+target+`"`)
	if policy := got.header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-src https:;") {
		t.Errorf("the page's policy is %q, want one that permits frames", policy)
	}

	if sidOf(chat) == sidOf(mail) {
		t.Errorf("both apps have the sid %s, want different ones", sidOf(chat))
	}
	iss := url.QueryEscape(w.url + "/")
	want := []string{
		"https://app.example/bye?app=mail&iss=" + iss + "&sid=" + sidOf(mail),
		"https://app.example/bye?iss=" + iss + "&sid=" + sidOf(chat),
	}
	if frames := slices.Sorted(slices.Values(framesIn(got.body))); !slices.Equal(frames, want) {
		t.Errorf("the page loads %q, want %q", frames, want)
	}
	wantSignedIn(t, "the browser after the logout", b, plain, false)
}

// TestFrontchannelWithoutRedirect shows that the page after a logout that the person confirmed also
// loads the logout URIs. If a logout ends no login, no URI is loaded.
func TestFrontchannelWithoutRedirect(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) {
		withLogout(n)
		n.FrontchannelLogoutURI = "https://app.example/bye"
	})
	b := w.newBrowser()
	w.redeem(c, b.code(c))

	got := b.submit(b.get("/logout"))
	wantHeader(t, "signing out", got, "Refresh", "")
	if frames := framesIn(got.body); len(frames) != 1 {
		t.Errorf("signing out loads %q, want one frame", frames)
	}

	again := b.endSession("client_id", c.ID, "post_logout_redirect_uri", goodbye)
	wantRedirect(t, "signing out again", again, goodbye)
}
