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

func allowing(ids ...string) string {
	return `{"allowed_addresses":["` + strings.Join(ids, `","`) + `"]}`
}

func (w *world) guest(ids ...string) tokens {
	w.t.Helper()
	r := w.call(w.basic(), "POST", guests, allowing(ids...))
	if r.status != http.StatusCreated {
		w.t.Fatalf("requesting a guest token: got %d %s, want 201", r.status, r.text)
	}
	return as[tokens](w.t, r)
}

func (w *world) invite(sat, addressID string) string {
	w.t.Helper()
	r := w.call(bearer(sat), "POST", invites, `{"address_id":"`+addressID+`"}`)
	if r.status != http.StatusCreated {
		w.t.Fatalf("requesting an invite: got %d %s, want 201", r.status, r.text)
	}
	return as[tokens](w.t, r).Token
}

func TestGuestToken(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.tokens(`{"reference":"ada"}`), w.tokens(`{"reference":"bob"}`)
	a, b := w.address(ada.Token), w.address(bob.Token)
	for name, auth := range map[string]authorization{"Basic": w.basic(), "Bearer SAT": bearer(ada.Token)} {
		r := w.call(auth, "POST", guests, allowing(strings.ToUpper(b.ID)))
		got := as[tokens](t, r)
		if r.status != http.StatusCreated || got.RefreshToken == "" || header(t, got.Token)["typ"] != "SAT" {
			t.Errorf("guest token by %s: got %d %s, want 201 and both tokens", name, r.status, r.text)
		}

		guest := w.open(got.Token, fabric.Guest)
		if life := guest.ExpiresAt.Sub(guest.IssuedAt).Round(time.Second); life != 7200*time.Second {
			t.Errorf("a guest token lives for %v, want 2 h", life)
		}

		all := as[listed[address]](t, w.call(bearer(got.Token), "GET", "/api/fabric/addresses", ""))
		if len(all.Data) != 1 || all.Data[0].ID != b.ID {
			t.Errorf("guest by %s sees %+v, want only %s", name, all.Data, b.ID)
		}

		if r := w.call(bearer(got.Token), "GET", "/api/fabric/addresses/"+b.ID, ""); r.status != http.StatusOK {
			t.Errorf("guest by %s at its address: got %d, want 200", name, r.status)
		}
		if r := w.call(bearer(got.Token), "GET", "/api/fabric/addresses/"+a.ID, ""); r.status != http.StatusNotFound {
			t.Errorf("guest by %s at another address: got %d, want 404", name, r.status)
		}
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
		{`{"expire_at":1,"ch":"evil.example","region":"moon"}`,
			"allowed_addresses:missing_required_parameter expire_at:invalid_parameter " +
				"ch:invalid_parameter region:invalid_parameter"},
		{`{"allowed_addresses":{},"expire_at":"x"}`,
			"allowed_addresses:invalid_parameter expire_at:invalid_parameter"},
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
	a, b := w.address(ada.Token), w.address(bob.Token)
	r := w.call(bearer(ada.Token), "POST", invites,
		`{"address_id":"`+a.ID+`","expires_at":`+itoa(time.Now().Add(time.Hour).Unix())+`}`)
	if r.status != http.StatusCreated || strings.Contains(r.text, "refresh_token") {
		t.Errorf("POST %s: got %d %s, want 201 and no refresh token", invites, r.status, r.text)
	}

	invite := as[tokens](t, r).Token
	all := as[listed[address]](t, w.call(bearer(invite), "GET", "/api/fabric/addresses", ""))
	if len(all.Data) != 1 || all.Data[0].ID != a.ID {
		t.Errorf("an invite sees %+v, want only %s", all.Data, a.ID)
	}

	eve := as[tokens](t, w.call(w.stranger(), "POST", issue, `{"reference":"eve"}`))
	for _, tt := range []struct{ body, want string }{
		{`{}`, "address_id:missing_required_parameter"},
		{`{"address_id":"x"}`, "address_id:invalid_parameter"},
		{`{"address_id":["` + a.ID + `"]}`, "address_id:invalid_parameter"},
		{`{"address_id":"` + b.ID + `"}`, "address_id:invalid_parameter"},
		{`{"address_id":"` + w.address(eve.Token).ID + `"}`, "address_id:invalid_parameter"},
		{`{"address_id":"` + a.ID + `","expires_at":1}`, "expires_at:invalid_parameter"},
		{`{"address_id":"` + a.ID + `","expires_at":"never"}`, "expires_at:invalid_parameter"},
		{`{"address_id":"` + a.ID + `","expires_at":99999999999999}`, "expires_at:invalid_parameter"},
	} {
		if got := w.call(bearer(ada.Token), "POST", invites, tt.body).faults(t); got != tt.want {
			t.Errorf("POST %s: got %s, want %s", tt.body, got, tt.want)
		}
	}

	if r := w.call(w.basic(), "DELETE", subscribers+"/"+ada.SubscriberID, ""); r.status != http.StatusNoContent {
		t.Fatalf("DELETE: got %d, want 204", r.status)
	}
	if r := w.call(bearer(invite), "GET", "/api/fabric/addresses", ""); r.status != http.StatusUnauthorized {
		t.Errorf("an invite of a deleted subscriber: got %d, want 401", r.status)
	}
}

// TestGuestBySubscriber shows that a subscriber can issue guest tokens for the addresses that it
// can reach. Holders of other fabric tokens cannot issue guest tokens.
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
	disabled := true
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, bob.SubscriberID,
		fabric.SubscriberInput{Disabled: &disabled})
	if err != nil {
		t.Fatal(err)
	}

	got := w.call(bearer(ada.Token), "POST", guests, allowing(theirs)).faults(t)
	if got != "allowed_addresses:must_belong_to_project" {
		t.Errorf("POST of an address that the SAT no longer reaches: got %s, want a fault", got)
	}

	all := as[listed[address]](t, w.call(bearer(guest.Token), "GET", "/api/fabric/addresses", ""))
	if len(all.Data) != 1 || all.Data[0].ID != mine {
		t.Errorf("the guest sees %+v, want %s alone", all.Data, mine)
	}

	for name, token := range map[string]string{
		"a guest":         guest.Token,
		"an invite":       w.invite(ada.Token, mine),
		"a refresh token": ada.RefreshToken,
	} {
		wantUnauthorized(t, name, [2]string{"POST", guests}, w.call(bearer(token), "POST", guests, allowing(mine)))
	}
}
