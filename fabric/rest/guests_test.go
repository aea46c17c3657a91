package rest_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
)

const (
	guests  = "/api/fabric/guests/tokens"
	invites = "/api/fabric/subscriber/invites"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// allowing returns the body of a request for a guest token with these addresses.
func allowing(ids ...string) string {
	return `{"allowed_addresses":["` + strings.Join(ids, `","`) + `"]}`
}

// guest requests a guest token for the given addresses.
func (w *world) guest(ids ...string) tokens {
	w.t.Helper()
	r := w.call(w.basic(), "POST", guests, allowing(ids...))
	if r.status != http.StatusCreated {
		w.t.Fatalf("requesting a guest token: got %d %s, want 201", r.status, r.text)
	}
	return as[tokens](w.t, r)
}

// invite requests an invite to an address. The request is authorized with a subscriber's SAT.
func (w *world) invite(sat, addressID string) string {
	w.t.Helper()
	r := w.call(bearer(sat), "POST", invites, `{"address_id":"`+addressID+`"}`)
	if r.status != http.StatusCreated {
		w.t.Fatalf("requesting an invite: got %d %s, want 201", r.status, r.text)
	}
	return as[tokens](w.t, r).Token
}

// wantReach fails the test unless the holder of a token sees only the given address.
func (w *world) wantReach(holder, token, addressID string) {
	w.t.Helper()
	got := as[listed[address]](w.t, w.call(bearer(token), "GET", addresses, "")).Data
	if len(got) != 1 || got[0].ID != addressID {
		w.t.Errorf("%s sees the addresses %+v, want only %s", holder, got, addressID)
	}
}

func TestGuestToken(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.tokens(`{"reference":"ada"}`), w.tokens(`{"reference":"bob"}`)
	adas, bobs := w.address(ada.Token).ID, w.address(bob.Token).ID
	for name, auth := range map[string]authorization{"Basic": w.basic(), "Bearer SAT": bearer(ada.Token)} {
		r := w.call(auth, "POST", guests, allowing(strings.ToUpper(bobs)))
		r.wantStatus(t, "POST by "+name, http.StatusCreated)
		got := as[tokens](t, r)
		if got.RefreshToken == "" {
			t.Errorf("POST by %s: there is no refresh token", name)
		}
		if typ := header(t, got.Token)["typ"]; typ != "SAT" {
			t.Errorf("POST by %s: the token has the typ %q, want SAT", name, typ)
		}
		if life := lifetime(w.open(got.Token, fabric.Guest)); life != 2*time.Hour {
			t.Errorf("POST by %s: the token lives for %v, want 2 h", name, life)
		}

		guest := bearer(got.Token)
		w.wantReach("the guest with the token from "+name, got.Token, bobs)
		r = w.call(guest, "GET", addresses+"/"+bobs, "")
		r.wantStatus(t, "GET of its address with the token from "+name, http.StatusOK)
		r = w.call(guest, "GET", addresses+"/"+adas, "")
		r.wantStatus(t, "GET of another address with the token from "+name, http.StatusNotFound)
	}
}

func TestGuestRefusals(t *testing.T) {
	w := newWorld(t)
	id := w.address(w.tokens(`{"reference":"ada"}`).Token).ID
	eve := as[tokens](t, w.call(w.stranger(), "POST", issue, `{"reference":"eve"}`))
	foreign := w.address(eve.Token).ID
	eleven := make([]string, 11)
	for i := range eleven {
		eleven[i] = uuid.NewString()
	}

	tests := []struct{ body, want string }{
		{`{}`, "allowed_addresses:missing_required_parameter"},
		{`{"allowed_addresses":[]}`, "allowed_addresses:missing_required_parameter"},
		{`{"allowed_addresses":null}`, "allowed_addresses:missing_required_parameter"},
		{`{"allowed_addresses":"` + id + `"}`, "allowed_addresses:invalid_parameter"},
		{`{"allowed_addresses":[5]}`, "allowed_addresses:invalid_parameter"},
		{allowing("x"), "allowed_addresses:invalid_parameter"},
		{allowing(id, id), "allowed_addresses:invalid_parameter"},
		{allowing(id, strings.ToUpper(id)), "allowed_addresses:invalid_parameter"},
		{allowing(eleven...), "allowed_addresses:allowed_address_limit_exceeded"},
		{allowing(eleven[:10]...), "allowed_addresses:must_belong_to_project"},
		{allowing(id, foreign), "allowed_addresses:must_belong_to_project"},
		{
			`{"expire_at":1,"ch":"evil.example","region":"moon"}`,
			"allowed_addresses:missing_required_parameter expire_at:invalid_parameter " +
				"ch:invalid_parameter region:invalid_parameter",
		},
		{
			`{"allowed_addresses":{},"expire_at":"x"}`,
			"allowed_addresses:invalid_parameter expire_at:invalid_parameter",
		},
	}

	for _, tt := range tests {
		if got := w.call(w.basic(), "POST", guests, tt.body).faults(t); got != tt.want {
			t.Errorf("POST %.90s: got %s, want %s", tt.body, got, tt.want)
		}
	}
}

func TestInvite(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.tokens(`{"reference":"ada"}`), w.tokens(`{"reference":"bob"}`)
	eve := as[tokens](t, w.call(w.stranger(), "POST", issue, `{"reference":"eve"}`))
	adas, bobs, eves := w.address(ada.Token).ID, w.address(bob.Token).ID, w.address(eve.Token).ID
	r := w.call(bearer(ada.Token), "POST", invites,
		`{"address_id":"`+adas+`","expires_at":`+itoa(time.Now().Add(time.Hour).Unix())+`}`)
	r.wantStatus(t, "POST", http.StatusCreated)
	r.wantNoText(t, "POST", "refresh_token")
	invite := as[tokens](t, r).Token
	w.wantReach("the holder of the invite", invite, adas)

	for _, tt := range []struct{ body, want string }{
		{`{}`, "address_id:missing_required_parameter"},
		{`{"address_id":"x"}`, "address_id:invalid_parameter"},
		{`{"address_id":["` + adas + `"]}`, "address_id:invalid_parameter"},
		{`{"address_id":"` + bobs + `"}`, "address_id:invalid_parameter"},
		{`{"address_id":"` + eves + `"}`, "address_id:invalid_parameter"},
		{`{"address_id":"` + adas + `","expires_at":1}`, "expires_at:invalid_parameter"},
		{`{"address_id":"` + adas + `","expires_at":"never"}`, "expires_at:invalid_parameter"},
		{`{"address_id":"` + adas + `","expires_at":99999999999999}`, "expires_at:invalid_parameter"},
	} {
		if got := w.call(bearer(ada.Token), "POST", invites, tt.body).faults(t); got != tt.want {
			t.Errorf("POST %s: got %s, want %s", tt.body, got, tt.want)
		}
	}

	r = w.call(w.basic(), "DELETE", subscribers+"/"+ada.SubscriberID, "")
	r.wantStatus(t, "DELETE of the subscriber", http.StatusNoContent)
	r = w.call(bearer(invite), "GET", addresses, "")
	r.wantStatus(t, "GET with the invite of a deleted subscriber", http.StatusUnauthorized)
}

// TestGuestBySubscriber shows that a subscriber can issue guest tokens for the addresses that it
// can reach. Holders of guest tokens, invites and refresh tokens cannot issue guest tokens.
func TestGuestBySubscriber(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.tokens(`{"reference":"ada"}`), w.tokens(`{"reference":"bob"}`)
	eve := as[tokens](t, w.call(w.stranger(), "POST", issue, `{"reference":"eve"}`))
	mine, theirs, foreign := w.address(ada.Token).ID, w.address(bob.Token).ID, w.address(eve.Token).ID
	for _, tt := range []struct{ body, want string }{
		{allowing(foreign), "allowed_addresses:must_belong_to_project"},
		{allowing(mine, foreign), "allowed_addresses:must_belong_to_project"},
		{`{}`, "allowed_addresses:missing_required_parameter"},
		{`{"allowed_addresses":["` + mine + `"],"ch":"evil.example"}`, "ch:invalid_parameter"},
	} {
		if got := w.call(bearer(ada.Token), "POST", guests, tt.body).faults(t); got != tt.want {
			t.Errorf("POST %s by a SAT: got %s, want %s", tt.body, got, tt.want)
		}
	}

	guest := as[tokens](t, w.call(bearer(ada.Token), "POST", guests, allowing(mine, theirs)))
	w.setDisabled(bob.SubscriberID, true)
	got := w.call(bearer(ada.Token), "POST", guests, allowing(theirs)).faults(t)
	if got != "allowed_addresses:must_belong_to_project" {
		t.Errorf("POST with an address that the SAT no longer reaches: got %s, want must_belong_to_project", got)
	}

	w.wantReach("the guest", guest.Token, mine)
	for name, token := range map[string]string{
		"a guest":         guest.Token,
		"an invite":       w.invite(ada.Token, mine),
		"a refresh token": ada.RefreshToken,
	} {
		w.wantUnauthorized(name, bearer(token), "POST", guests, allowing(mine))
	}
}
