package oidc_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
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
	b := w.newBrowser()
	subs := make(map[string]string) // by client
	sids := make(map[string]string) // by client
	var login string                // ID of the login
	for _, c := range []idp.Client{app, sister, other} {
		tokens := w.redeem(c, b.code(c)).json(t)
		id := idClaims(t, tokens)
		sub, sid := text(id["sub"]), text(id["sid"])
		subs[c.ID], sids[c.ID] = sub, sid

		opened := wantPairwise(t, w, c, tokens, sub, sid)
		if login != "" && login != opened.SessionID {
			t.Errorf("two clients in one browser have the logins %s and %s, want one", login, opened.SessionID)
		}
		login = opened.SessionID

		silent := b.authorize(request(c, "prompt", "none", "id_token_hint", text(tokens["id_token"])))
		wantCode(t, "the client's own ID token as a hint", silent)
		wantPairwiseLogout(t, w, c, login, sub, sid)
	}

	// Identifiers are shared only within a sector.
	for name, ids := range map[string]map[string]string{"sub": subs, "sid": sids} {
		if ids[sister.ID] != ids[app.ID] {
			t.Errorf("the %s of another client in the sector is %q, want %q", name, ids[sister.ID], ids[app.ID])
		}
		if ids[other.ID] == ids[app.ID] {
			t.Errorf("the %s in another sector is also %q, want a different one", name, ids[app.ID])
		}
	}
	if sids[app.ID] == login {
		t.Errorf("the sid is the ID of the login %s, want another value", login)
	}

	bob := w.subscriber("bob@example.com")
	if sub := w.idp.Subjects.SubjectFor(app, bob.ID); sub == subs[app.ID] {
		t.Errorf("two subscribers have the sub %s", sub)
	}
	if found := w.idp.Subjects.SubscriberOf(other, subs[app.ID]); found == w.ada.ID {
		t.Error("the sub of a sector is valid in another sector")
	}
}

// wantPairwise checks that all tokens have a pairwise sub and sid. The provider must still be able
// to find the subscriber and the login. wantPairwise returns the opened access token.
func wantPairwise(t *testing.T, w *world, c idp.Client, tokens map[string]any, sub, sid string) fabric.Token {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(sub)
	if err != nil || len(raw) != 16 {
		t.Fatalf("the sub %q is not 16 bytes in base64url", sub)
	}
	if uuid.UUID(raw).String() == w.ada.ID {
		t.Fatalf("the sub %q encodes the ID of the subscriber", sub)
	}

	token := text(tokens["access_token"])
	access := payload(t, token)
	if access["sub"] != sub {
		t.Errorf("the access token has the sub %v, want %q as in the ID token", access["sub"], sub)
	}
	if access["sid"] != sid {
		t.Errorf("the access token has the sid %v, want %q as in the ID token", access["sid"], sid)
	}
	info := w.userinfo(token)
	wantStatus(t, "userinfo", info, http.StatusOK)
	if got := info.json(t)["sub"]; got != sub {
		t.Errorf("userinfo has the sub %v, want %q as in the ID token", got, sub)
	}

	opened, err := w.idp.Tokens.Open(t.Context(), token)
	must(t, err)
	if opened.SubscriberID != w.ada.ID {
		t.Errorf("the opened access token belongs to %q, want %q", opened.SubscriberID, w.ada.ID)
	}
	if login := w.idp.Subjects.SessionOf(c, sid); login != opened.SessionID {
		t.Errorf("the sid belongs to the login %q, want %q, as for the access token", login, opened.SessionID)
	}
	return opened
}

// wantPairwiseLogout checks the identifiers in a logout token.
func wantPairwiseLogout(t *testing.T, w *world, c idp.Client, login, sub, sid string) {
	t.Helper()
	logout, err := w.idp.Tokens.LogoutToken(t.Context(), c.ID, w.ada.ID, login)
	must(t, err)
	claims := payload(t, logout)
	if claims["sid"] != sid {
		t.Errorf("the logout token has the sid %v, want %q", claims["sid"], sid)
	}
	if claims["sub"] != sub {
		t.Errorf("the logout token has the sub %v, want %q", claims["sub"], sub)
	}
}

// TestPairwiseHint shows that a logout with a pairwise hint ends the login.
func TestPairwiseHint(t *testing.T) {
	w := newWorld(t)
	app := w.pairwise(callback)
	b := w.newBrowser()
	tokens := w.redeem(app, b.code(app)).json(t)
	opened, err := w.idp.Tokens.Open(t.Context(), text(tokens["access_token"]))
	must(t, err)

	got := b.endSession("id_token_hint", text(tokens["id_token"]), "post_logout_redirect_uri", callback)
	wantRedirect(t, "a logout with a pairwise hint", got, callback)
	if _, err := w.idp.Logins.Find(t.Context(), opened.SessionID); err == nil {
		t.Error("the login is still valid after a logout with a pairwise hint")
	}
}

// TestSectors shows which clients with pairwise subjects may be registered.
func TestSectors(t *testing.T) {
	w, sector := newWorld(t), newPublisher(t)
	sector.publish(http.StatusOK, []byte(`["https://app.example/cb","https://b.example/cb"]`))

	register := func(change func(*idp.Client)) error {
		n := idp.Client{
			ProjectID:    w.project.ID,
			Type:         idp.SPA,
			AccessToken:  idp.JWTToken,
			RedirectURIs: []string{callback, "https://b.example/cb"},
			Metadata:     idp.Metadata{SubjectType: idp.Pairwise, SectorURI: sector.url},
		}
		if change != nil {
			change(&n)
		}
		_, _, err := w.idp.Clients.Create(t.Context(), n)
		return err
	}

	if err := register(nil); err != nil {
		t.Errorf("a sector that lists the redirect URIs: %v", err)
	}

	for name, tt := range map[string]struct {
		change    func(*idp.Client)
		wantParam string
	}{
		"a redirect URI that is not listed": {
			change:    func(n *idp.Client) { n.RedirectURIs = append(n.RedirectURIs, "https://c.example/cb") },
			wantParam: "sector_identifier_uri",
		},
		"two hosts and no sector": {
			change:    func(n *idp.Client) { n.SectorURI = "" },
			wantParam: "subject_type",
		},
		"no redirect URI and no sector": {
			change:    func(n *idp.Client) { n.Type, n.RedirectURIs, n.SectorURI = idp.Service, nil, "" },
			wantParam: "subject_type",
		},
		"a sector over HTTP": {
			change:    func(n *idp.Client) { n.SectorURI = "http://b.example/sector" },
			wantParam: "sector_identifier_uri",
		},
		"a sector on a private address": {
			change:    func(n *idp.Client) { n.SectorURI = "https://10.0.0.1/sector" },
			wantParam: "sector_identifier_uri",
		},
		"a sector for a client with public subjects": {
			change:    func(n *idp.Client) { n.SubjectType = idp.Public },
			wantParam: "sector_identifier_uri",
		},
		"an unknown subject type": {
			change:    func(n *idp.Client) { n.SubjectType = "ephemeral" },
			wantParam: "subject_type",
		},
		"tokens that reveal the subscriber": {
			change:    func(n *idp.Client) { n.AccessToken = idp.FabricToken },
			wantParam: "subject_type",
		},
	} {
		wantProblem(t, name, register(tt.change), tt.wantParam)
	}

	// The sector document must be a list of limited size.
	for name, body := range map[string]string{
		"an object": `{"redirect_uris":[]}`,
		"empty":     "",
		"too long":  `["` + strings.Repeat("x", 65<<10) + `"]`,
	} {
		sector.publish(http.StatusOK, []byte(body))
		wantProblem(t, "a sector document that is "+name, register(nil), "sector_identifier_uri")
	}
}

// TestSignedUserinfo shows that userinfo can be signed with each algorithm, and that signed
// userinfo is not accepted as a token.
func TestSignedUserinfo(t *testing.T) {
	w := newWorld(t)
	var signed string
	for _, alg := range keys.Algorithms() {
		c, _ := w.client(func(n *idp.Client) { n.UserinfoAlg = alg })
		tokens := w.tokens(c, "scope", "openid email")
		got := w.userinfo(text(tokens["access_token"]))
		wantStatus(t, string(alg), got, http.StatusOK)
		wantHeader(t, string(alg), got, "Content-Type", "application/jwt")
		wantHeader(t, string(alg), got, "Cache-Control", "no-store")

		signed = got.body
		if used := headerOf(t, signed)["alg"]; used != string(alg) {
			t.Errorf("userinfo is signed with %v, want %s", used, alg)
		}
		if _, ok := w.idp.Ring.VerifyJWS(signed, "JWT"); !ok {
			t.Errorf("%s: the signature of userinfo is invalid", alg)
		}
		claims := payload(t, signed)
		for name, want := range map[string]string{
			"iss": w.url + "/", "aud": c.ID, "sub": w.ada.ID, "email": email,
		} {
			if claims[name] != want {
				t.Errorf("%s: the %s in userinfo is %v, want %s", alg, name, claims[name], want)
			}
		}
	}

	if _, ok := w.idp.Tokens.OpenIDHint(signed); ok {
		t.Error("signed userinfo is accepted as an ID token")
	}
	if _, err := w.idp.Tokens.Open(t.Context(), signed); err == nil {
		t.Error("signed userinfo is accepted as an access token")
	}
}
