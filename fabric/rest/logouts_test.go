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

type logoutBody struct {
	SessionID    string `json:"session_id"`
	ClientID     string `json:"client_id"`
	SubscriberID string `json:"subscriber_id"`
	State        string
	Attempts     int
	Status       *int
	EndedAt      *string `json:"ended_at"`
}

func TestLogouts(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	boss := w.manager()
	app := idp.Client{ID: "0199a000-0000-7000-8000-0000000000aa", ProjectID: w.project.ID,
		Metadata: idp.Metadata{BackchannelLogoutURI: "https://rp.example/"}}
	if err := w.rows.CreateClient(ctx, app); err != nil {
		t.Fatal(err)
	}

	ada := w.tokens(`{"reference":"ada"}`).SubscriberID
	hash := must[fabric.Subscriber](t)(w.fabric.Subscribers.Find(ctx, w.project.ID, ada)).PasswordHash
	const first, second = "0199a000-0000-7000-8000-000000000001", "0199a000-0000-7000-8000-000000000002"
	for _, sid := range []string{first, second} {
		s := idp.Login{ID: sid, ProjectID: w.project.ID, SubscriberID: ada, AuthTime: w.now(),
			Expires: w.now().Add(time.Hour)}
		if err := w.rows.CreateLogin(ctx, s, hash); err != nil {
			t.Fatal(err)
		}
		g := idp.Grant{ID: sid, ProjectID: w.project.ID, ClientID: app.ID, SubscriberID: ada, SessionID: sid,
			Expires: w.now().Add(time.Hour)}
		code := idp.RedeemedCode{Hash: sid, GrantID: sid, ClientID: app.ID, Expires: w.now().Add(time.Hour)}
		if err := w.rows.RedeemCode(ctx, code, g); err != nil {
			t.Fatal(err)
		}
	}

	path := "/api/fabric/clients/" + app.ID + "/logouts"
	list := func(query string) []logoutBody {
		t.Helper()
		return as[listed[logoutBody]](t, w.call(boss, "GET", path+query, "")).Data
	}

	if got := list(""); len(got) != 0 {
		t.Errorf("before any login has ended: %+v", got)
	}
	if r := w.call(w.basic(), "DELETE", subscribers+"/"+ada+"/tokens", ""); r.status != http.StatusNoContent {
		t.Fatalf("revoking all: got %d %s", r.status, r.text)
	}

	got := list("")
	if len(got) != 2 || got[0].SessionID != second || got[1].SessionID != first ||
		got[0].ClientID != app.ID || got[0].SubscriberID != ada || got[0].State != "pending" ||
		got[0].EndedAt != nil {
		t.Fatalf("GET %s: got %+v, want both logouts", path, got)
	}

	for i, sid := range []string{first, second} {
		w.dies(w.rows.Logouts.Queue(), app.ID, sid, 1, 400+i)
	}

	if got := list("?state=dead"); len(got) != 2 || *got[1].Status != 400 || got[1].Attempts != 1 ||
		got[1].EndedAt == nil {
		t.Errorf("dead letters: got %+v", got)
	}

	r := w.call(boss, "POST", path+"/"+first+"/redeliver", "")
	if got := as[logoutBody](t, r); r.status != http.StatusAccepted || got.State != "pending" ||
		got.Attempts != 0 || got.Status != nil {
		t.Errorf("redeliver: got %d %s", r.status, r.text)
	}
	if r := w.call(boss, "POST", path+"/redeliver", ""); r.status != http.StatusAccepted ||
		strings.TrimSpace(r.text) != `{"redelivered":1}` {
		t.Errorf("redeliver all: got %d %s", r.status, r.text)
	}
	if r := w.call(boss, "GET", path+"?state=lost", ""); r.status != http.StatusUnprocessableEntity {
		t.Errorf("GET of an unknown state: got %d, want 422", r.status)
	}

	foreign := strings.Replace(path, app.ID, w.application(w.other.ID).ID, 1)
	for _, path := range []string{foreign, strings.Replace(path, app.ID, "nonsense", 1)} {
		for _, what := range []string{"GET ", "POST /redeliver", "POST /" + first + "/redeliver"} {
			method, rest, _ := strings.Cut(what, " ")
			if r := w.call(boss, method, path+rest, ""); r.status != http.StatusNotFound {
				t.Errorf("%s %s: got %d, want 404", method, path+rest, r.status)
			}
		}
	}

	for _, sid := range []string{"nonsense", "0199a000-0000-7000-8000-000000000009"} {
		if r := w.call(boss, "POST", path+"/"+sid+"/redeliver", ""); r.status != http.StatusNotFound {
			t.Errorf("redeliver %s: got %d, want 404", sid, r.status)
		}
	}
}
