package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

type family struct {
	ID          string  `json:"id"`
	ClientID    *string `json:"client_id"`
	RefreshedAt *string `json:"refreshed_at"`
	Refreshes   int     `json:"refreshes"`
	Revoked     bool    `json:"revoked"`
}

type loginBody struct {
	ID        string  `json:"id"`
	EndedAt   *string `json:"ended_at"`
	IPAddress string  `json:"ip_address"`
	Grants    []struct {
		ClientName string   `json:"client_name"`
		Scope      []string `json:"scope"`
		RevokedAt  *string  `json:"revoked_at"`
	} `json:"grants"`
}

func (w *world) families(id string) []family {
	w.t.Helper()
	return as[listed[family]](w.t, w.call(w.basic(), "GET", subscribers+"/"+id+"/tokens", "")).Data
}

// wantRevoked checks that all access and refresh tokens are refused if dead is true. If dead is
// false, it checks only that the access tokens are accepted.
func (w *world) wantRevoked(dead bool, all ...tokens) {
	w.t.Helper()
	for i, got := range all {
		status, fault := http.StatusOK, ""
		if dead {
			status, fault = http.StatusUnauthorized, "refresh_token:token_invalid"
		}
		w.wantInfo(got.Token, status)
		if dead {
			if f := w.refused(w.basic(), got.RefreshToken); f != fault {
				w.t.Errorf("refreshing with token %d: got %s, want %s", i, f, fault)
			}
		}
	}
}

func TestRefreshTokensOfSubscriber(t *testing.T) {
	w := newWorld(t)
	app := w.application(w.project.ID)
	one, other := w.tokens(`{"reference":"ada","application_id":"`+app.ID+`"}`), w.tokens(`{"reference":"ada"}`)
	bob := w.refresh(w.tokens(`{"reference":"bob"}`).RefreshToken)
	if all := w.families(one.SubscriberID); len(all) != 0 {
		t.Errorf("refresh tokens before any refresh: got %+v, want none", all)
	}

	one.RefreshToken = w.refresh(w.refresh(one.RefreshToken).RefreshToken).RefreshToken
	all := w.families(one.SubscriberID)
	if len(all) != 1 || all[0].Refreshes != 2 || all[0].RefreshedAt == nil || all[0].Revoked ||
		all[0].ClientID == nil || *all[0].ClientID != app.ID {
		t.Fatalf("refresh tokens after two refreshes: got %+v, want one family with two refreshes", all)
	}

	path := subscribers + "/" + one.SubscriberID + "/tokens/" + all[0].ID
	for _, id := range []string{"nonsense", w.project.ID, all[0].ID} {
		foreign := strings.Replace(path, all[0].ID, id, 1)
		if r := w.call(w.stranger(), "DELETE", foreign, ""); r.status != http.StatusNotFound {
			t.Errorf("DELETE of refresh token %s by another project: got %d, want 404", id, r.status)
		}
	}

	bobs := subscribers + "/" + w.open(bob.Token, fabric.SAT).SubscriberID
	if r := w.call(w.basic(), "DELETE", bobs+"/tokens/"+all[0].ID, ""); r.status != http.StatusNotFound {
		t.Errorf("DELETE of another subscriber's refresh token: got %d, want 404", r.status)
	}

	w.wantRevoked(false, one)
	if r := w.call(w.basic(), "DELETE", path, ""); r.status != http.StatusNoContent {
		t.Fatalf("DELETE %s: got %d %s, want 204", path, r.status, r.text)
	}

	w.wantRevoked(true, one)
	w.wantRevoked(false, other, bob)
	if all := w.families(one.SubscriberID); len(all) != 1 || !all[0].Revoked {
		t.Errorf("refresh tokens after the revocation: got %+v, want one revoked family", all)
	}
}

// TestRevokeSubscriber shows that revoking all tokens of a subscriber includes refresh tokens that
// were never used, which are not listed, and the invites and guest tokens that the subscriber
// issued. A guest token that the backend issued remains valid.
func TestRevokeSubscriber(t *testing.T) {
	w := newWorld(t)
	one, two, bob := w.tokens(`{"reference":"ada"}`), w.tokens(`{"reference":"ada"}`), w.tokens(`{"reference":"bob"}`)
	two = w.refresh(two.RefreshToken)
	id := w.address(one.Token).ID
	invite := w.invite(one.Token, id)
	guest := as[tokens](t, w.call(bearer(one.Token), "POST", guests, allowing(id)))
	free := w.guest(id) // issued by the backend
	all := subscribers + "/" + one.SubscriberID + "/tokens"
	for _, auth := range []authorization{w.stranger(), bearer(one.Token)} {
		if r := w.call(auth, "DELETE", all, ""); r.status != http.StatusNotFound &&
			r.status != http.StatusUnauthorized {
			t.Errorf("DELETE %s by others: got %d, want 401 or 404", all, r.status)
		}
	}

	w.wantInfo(one.Token, http.StatusOK)
	if r := w.call(w.basic(), "DELETE", all, ""); r.status != http.StatusNoContent {
		t.Fatalf("DELETE %s: got %d %s, want 204", all, r.status, r.text)
	}

	w.wantRevoked(true, one, two)
	w.wantRevoked(false, bob)
	for _, tt := range []struct {
		name, token string
		want        int
	}{
		{"an invite", invite, http.StatusUnauthorized},
		{"the subscriber's guest token", guest.Token, http.StatusUnauthorized},
		{"the backend's guest token", free.Token, http.StatusOK},
	} {
		if r := w.call(bearer(tt.token), "GET", addresses, ""); r.status != tt.want {
			t.Errorf("%s after the revocation: got %d, want %d", tt.name, r.status, tt.want)
		}
	}

	if f := w.refused(w.basic(), guest.RefreshToken); f != "refresh_token:token_invalid" {
		t.Errorf("refreshing with the subscriber's guest token: got %s, want token_invalid", f)
	}
	if families := w.families(one.SubscriberID); len(families) != 1 || !families[0].Revoked {
		t.Errorf("the subscriber's refresh tokens: got %+v, want one revoked family", families)
	}

	w.wantInfo(w.tokens(`{"reference":"ada"}`).Token, http.StatusOK) // new tokens are valid immediately
	if r := w.call(w.basic(), "DELETE", subscribers+"/"+w.project.ID+"/tokens", ""); r.status != http.StatusNotFound {
		t.Errorf("revoking the tokens of an unknown subscriber: got %d, want 404", r.status)
	}
}

func TestLoginsOfSubscriber(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	app := w.application(w.project.ID)
	ada, bob := w.tokens(`{"reference":"ada"}`), w.tokens(`{"reference":"bob"}`)
	hash := must[fabric.Subscriber](t)(w.fabric.Subscribers.Find(ctx, w.project.ID, ada.SubscriberID)).PasswordHash
	signIn := func(subscriber, sid string) {
		s := idp.Login{ID: sid, ProjectID: w.project.ID, SubscriberID: subscriber, AuthTime: w.now(),
			AMR: []string{"pwd"}, Address: "192.0.2.1", Expires: w.now().Add(time.Hour)}
		g := idp.Grant{
			ID: sid, ProjectID: w.project.ID, ClientID: app.ID, SubscriberID: subscriber, SessionID: sid,
			Scope:   []string{"openid"},
			Created: w.now(), IdleUntil: w.now().Add(time.Hour), Expires: w.now().Add(time.Hour),
		}
		if err := w.rows.CreateLogin(ctx, s, hash); err != nil {
			t.Fatal(err)
		}
		code := idp.RedeemedCode{Hash: sid, GrantID: sid, ClientID: app.ID, Expires: w.now().Add(time.Hour)}
		if err := w.rows.RedeemCode(ctx, code, g); err != nil {
			t.Fatal(err)
		}
	}

	const (
		first  = "0199a000-0000-7000-8000-000000000001"
		second = "0199a000-0000-7000-8000-000000000002"
		bobs   = "0199a000-0000-7000-8000-000000000003"
	)
	signIn(ada.SubscriberID, first)
	signIn(ada.SubscriberID, second)
	signIn(bob.SubscriberID, bobs)
	path := subscribers + "/" + ada.SubscriberID + "/sessions"
	list := func() []loginBody {
		t.Helper()
		return as[listed[loginBody]](t, w.call(w.basic(), "GET", path, "")).Data
	}

	got := list()
	if len(got) != 2 || got[0].ID != second || got[1].ID != first || got[0].EndedAt != nil ||
		got[0].IPAddress != "192.0.2.1" ||
		len(got[0].Grants) != 1 || got[0].Grants[0].ClientName != "Dialer" || got[0].Grants[0].RevokedAt != nil {
		t.Fatalf("GET %s: got %+v, want both logins, the newer first", path, got)
	}
	if r := w.call(w.stranger(), "GET", path, ""); r.status != http.StatusNotFound {
		t.Errorf("listing logins as another project: got %d, want 404", r.status)
	}

	for _, sid := range []string{bobs, "nonsense", "0199a000-0000-7000-8000-000000000009"} {
		if r := w.call(w.basic(), "DELETE", path+"/"+sid, ""); r.status != http.StatusNotFound {
			t.Errorf("DELETE of the login %s: got %d, want 404", sid, r.status)
		}
	}

	if r := w.call(w.stranger(), "DELETE", path+"/"+first, ""); r.status != http.StatusNotFound || len(w.ended) != 0 {
		t.Errorf("DELETE of a login by another project: got %d, ended %v, want 404 and none", r.status, w.ended)
	}
	if r := w.call(w.basic(), "DELETE", path+"/"+first, ""); r.status != http.StatusNoContent ||
		!w.ended[first] || len(w.ended) != 1 {
		t.Errorf("DELETE of a login: got %d %s, ended %v, want 204 and this login", r.status, r.text, w.ended)
	}
	r := w.call(w.basic(), "DELETE", subscribers+"/"+ada.SubscriberID+"/tokens", "")
	if r.status != http.StatusNoContent {
		t.Fatalf("revoking all tokens: got %d %s, want 204", r.status, r.text)
	}

	for _, l := range list() {
		if l.EndedAt == nil || l.Grants[0].RevokedAt == nil {
			t.Errorf("login after all tokens were revoked: got %+v, want it ended and its grant revoked", l)
		}
	}
}

func TestDevicesAndPresenceOfSubscriber(t *testing.T) {
	w := newWorld(t)
	ada := w.tokens(`{"reference":"ada"}`)
	r := w.call(bearer(ada.Token), "POST", "/subscriber/devices",
		`{"device_type":"iOS","device_token":"push-secret","device_name":"phone"}`)
	made := as[struct{ ID, Push string }](t, r)
	path := subscribers + "/" + ada.SubscriberID
	r = w.call(w.basic(), "GET", path+"/devices", "")
	if r.status != http.StatusOK || !strings.Contains(r.text, made.ID) ||
		strings.Contains(r.text, "push-secret") || strings.Contains(r.text, "key") {
		t.Errorf("devices: got %d %s, want them without tokens and keys", r.status, r.text)
	}

	for _, op := range [][2]string{{"GET", "/devices"}, {"DELETE", "/devices/" + made.ID}, {"GET", "/presence"}} {
		if r := w.call(w.stranger(), op[0], path+op[1], ""); r.status != http.StatusNotFound {
			t.Errorf("%s %s by another project: got %d, want 404", op[0], op[1], r.status)
		}
	}

	if r := w.call(w.basic(), "DELETE", path+"/devices/"+made.ID, ""); r.status != http.StatusNoContent {
		t.Errorf("DELETE of a device: got %d, want 204", r.status)
	}
	if r := w.call(w.basic(), "DELETE", path+"/devices/"+made.ID, ""); r.status != http.StatusNotFound {
		t.Errorf("DELETE of a deleted device: got %d, want 404", r.status)
	}
	r = w.call(w.basic(), "GET", path+"/presence", "")
	if strings.TrimSpace(r.text) != `{"online":false,"since":null,"sockets":0}` {
		t.Errorf("presence: got %d %s, want offline", r.status, r.text)
	}
}

// TestRevokeToken shows that a backend can revoke the SATs, refresh tokens, guest tokens, invites
// and embed keys of its project. API keys and service tokens are refused.
func TestRevokeToken(t *testing.T) {
	w := newWorld(t)
	const path = "/api/fabric/tokens/revoke"
	one, two := w.tokens(`{"reference":"ada"}`), w.tokens(`{"reference":"ada"}`)
	id := w.address(one.Token).ID
	guest, invite := w.guest(id), w.invite(one.Token, id)
	_, embed, err := w.fabric.EmbedKeys.Create(t.Context(), w.project.ID, id, "")
	if err != nil {
		t.Fatal(err)
	}

	all := map[string]string{"a SAT": one.Token, "a refresh token": two.RefreshToken,
		"a guest token": guest.Token, "an invite": invite, "an embed key": embed}
	for name, token := range all {
		if got := w.call(w.stranger(), "POST", path, `{"token":"`+token+`"}`).faults(t); got != "token:token_invalid" {
			t.Errorf("revoking %s of another project: got %s, want token:token_invalid", name, got)
		}
	}

	service := must[string](t)(w.fabric.Tokens.Seal(
		fabric.Token{Kind: fabric.Service, ProjectID: w.project.ID, Scope: []string{"Voice"},
			ExpiresAt: w.now().Add(time.Hour)}))
	for body, want := range map[string]string{
		`{}`: "token:missing_required_parameter", `{"token":5}`: "token:invalid_parameter",
		`{"token":"x"}`:             "token:token_invalid",
		`{"token":"` + w.key + `"}`: "token:token_invalid", `{"token":"` + service + `"}`: "token:token_invalid",
	} {
		if got := w.call(w.basic(), "POST", path, body).faults(t); got != want {
			t.Errorf("POST %.40s: got %s, want %s", body, got, want)
		}
	}

	alive := func() (n int) {
		for _, token := range []string{one.Token, guest.Token, invite} {
			if r := w.call(bearer(token), "GET", addresses, ""); r.status == http.StatusOK {
				n++
			}
		}
		if r := w.call(bearer(two.Token), "GET", "/subscriber/info",
			""); r.status == http.StatusOK { // issued together with the refresh token
			n++
		}
		if r := w.call(nobody, "POST", embeds, `{"token":"`+embed+`"}`); r.status == http.StatusCreated {
			n++
		}
		return n
	}

	want := len(all)
	for name, token := range all {
		if n := alive(); n != want {
			t.Fatalf("before revoking %s, %d tokens are valid, want %d", name, n, want)
		}
		for range 2 { // revoking twice succeeds
			if r := w.call(w.basic(), "POST", path, `{"token":"`+token+`"}`); r.status != http.StatusNoContent {
				t.Errorf("revoking %s: got %d %s, want 204", name, r.status, r.text)
			}
		}
		want--
	}

	if n := alive(); n != 0 {
		t.Errorf("%d tokens are valid at the end, want none", n)
	}
}

// TestTokensOfDeadTokens shows that tokens issued from a revoked token are refused as well, even if
// the issuing node had not yet read the revocation.
func TestTokensOfDeadTokens(t *testing.T) {
	ctx := context.Background()
	password := "another horse"
	for name, end := range map[string]func(w *world, id string) error{
		"all tokens are revoked": func(w *world, id string) error {
			return w.fabric.Subscribers.Revoke(ctx, w.project.ID, id)
		},
		"the password is changed": func(w *world, id string) error {
			_, err := w.fabric.Subscribers.Update(ctx, w.project.ID, id, fabric.SubscriberInput{Password: &password})
			return err
		},
	} {
		w := newWorld(t)
		got := w.tokens(`{"reference":"ada","password":"correct horse"}`)
		w.sync()
		sat, a := w.open(got.Token, fabric.SAT), w.address(got.Token)
		if err := end(w, got.SubscriberID); err != nil {
			t.Fatal(err)
		}

		deaf := w.deafNode()
		by := fabric.Issuer{ProjectID: w.project.ID, SAT: &sat}
		guest := must[fabric.TokenPair](t)(
			deaf.Tokens.IssueGuest(ctx, by, fabric.GuestTokenInput{AllowedAddresses: []string{a.ID}}))
		invite := must[string](t)(deaf.Tokens.IssueInvite(ctx, sat, fabric.InviteInput{AddressID: a.ID}))
		by = fabric.Issuer{ProjectID: w.project.ID}
		next := must[fabric.TokenPair](t)(deaf.Tokens.Refresh(ctx, by, got.RefreshToken))

		w.sync()
		for what, token := range map[string]string{"a guest token": guest.Access, "an invite": invite,
			"a SAT": next.Access} {
			if r := w.call(bearer(token), "GET", addresses, ""); r.status != http.StatusUnauthorized {
				t.Errorf("after %s, %s issued from a dead token: got %d, want 401", name, what, r.status)
			}
		}
		for what, token := range map[string]string{"a guest's": guest.Refresh, "the subscriber's": next.Refresh} {
			if f := w.refused(w.basic(), token); f != "refresh_token:token_invalid" {
				t.Errorf("after %s, %s refresh token issued from a dead token: got %s, want token_invalid",
					name, what, f)
			}
		}
		w.wantInfo(w.tokens(`{"reference":"ada"}`).Token, http.StatusOK)
	}
}

func TestConsentsOfSubscriber(t *testing.T) {
	w := newWorld(t)
	app := w.application(w.project.ID)
	ada, bob := w.tokens(`{"reference":"ada"}`), w.tokens(`{"reference":"bob"}`)
	scope := []string{"openid", "Voice"}
	if err := w.rows.AddConsent(context.Background(), ada.SubscriberID, app.ID, scope, w.now()); err != nil {
		t.Fatal(err)
	}

	path := func(id string) string { return subscribers + "/" + id + "/consents" }
	type consent struct {
		ClientID   string    `json:"client_id"`
		ClientName string    `json:"client_name"`
		Scope      []string  `json:"scope"`
		UpdatedAt  time.Time `json:"updated_at"`
	}

	list := func(id string) []consent { return as[listed[consent]](t, w.call(w.basic(), "GET", path(id), "")).Data }
	if got := list(ada.SubscriberID); len(got) != 1 || got[0].ClientID != app.ID ||
		got[0].ClientName != "Dialer" || len(got[0].Scope) != 2 || got[0].UpdatedAt.IsZero() {
		t.Errorf("GET %s: got %+v, want one consent with two scopes", path(ada.SubscriberID), got)
	}
	if got := list(bob.SubscriberID); len(got) != 0 {
		t.Errorf("consents of a subscriber without any: got %+v, want none", got)
	}

	for _, tt := range []struct {
		by         authorization
		id, client string
	}{
		{w.stranger(), ada.SubscriberID, app.ID}, {w.basic(), bob.SubscriberID, app.ID},
		{w.basic(), ada.SubscriberID, "nonsense"},
		{w.basic(), ada.SubscriberID, w.project.ID}, {w.basic(), w.project.ID, app.ID},
	} {
		if r := w.call(tt.by, "DELETE", path(tt.id)+"/"+tt.client, ""); r.status != http.StatusNotFound ||
			len(w.ended) != 0 {
			t.Errorf("DELETE %s/%s: got %d, want 404", path(tt.id), tt.client, r.status)
		}
	}

	if r := w.call(w.stranger(), "GET", path(ada.SubscriberID), ""); r.status != http.StatusNotFound {
		t.Errorf("listing consents as another project: got %d, want 404", r.status)
	}
	r := w.call(w.basic(), "DELETE", path(ada.SubscriberID)+"/"+strings.ToUpper(app.ID), "")
	if r.status != http.StatusNoContent || !w.ended[app.ID] {
		t.Errorf("DELETE of a consent: got %d %s, want 204, with the consent revoked", r.status, r.text)
	}
}
