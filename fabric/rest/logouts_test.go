package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

type logoutBody struct {
	SessionID    string `json:"session_id"`
	ClientID     string `json:"client_id"`
	SubscriberID string `json:"subscriber_id"`
	State        string
	Attempts     int
	Status       *int
	EndedAt      *string `json:"ended_at"`
}

const firstLogin, secondLogin = "0199a000-0000-7000-8000-000000000001", "0199a000-0000-7000-8000-000000000002"

// A logoutWorld has an OAuth client that receives logout notifications, and a subscriber with two
// logins in which the client received tokens.
type logoutWorld struct {
	*world
	boss authorization
	ada  string // the subscriber's id
	app  idp.Client
	path string // path of the client's logouts
}

func newLogoutWorld(t *testing.T) logoutWorld {
	t.Helper()
	ctx := t.Context()
	w := newWorld(t)
	app := idp.Client{
		ID:        "0199a000-0000-7000-8000-0000000000aa",
		ProjectID: w.project.ID,
		Metadata:  idp.Metadata{BackchannelLogoutURI: "https://rp.example/"},
	}
	if err := w.rows.CreateClient(ctx, app); err != nil {
		t.Fatal(err)
	}

	ada := w.tokens(`{"reference":"ada"}`).SubscriberID
	hash := must[fabric.Subscriber](t)(w.fabric.Subscribers.Find(ctx, w.project.ID, ada)).PasswordHash
	for _, sid := range []string{firstLogin, secondLogin} {
		s := idp.Login{
			ID:           sid,
			ProjectID:    w.project.ID,
			SubscriberID: ada,
			AuthTime:     w.now(),
			Expires:      w.now().Add(time.Hour),
		}
		if err := w.rows.CreateLogin(ctx, s, hash); err != nil {
			t.Fatal(err)
		}

		g := idp.Grant{
			ID:           sid,
			ProjectID:    w.project.ID,
			ClientID:     app.ID,
			SubscriberID: ada,
			SessionID:    sid,
			Expires:      w.now().Add(time.Hour),
		}
		code := idp.RedeemedCode{Hash: sid, GrantID: sid, ClientID: app.ID, Expires: w.now().Add(time.Hour)}
		if err := w.rows.RedeemCode(ctx, code, g); err != nil {
			t.Fatal(err)
		}
	}

	return logoutWorld{w, w.manager(), ada, app, "/api/fabric/clients/" + app.ID + "/logouts"}
}

func (w logoutWorld) list(query string) []logoutBody {
	w.t.Helper()
	return as[listed[logoutBody]](w.t, w.call(w.boss, "GET", w.path+query, "")).Data
}

// end ends both logins.
func (w logoutWorld) end() {
	w.t.Helper()
	if r := w.call(w.basic(), "DELETE", subscribers+"/"+w.ada+"/tokens", ""); r.status != http.StatusNoContent {
		w.t.Fatalf("revoking all: got %d %s, want 204", r.status, r.text)
	}
}

// TestLogouts shows that each login that ends is listed as a logout of the client that had tokens
// in it, newest first.
func TestLogouts(t *testing.T) {
	w := newLogoutWorld(t)
	if got := w.list(""); len(got) != 0 {
		t.Errorf("before any login has ended: got %+v, want none", got)
	}

	w.end()
	got := w.list("")
	if len(got) != 2 || got[0].SessionID != secondLogin || got[1].SessionID != firstLogin ||
		got[0].ClientID != w.app.ID || got[0].SubscriberID != w.ada || got[0].State != "pending" ||
		got[0].EndedAt != nil {
		t.Fatalf("GET %s: got %+v, want both logouts", w.path, got)
	}
	if r := w.call(w.boss, "GET", w.path+"?state=lost", ""); r.status != http.StatusUnprocessableEntity {
		t.Errorf("GET with an unknown state: got %d, want 422", r.status)
	}
}

// TestRedeliverLogouts shows that dead logouts become pending again on request, one at a time or
// all at once.
func TestRedeliverLogouts(t *testing.T) {
	w := newLogoutWorld(t)
	w.end()
	for i, sid := range []string{firstLogin, secondLogin} {
		w.dies(w.rows.Logouts.Queue(), w.app.ID, sid, 1, 400+i)
	}

	if got := w.list("?state=dead"); len(got) != 2 || *got[1].Status != 400 || got[1].Attempts != 1 ||
		got[1].EndedAt == nil {
		t.Errorf("dead letters: got %+v, want two, the last with the status 400 after one attempt", got)
	}

	r := w.call(w.boss, "POST", w.path+"/"+firstLogin+"/redeliver", "")
	if got := as[logoutBody](t, r); r.status != http.StatusAccepted || got.State != "pending" ||
		got.Attempts != 0 || got.Status != nil {
		t.Errorf("redeliver: got %d %s, want 202 with a pending logout without attempts", r.status, r.text)
	}
	if r := w.call(w.boss, "POST", w.path+"/redeliver", ""); r.status != http.StatusAccepted ||
		strings.TrimSpace(r.text) != `{"redelivered":1}` {
		t.Errorf("redeliver all: got %d %s, want 202 and one redelivered", r.status, r.text)
	}
}

// TestLogoutsNotFound shows that a caller cannot find the logouts of another project's client.
func TestLogoutsNotFound(t *testing.T) {
	w := newLogoutWorld(t)
	w.end()
	for _, id := range []string{w.application(w.other.ID).ID, "nonsense"} {
		for _, what := range []string{"GET ", "POST /redeliver", "POST /" + firstLogin + "/redeliver"} {
			method, rest, _ := strings.Cut(what, " ")
			path := strings.Replace(w.path, w.app.ID, id, 1) + rest
			if r := w.call(w.boss, method, path, ""); r.status != http.StatusNotFound {
				t.Errorf("%s %s: got %d, want 404", method, path, r.status)
			}
		}
	}

	for _, sid := range []string{"nonsense", "0199a000-0000-7000-8000-000000000009"} {
		if r := w.call(w.boss, "POST", w.path+"/"+sid+"/redeliver", ""); r.status != http.StatusNotFound {
			t.Errorf("redeliver %s: got %d, want 404", sid, r.status)
		}
	}
}
