package rest_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

const embeds = "/api/fabric/embeds/tokens"

// TestEmbeds shows that an embed key gets tokens only for its own address, until it is revoked.
// Revoking the key also revokes these tokens.
func TestEmbeds(t *testing.T) {
	w := newWorld(t)
	sat := w.tokens(`{"reference":"ada"}`).Token
	other := w.address(w.tokens(`{"reference":"grace"}`).Token)
	a := w.address(sat)
	k, secret, err := w.fabric.EmbedKeys.Create(t.Context(), w.project.ID, a.ID, "shop")
	if err != nil {
		t.Fatal(err)
	}

	body := `{"token":"` + secret + `","subscriber_id":"x","ttl":1}`
	r := w.call(nobody, "POST", embeds, body)
	if r.status != http.StatusCreated || !strings.HasPrefix(secret, "c2c_") {
		t.Fatalf("POST with %.8s… = %d %s, want 201", secret, r.status, r.text)
	}

	guest := bearer(as[tokens](t, r).Token)
	list := as[struct{ Data []address }](t, w.call(guest, "GET", "/api/fabric/addresses", ""))
	if len(list.Data) != 1 || list.Data[0].ID != a.ID {
		t.Errorf("the guest sees %v, want %s alone", list.Data, a.ID)
	}

	if r := w.call(guest, "GET", "/api/fabric/addresses/"+other.ID, ""); r.status != http.StatusNotFound {
		t.Errorf("another address = %d, want 404", r.status)
	}
	if r := w.call(guest, "GET", "/subscriber/info", ""); r.status != http.StatusUnauthorized {
		t.Errorf("subscriber info by a guest = %d, want 401", r.status)
	}

	if err := w.fabric.EmbedKeys.Revoke(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if r := w.call(nobody, "POST", embeds, body); r.status != http.StatusForbidden ||
		strings.TrimSpace(r.text) != `{"error":"Forbidden"}` {
		t.Errorf("POST after revocation = %d %s, want 403", r.status, r.text)
	}

	if r := w.call(guest, "GET", "/api/fabric/addresses", ""); r.status != http.StatusUnauthorized {
		t.Errorf("a guest token of a revoked key = %d, want 401", r.status)
	}
}

func TestEmbedFaults(t *testing.T) {
	w := newWorld(t)
	sat := w.tokens(`{"reference":"ada"}`)
	a := w.address(sat.Token)
	for body, want := range map[string]string{
		`{}`:              "token:missing_required_parameter",
		`{"token":" "}`:   "token:missing_required_parameter",
		`{"token":["x"]}`: "token:invalid_parameter",
	} {
		if got := w.call(nobody, "POST", embeds, body).faults(t); got != want {
			t.Errorf("POST %s = %s, want %s", body, got, want)
		}
	}

	for _, secret := range []string{"c2c_0", "c2c_" + strings.Repeat("0", 48), sat.Token, w.key,
		"c2c_\\u0000", "c2c_" + strings.Repeat("x", 5000)} {
		if r := w.call(nobody, "POST", embeds, `{"token":"`+secret+`"}`); r.status != http.StatusForbidden {
			t.Errorf("POST with %.12s… = %d %s, want 403", secret, r.status, r.text)
		}
	}

	for _, id := range []string{"", "x", w.project.ID} {
		if _, _, err := w.fabric.EmbedKeys.Create(t.Context(), w.project.ID, id, ""); err == nil {
			t.Errorf("EmbedKeys.Create for the address %q: no error", id)
		}
	}
	if _, _, err := w.fabric.EmbedKeys.Create(t.Context(), w.other.ID, a.ID, ""); err == nil {
		t.Error("EmbedKeys.Create for another project's address: no error")
	}

	// A disabled subscriber cannot be reached.
	_, secret, err := w.fabric.EmbedKeys.Create(t.Context(), w.project.ID, a.ID, "")
	if err != nil {
		t.Fatal(err)
	}

	disabled := true
	_, err = w.fabric.Subscribers.Update(t.Context(), w.project.ID, sat.SubscriberID,
		fabric.SubscriberInput{Disabled: &disabled})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.call(nobody, "POST", embeds, `{"token":"`+secret+`"}`); r.status != http.StatusForbidden {
		t.Errorf("POST for a disabled subscriber = %d %s, want 403", r.status, r.text)
	}
}

// TestEmbedLimit shows that the limit per minute applies to each embed key separately. It starts
// again with the next minute.
func TestEmbedLimit(t *testing.T) {
	w := newWorld(t)
	a := w.address(w.tokens(`{"reference":"ada"}`).Token)
	w.pass(w.now().Truncate(time.Minute).Add(time.Minute + time.Second).Sub(w.now())) // start a new minute
	var bodies [2]string
	for i := range bodies {
		_, secret, err := w.fabric.EmbedKeys.Create(t.Context(), w.project.ID, a.ID, "shop")
		if err != nil {
			t.Fatal(err)
		}
		bodies[i] = `{"token":"` + secret + `"}`
	}

	for i := range embedLimit {
		if r := w.call(nobody, "POST", embeds, bodies[0]); r.status != http.StatusCreated {
			t.Fatalf("token %d: got %d %s, want 201", i, r.status, r.text)
		}
	}

	r := w.call(nobody, "POST", embeds, bodies[0])
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	if r.status != http.StatusTooManyRequests ||
		strings.TrimSpace(r.text) != `{"error":"Too Many Requests"}` || err != nil || after < 1 || after > 60 {
		t.Errorf("over the limit: got %d %s, Retry-After %q, want 429", r.status, r.text, r.header.Get("Retry-After"))
	}
	if r := w.call(nobody, "POST", embeds, bodies[1]); r.status != http.StatusCreated {
		t.Errorf("another key: got %d, want 201", r.status)
	}

	w.pass(time.Duration(after) * time.Second)
	if r := w.call(nobody, "POST", embeds, bodies[0]); r.status != http.StatusCreated {
		t.Errorf("after Retry-After: got %d, want 201", r.status)
	}
}
