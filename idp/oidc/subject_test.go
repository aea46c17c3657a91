package oidc_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
)

// pairwise registers a client with pairwise subjects and the redirect URI redirect.
func (w *world) pairwise(redirect string) idp.Client {
	w.t.Helper()
	c, _ := w.client(func(n *idp.Client) {
		n.SubjectType, n.AccessToken = idp.Pairwise, idp.JWTToken
		n.RedirectURIs, n.LogoutURIs = []string{redirect}, []string{redirect}
	})
	return c
}

// TestPairwise shows that the clients in one sector have the same identifiers for a subscriber and
// a login. Other sectors have different identifiers.
func TestPairwise(t *testing.T) {
	w := newWorld(t)
	app, sister := w.pairwise(callback), w.pairwise("https://app.example/sister")
	other := w.pairwise("https://other.example/cb")
	b := w.browser()
	seen := make(map[string]string) // sub by client
	sids := make(map[string]string) // sid by client
	var login string                // ID of the login
	for _, c := range []idp.Client{app, sister, other} {
		got := w.redeem(c, b.code(c)).json(t)
		id := idClaims(t, got)
		seen[c.ID], sids[c.ID] = text(id["sub"]), text(id["sid"])
		opened := wantPairwise(t, w, c, got, seen[c.ID], sids[c.ID])
		if login != "" && login != opened.SessionID {
			t.Errorf("two clients in one browser have the logins %s and %s, want one", login, opened.SessionID)
		}
		login = opened.SessionID

		silent := b.authorize(request(c, "prompt", "none", "id_token_hint", text(got["id_token"])))
		if silent.param("code") == "" {
			t.Errorf("the client's own ID token as a hint: %v, want a code", silent.location)
		}
		wantPairwiseLogout(t, w, c, login, seen[c.ID], sids[c.ID])
	}

	// Identifiers are shared only within a sector.
	if sids[app.ID] != sids[sister.ID] || sids[app.ID] == sids[other.ID] || sids[app.ID] == login {
		t.Errorf("sids %v of the login %s, want one for each sector", sids, login)
	}
	if seen[app.ID] != seen[sister.ID] || seen[app.ID] == seen[other.ID] {
		t.Errorf("subs %v, want one for each sector", seen)
	}

	bob := w.subscriber("bob@example.com")
	if w.idp.Subjects.SubjectFor(app, bob.ID) == seen[app.ID] ||
		w.idp.Subjects.SubscriberOf(other, seen[app.ID]) == w.ada.ID {
		t.Error("two subscribers share a sub, or a sub is valid in another sector")
	}
}

// wantPairwise checks that all tokens in got have a pairwise sub and sid. The provider must still
// be able to find the subscriber and the login. wantPairwise returns the opened access token.
func wantPairwise(t *testing.T, w *world, c idp.Client, got map[string]any, sub, sid string) fabric.Token {
	t.Helper()
	if raw, err := base64.RawURLEncoding.DecodeString(sub); err != nil || len(raw) != 16 ||
		uuid.UUID(raw).String() == w.ada.ID {
		t.Fatalf("the sub %q is not pairwise", sub)
	}

	access, info := payload(t, text(got["access_token"])), w.userinfo(text(got["access_token"]))
	if info.status != http.StatusOK || info.json(t)["sub"] != sub || access["sub"] != sub {
		t.Errorf("the ID token has the sub %q, the access token %v, userinfo %d %s", sub, access["sub"],
			info.status, info.body)
	}

	opened, err := w.idp.Tokens.Open(t.Context(), text(got["access_token"]))
	if err != nil || opened.SubscriberID != w.ada.ID {
		t.Errorf("the opened access token belongs to %q (error %v), want %q", opened.SubscriberID, err, w.ada.ID)
	}
	if login := w.idp.Subjects.SessionOf(c, sid); access["sid"] != sid || login != opened.SessionID {
		t.Errorf("the ID token has the sid %q, which decodes to %q; the access token has %v and belongs to the "+
			"login %q", sid, login, access["sid"], opened.SessionID)
	}
	return opened
}

// wantPairwiseLogout checks the identifiers in a logout token.
func wantPairwiseLogout(t *testing.T, w *world, c idp.Client, login, sub, sid string) {
	t.Helper()
	logout, err := w.idp.Tokens.LogoutToken(t.Context(), c.ID, w.ada.ID, login)
	must(t, err)
	if claims := payload(t, logout); claims["sid"] != sid || claims["sub"] != sub {
		t.Errorf("the logout token has the sid %v and the sub %v, want %q and %q",
			claims["sid"], claims["sub"], sid, sub)
	}
}

// TestPairwiseHint shows that a logout with a pairwise hint ends the login.
func TestPairwiseHint(t *testing.T) {
	w := newWorld(t)
	app := w.pairwise(callback)
	b := w.browser()
	got := w.redeem(app, b.code(app)).json(t)
	opened, err := w.idp.Tokens.Open(t.Context(), text(got["access_token"]))
	must(t, err)

	out := b.get("/oauth/logout?" + url.Values{"id_token_hint": {text(got["id_token"])},
		"post_logout_redirect_uri": {callback}}.Encode())
	if _, err := w.idp.Logins.Find(t.Context(), opened.SessionID); err == nil {
		t.Error("the login is still valid after a logout with a pairwise hint")
	}
	if out.location == nil || out.location.Scheme+"://"+out.location.Host+out.location.Path != callback {
		t.Errorf("logout with a pairwise hint: %d %s, want a redirect to %s", out.status, out.body, callback)
	}
}

// TestSectors shows which clients with pairwise subjects may be registered.
func TestSectors(t *testing.T) {
	w, at := newWorld(t), newPublisher(t)
	at.publish(http.StatusOK, []byte(`["https://app.example/cb","https://b.example/cb"]`))

	register := func(change func(*idp.Client)) error {
		n := idp.Client{
			ProjectID: w.project.ID, Type: idp.SPA, AccessToken: idp.JWTToken,
			RedirectURIs: []string{callback, "https://b.example/cb"},
			Metadata:     idp.Metadata{SubjectType: idp.Pairwise, SectorURI: at.url},
		}
		change(&n)
		_, _, err := w.idp.Clients.Create(t.Context(), n)
		return err
	}

	if err := register(func(*idp.Client) {}); err != nil {
		t.Errorf("a sector that lists the redirect URIs: %v", err)
	}

	for name, tt := range map[string]struct {
		param  string
		change func(*idp.Client)
	}{
		"a redirect URI that is not listed": {"sector_identifier_uri", func(n *idp.Client) {
			n.RedirectURIs = append(n.RedirectURIs, "https://c.example/cb")
		}},
		"two hosts and no sector": {"subject_type", func(n *idp.Client) { n.SectorURI = "" }},
		"no redirect URI and no sector": {"subject_type", func(n *idp.Client) {
			n.Type, n.RedirectURIs, n.SectorURI = idp.Service, nil, ""
		}},
		"a sector over HTTP": {"sector_identifier_uri", func(n *idp.Client) {
			n.SectorURI = "http://b.example/sector"
		}},
		"a sector on a private address": {"sector_identifier_uri", func(n *idp.Client) {
			n.SectorURI = "https://10.0.0.1/sector"
		}},
		"a sector for a client with public subjects": {"sector_identifier_uri", func(n *idp.Client) {
			n.SubjectType = idp.Public
		}},
		"an unknown subject type": {"subject_type", func(n *idp.Client) { n.SubjectType = "ephemeral" }},
		"tokens that reveal the subscriber": {"subject_type", func(n *idp.Client) {
			n.AccessToken = idp.FabricToken
		}},
	} {
		if err := register(tt.change); problem.First(err) == nil || problem.First(err).Param != tt.param {
			t.Errorf("%s: %v, want an error about %s", name, err, tt.param)
		}
	}

	// The sector document must be a list of limited size.
	for name, body := range map[string]string{"an object": `{"redirect_uris":[]}`, "empty": "",
		"too long": `["` + strings.Repeat("x", 65<<10) + `"]`} {
		at.publish(http.StatusOK, []byte(body))
		if err := register(func(*idp.Client) {}); problem.First(err) == nil ||
			problem.First(err).Param != "sector_identifier_uri" {
			t.Errorf("a sector document that is %s: %v, want an error about sector_identifier_uri", name, err)
		}
	}
}

// TestSignedUserinfo shows that userinfo can be signed with each algorithm, and that signed
// userinfo is not accepted as a token.
func TestSignedUserinfo(t *testing.T) {
	w := newWorld(t)
	var hint string
	for _, alg := range keys.Algorithms() {
		c, _ := w.client(func(n *idp.Client) { n.UserinfoAlg = alg })
		tokens := w.tokens(c, "scope", "openid email")

		got := w.userinfo(text(tokens["access_token"]))
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/jwt" ||
			got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %s, want a JWT that is not cached", alg, got.status, got.header, got.body)
			continue
		}

		claims := payload(t, got.body)
		if _, ok := w.idp.Ring.VerifyJWS(got.body, "JWT"); !ok || claims["iss"] != w.url+"/" ||
			claims["aud"] != c.ID || claims["sub"] != w.ada.ID || claims["email"] != email {
			t.Errorf("%s: userinfo %v, want signed claims for the client", alg, claims)
		}

		head, err := base64.RawURLEncoding.DecodeString(strings.SplitN(got.body, ".", 2)[0])
		if err != nil || !strings.Contains(string(head), `"alg":"`+string(alg)+`"`) {
			t.Errorf("%s: the header is %s, want this alg", alg, head)
		}
		hint = got.body
	}

	if _, ok := w.idp.Tokens.OpenIDHint(hint); ok {
		t.Error("signed userinfo is accepted as an ID token")
	}
	if _, err := w.idp.Tokens.Open(t.Context(), hint); err == nil {
		t.Error("signed userinfo is accepted as an access token")
	}
}
