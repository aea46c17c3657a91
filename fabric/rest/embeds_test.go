package rest_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

const embeds = "/api/fabric/embeds/tokens"

// embedKey creates an embed key for an address, and returns its secret.
func (w *world) embedKey(addressID string) string {
	w.t.Helper()
	_, secret, err := w.fabric.EmbedKeys.Create(w.t.Context(), w.project.ID, addressID, "shop")
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// TestEmbeds shows that an embed key gets tokens only for its own address, until it is revoked.
// Revoking the key also revokes these tokens.
func TestEmbeds(t *testing.T) {
	w := newWorld(t)
	ada := w.address(w.tokens(`{"reference":"ada"}`).Token).ID
	grace := w.address(w.tokens(`{"reference":"grace"}`).Token).ID
	key, secret, err := w.fabric.EmbedKeys.Create(t.Context(), w.project.ID, ada, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(secret, "c2c_") {
		t.Fatalf("the embed key is %.8s…, want c2c_…", secret)
	}

	body := `{"token":"` + secret + `","subscriber_id":"x","ttl":1}`
	r := w.call(nobody, "POST", embeds, body)
	r.wantStatus(t, "POST", http.StatusCreated)
	token := as[tokens](t, r).Token
	guest := bearer(token)
	w.wantReach("the guest", token, ada)
	r = w.call(guest, "GET", addresses+"/"+grace, "")
	r.wantStatus(t, "GET of another address by the guest", http.StatusNotFound)
	r = w.call(guest, "GET", "/subscriber/info", "")
	r.wantStatus(t, "GET of subscriber info by the guest", http.StatusUnauthorized)

	if err := w.fabric.EmbedKeys.Revoke(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	r = w.call(nobody, "POST", embeds, body)
	r.wantError(t, "POST after the revocation", http.StatusForbidden)
	r = w.call(guest, "GET", addresses, "")
	r.wantStatus(t, "GET with a guest token of a revoked key", http.StatusUnauthorized)
}

func TestEmbedFaults(t *testing.T) {
	w := newWorld(t)
	ada := w.tokens(`{"reference":"ada"}`)
	id := w.address(ada.Token).ID
	for body, want := range map[string]string{
		`{}`:              "token:missing_required_parameter",
		`{"token":" "}`:   "token:missing_required_parameter",
		`{"token":["x"]}`: "token:invalid_parameter",
	} {
		if got := w.call(nobody, "POST", embeds, body).faults(t); got != want {
			t.Errorf("POST %s = %s, want %s", body, got, want)
		}
	}

	for _, secret := range []string{
		"c2c_0",
		"c2c_" + strings.Repeat("0", 48),
		ada.Token,
		w.key,
		`c2c_\u0000`,
		"c2c_" + strings.Repeat("x", 5000),
	} {
		r := w.call(nobody, "POST", embeds, `{"token":"`+secret+`"}`)
		r.wantStatus(t, fmt.Sprintf("POST with %.12s…", secret), http.StatusForbidden)
	}

	for _, id := range []string{"", "x", w.project.ID} {
		if _, _, err := w.fabric.EmbedKeys.Create(t.Context(), w.project.ID, id, ""); err == nil {
			t.Errorf("EmbedKeys.Create for the address %q: got nil, want an error", id)
		}
	}
	if _, _, err := w.fabric.EmbedKeys.Create(t.Context(), w.other.ID, id, ""); err == nil {
		t.Error("EmbedKeys.Create for another project's address: got nil, want an error")
	}

	// A disabled subscriber cannot be reached.
	secret := w.embedKey(id)
	w.setDisabled(ada.SubscriberID, true)
	r := w.call(nobody, "POST", embeds, `{"token":"`+secret+`"}`)
	r.wantStatus(t, "POST for a disabled subscriber", http.StatusForbidden)
}

// TestEmbedLimit shows that the limit per minute applies to each embed key separately, and that the count
// starts again with the next minute.
func TestEmbedLimit(t *testing.T) {
	w := newWorld(t)
	id := w.address(w.tokens(`{"reference":"ada"}`).Token).ID
	nextMinute := w.now().Truncate(time.Minute).Add(time.Minute + time.Second)
	w.pass(nextMinute.Sub(w.now()))
	one, two := `{"token":"`+w.embedKey(id)+`"}`, `{"token":"`+w.embedKey(id)+`"}`
	for range embedLimit {
		r := w.call(nobody, "POST", embeds, one)
		r.wantStatus(t, "POST within the limit", http.StatusCreated)
	}

	r := w.call(nobody, "POST", embeds, one)
	r.wantError(t, "POST over the limit", http.StatusTooManyRequests)
	seconds, err := strconv.Atoi(r.header.Get("Retry-After"))
	if err != nil {
		t.Fatal(err)
	}
	if seconds < 1 || seconds > 60 {
		t.Errorf("POST over the limit: Retry-After is %d, want 1 to 60 seconds", seconds)
	}
	r = w.call(nobody, "POST", embeds, two)
	r.wantStatus(t, "POST with another key", http.StatusCreated)

	w.pass(time.Duration(seconds) * time.Second)
	r = w.call(nobody, "POST", embeds, one)
	r.wantStatus(t, "POST after Retry-After", http.StatusCreated)
}
