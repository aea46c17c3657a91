package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	w := newWorld(t)
	app := idp.Client{
		ID:        "0199a000-0000-7000-8000-0000000000aa",
		ProjectID: w.project.ID,
		Metadata:  idp.Metadata{BackchannelLogoutURI: "https://rp.example/"},
	}
	if err := w.rows.CreateClient(t.Context(), app); err != nil {
		t.Fatal(err)
	}

	ada := w.tokens(`{"reference":"ada"}`).SubscriberID
	w.signIn(app.ID, ada, firstLogin)
	w.signIn(app.ID, ada, secondLogin)
	return logoutWorld{
		world: w,
		boss:  w.manager(),
		ada:   ada,
		app:   app,
		path:  "/api/fabric/clients/" + app.ID + "/logouts",
	}
}

// list lists the logouts of the client. The query begins with a question mark, or is empty.
func (w logoutWorld) list(query string) []logoutBody {
	w.t.Helper()
	return as[listed[logoutBody]](w.t, w.call(w.boss, "GET", w.path+query, "")).Data
}

// end ends both logins.
func (w logoutWorld) end() {
	w.t.Helper()
	r := w.call(w.basic(), "DELETE", subscribers+"/"+w.ada+"/tokens", "")
	r.wantStatus(w.t, "revoking all tokens", http.StatusNoContent)
}

// TestLogouts shows that when logins end, the client that had tokens in them has one logout for each
// of them. The newest logout is listed first.
func TestLogouts(t *testing.T) {
	w := newLogoutWorld(t)
	if got := w.list(""); len(got) != 0 {
		t.Errorf("before any login has ended: got %+v, want none", got)
	}

	w.end()
	second := logoutBody{SessionID: secondLogin, ClientID: w.app.ID, SubscriberID: w.ada, State: "pending"}
	first := second
	first.SessionID = firstLogin
	if diff := cmp.Diff([]logoutBody{second, first}, w.list("")); diff != "" {
		t.Fatalf("GET (-want +got):\n%s", diff)
	}
	r := w.call(w.boss, "GET", w.path+"?state=lost", "")
	r.wantStatus(t, "GET with an unknown state", http.StatusUnprocessableEntity)
}

// TestRedeliverLogouts shows that dead logouts become pending again on request, one at a time or
// all at once.
func TestRedeliverLogouts(t *testing.T) {
	w := newLogoutWorld(t)
	w.end()
	w.giveUp(w.rows.Logouts.Queue(), w.app.ID, firstLogin, 1, 400)
	w.giveUp(w.rows.Logouts.Queue(), w.app.ID, secondLogin, 1, 401)
	dead := w.list("?state=dead")
	if len(dead) != 2 {
		t.Fatalf("the dead letters are %+v, want two", dead)
	}
	if *dead[1].Status != 400 {
		t.Errorf("the first logout has the status %d, want 400", *dead[1].Status)
	}
	if dead[1].Attempts != 1 {
		t.Errorf("the first logout was attempted %d times, want once", dead[1].Attempts)
	}
	if dead[1].EndedAt == nil {
		t.Error("the first logout has no ended_at")
	}

	r := w.call(w.boss, "POST", w.path+"/"+firstLogin+"/redeliver", "")
	r.wantStatus(t, "POST of redeliver", http.StatusAccepted)
	got := as[logoutBody](t, r)
	if got.State != "pending" {
		t.Errorf("after redeliver, the state is %s, want pending", got.State)
	}
	if got.Attempts != 0 {
		t.Errorf("after redeliver, there are %d attempts, want 0", got.Attempts)
	}
	if got.Status != nil {
		t.Errorf("after redeliver, the status is %d, want null", *got.Status)
	}

	r = w.call(w.boss, "POST", w.path+"/redeliver", "")
	r.wantStatus(t, "POST of redeliver for all dead letters", http.StatusAccepted)
	if got := strings.TrimSpace(r.text); got != `{"redelivered":1}` {
		t.Errorf("POST of redeliver for all dead letters: got %s, want one redelivered", got)
	}
}

// TestLogoutsNotFound shows that requests for logouts are not found if the client is unknown or
// belongs to another project, or if the logout is unknown.
func TestLogoutsNotFound(t *testing.T) {
	w := newLogoutWorld(t)
	w.end()
	for _, clientID := range []string{w.application(w.other.ID).ID, "nonsense"} {
		for _, request := range []struct{ method, path string }{
			{"GET", ""},
			{"POST", "/redeliver"},
			{"POST", "/" + firstLogin + "/redeliver"},
		} {
			path := "/api/fabric/clients/" + clientID + "/logouts" + request.path
			r := w.call(w.boss, request.method, path, "")
			r.wantStatus(t, request.method+" "+path, http.StatusNotFound)
		}
	}

	for _, sid := range []string{"nonsense", "0199a000-0000-7000-8000-000000000009"} {
		r := w.call(w.boss, "POST", w.path+"/"+sid+"/redeliver", "")
		r.wantStatus(t, "redeliver "+sid, http.StatusNotFound)
	}
}
