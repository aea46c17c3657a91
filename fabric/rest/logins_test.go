package rest_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/idp"
)

const (
	firstLogin  = "0199a000-0000-7000-8000-000000000001"
	secondLogin = "0199a000-0000-7000-8000-000000000002"
)

type loginBody struct {
	ID        string      `json:"id"`
	EndedAt   *string     `json:"ended_at"`
	IPAddress string      `json:"ip_address"`
	Grants    []grantBody `json:"grants"`
}

type grantBody struct {
	ClientName string   `json:"client_name"`
	Scope      []string `json:"scope"`
	RevokedAt  *string  `json:"revoked_at"`
}

// signIn records a login of a subscriber in which an OAuth client received tokens.
func (w *world) signIn(clientID, subscriberID, sid string) {
	w.t.Helper()
	ctx := w.t.Context()
	subscriber, err := w.fabric.Subscribers.Find(ctx, w.project.ID, subscriberID)
	if err != nil {
		w.t.Fatal(err)
	}
	login := idp.Login{
		ID:           sid,
		ProjectID:    w.project.ID,
		SubscriberID: subscriberID,
		AuthTime:     w.now(),
		AMR:          []string{"pwd"},
		Address:      "192.0.2.1",
		Expires:      w.now().Add(time.Hour),
	}
	if err := w.rows.CreateLogin(ctx, login, subscriber.PasswordHash); err != nil {
		w.t.Fatal(err)
	}

	grant := idp.Grant{
		ID:           sid,
		ProjectID:    w.project.ID,
		ClientID:     clientID,
		SubscriberID: subscriberID,
		SessionID:    sid,
		Scope:        []string{"openid"},
		Created:      w.now(),
		IdleUntil:    w.now().Add(time.Hour),
		Expires:      w.now().Add(time.Hour),
	}
	code := idp.RedeemedCode{Hash: sid, GrantID: sid, ClientID: clientID, Expires: w.now().Add(time.Hour)}
	if err := w.rows.RedeemCode(ctx, code, grant); err != nil {
		w.t.Fatal(err)
	}
}

// logins lists the logins at a path.
func (w *world) logins(path string) []loginBody {
	w.t.Helper()
	return as[listed[loginBody]](w.t, w.call(w.basic(), "GET", path, "")).Data
}

// wantEnded fails the test unless the logins that have ended are exactly these.
func (w *world) wantEnded(when string, sids ...string) {
	w.t.Helper()
	got := slices.Sorted(maps.Keys(w.ended))
	if !slices.Equal(got, sids) {
		w.t.Errorf("%s, the logins %v have ended, want %v", when, got, sids)
	}
}

func TestLoginsOfSubscriber(t *testing.T) {
	w := newWorld(t)
	app := w.application(w.project.ID)
	ada := w.tokens(`{"reference":"ada"}`).SubscriberID
	bob := w.tokens(`{"reference":"bob"}`).SubscriberID
	const bobs = "0199a000-0000-7000-8000-000000000003"
	w.signIn(app.ID, ada, firstLogin)
	w.signIn(app.ID, ada, secondLogin)
	w.signIn(app.ID, bob, bobs)

	path := subscribers + "/" + ada + "/sessions"
	grants := []grantBody{{ClientName: "Dialer", Scope: []string{"openid"}}}
	want := []loginBody{
		{ID: secondLogin, IPAddress: "192.0.2.1", Grants: grants},
		{ID: firstLogin, IPAddress: "192.0.2.1", Grants: grants},
	}
	if diff := cmp.Diff(want, w.logins(path)); diff != "" {
		t.Fatalf("GET (-want +got):\n%s", diff)
	}
	r := w.call(w.stranger(), "GET", path, "")
	r.wantStatus(t, "GET by another project", http.StatusNotFound)

	for _, sid := range []string{bobs, "nonsense", "0199a000-0000-7000-8000-000000000009"} {
		r := w.call(w.basic(), "DELETE", path+"/"+sid, "")
		r.wantStatus(t, "DELETE of the login "+sid, http.StatusNotFound)
	}
	r = w.call(w.stranger(), "DELETE", path+"/"+firstLogin, "")
	r.wantStatus(t, "DELETE by another project", http.StatusNotFound)
	w.wantEnded("after the refused requests")
	r = w.call(w.basic(), "DELETE", path+"/"+firstLogin, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	w.wantEnded("after DELETE", firstLogin)

	r = w.call(w.basic(), "DELETE", subscribers+"/"+ada+"/tokens", "")
	r.wantStatus(t, "DELETE of all tokens", http.StatusNoContent)
	for _, login := range w.logins(path) {
		if login.EndedAt == nil {
			t.Errorf("after all tokens were revoked, the login %s has not ended", login.ID)
		}
		if login.Grants[0].RevokedAt == nil {
			t.Errorf("after all tokens were revoked, the grant of the login %s is not revoked", login.ID)
		}
	}
}

func TestConsentsOfSubscriber(t *testing.T) {
	w := newWorld(t)
	app := w.application(w.project.ID)
	ada := w.tokens(`{"reference":"ada"}`).SubscriberID
	bob := w.tokens(`{"reference":"bob"}`).SubscriberID
	scope := []string{"openid", "Voice"}
	if err := w.rows.AddConsent(t.Context(), ada, app.ID, scope, w.now()); err != nil {
		t.Fatal(err)
	}

	type consent struct {
		ClientID   string    `json:"client_id"`
		ClientName string    `json:"client_name"`
		Scope      []string  `json:"scope"`
		UpdatedAt  time.Time `json:"updated_at"`
	}
	adas := subscribers + "/" + ada + "/consents"
	bobs := subscribers + "/" + bob + "/consents"
	got := as[listed[consent]](t, w.call(w.basic(), "GET", adas, "")).Data
	if len(got) != 1 {
		t.Fatalf("GET %s: got %+v, want one consent", adas, got)
	}
	if got[0].UpdatedAt.IsZero() {
		t.Error("the consent has no time of change")
	}
	want := consent{ClientID: app.ID, ClientName: "Dialer", Scope: scope, UpdatedAt: got[0].UpdatedAt}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("GET %s (-want +got):\n%s", adas, diff)
	}
	if got := as[listed[consent]](t, w.call(w.basic(), "GET", bobs, "")).Data; len(got) != 0 {
		t.Errorf("consents of a subscriber without any: got %+v, want none", got)
	}

	for _, tt := range []struct {
		auth authorization
		path string
	}{
		{w.stranger(), adas + "/" + app.ID},
		{w.basic(), bobs + "/" + app.ID},
		{w.basic(), adas + "/nonsense"},
		{w.basic(), adas + "/" + w.project.ID},
		{w.basic(), subscribers + "/" + w.project.ID + "/consents/" + app.ID},
	} {
		r := w.call(tt.auth, "DELETE", tt.path, "")
		r.wantStatus(t, "DELETE "+tt.path, http.StatusNotFound)
	}
	w.wantEnded("after the refused requests")

	r := w.call(w.stranger(), "GET", adas, "")
	r.wantStatus(t, "GET by another project", http.StatusNotFound)
	r = w.call(w.basic(), "DELETE", adas+"/"+strings.ToUpper(app.ID), "")
	r.wantStatus(t, "DELETE of the consent", http.StatusNoContent)
	if !w.ended[app.ID] {
		t.Error("after DELETE, the consent is not revoked")
	}
}
