package rest_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

const refreshPath = issue + "/refresh"

// refresh uses a refresh token, which must be accepted.
func (w *world) refresh(token string) tokens {
	w.t.Helper()
	r := w.call(w.basic(), "POST", refreshPath, `{"refresh_token":"`+token+`"}`)
	if r.status != http.StatusCreated {
		w.t.Fatalf("refreshing: got %d %s, want 201", r.status, r.text)
	}
	return as[tokens](w.t, r)
}

// refreshFault refreshes a token, which must fail, and returns the error code.
func (w *world) refreshFault(auth authorization, token string) string {
	w.t.Helper()
	return w.call(auth, "POST", refreshPath, `{"refresh_token":"`+token+`"}`).faults(w.t)
}

// wantInfo checks the status of a request for subscriber info with a SAT.
func (w *world) wantInfo(sat string, status int) {
	w.t.Helper()
	r := w.call(bearer(sat), "GET", "/subscriber/info", "")
	r.wantStatus(w.t, "GET of subscriber info", status)
}

func TestRefresh(t *testing.T) {
	w := newWorld(t)
	one := w.tokens(`{"reference":"ada"}`)
	two := w.refresh(one.RefreshToken)
	three := w.refresh(two.RefreshToken)
	for _, sat := range []string{one.Token, two.Token, three.Token} {
		w.wantInfo(sat, http.StatusOK)
	}

	newest := w.open(three.RefreshToken, fabric.Refresh)
	if life := newest.ExpiresAt.Sub(newest.IssuedAt); life != 2*time.Hour+5*time.Minute {
		t.Errorf("a new refresh token lives for %v, want 2 h 5 min", life)
	}
	if got := w.refreshFault(w.basic(), one.RefreshToken); got != "refresh_token:token_invalid" {
		t.Errorf("a used refresh token: got %s, want token_invalid", got)
	}

	for _, sat := range []string{one.Token, two.Token, three.Token} {
		w.wantInfo(sat, http.StatusUnauthorized) // the whole family is revoked
	}

	if got := w.refreshFault(w.basic(), three.RefreshToken); got != "refresh_token:token_invalid" {
		t.Errorf("the last refresh token of a revoked family: got %s, want token_invalid", got)
	}

	w.wantInfo(w.tokens(`{"reference":"ada"}`).Token, http.StatusOK) // the subscriber remains
}

func TestRefreshRefusals(t *testing.T) {
	w := newWorld(t)
	got := w.tokens(`{"reference":"ada"}`)
	guest := w.guest(w.address(got.Token).ID)
	invite := w.invite(got.Token, w.address(got.Token).ID)
	elsewhere := newWorld(t).tokens(`{"reference":"ada"}`)
	foreign := as[tokens](t, w.call(w.stranger(), "POST", issue, `{"reference":"eve"}`))
	tests := []struct{ name, token, want string }{
		{"none", "", "missing_required_parameter"},
		{"a word", "nonsense", "invalid_token_format"},
		{"dots", "....", "token_invalid"},
		{"long", strings.Repeat("x.", 20_000), "invalid_token_format"},
		{"a SAT", got.Token, "not_a_refresh_token"},
		{"a guest token", guest.Token, "not_a_refresh_token"},
		{"an invite", invite, "not_a_refresh_token"},
		{"another ring's", elsewhere.RefreshToken, "token_invalid"},
		{"another project's", foreign.RefreshToken, "token_invalid"},
		{"changed", altered(got.RefreshToken), "token_invalid"},
		{"cut off", got.RefreshToken[:len(got.RefreshToken)-10], "token_invalid"},
	}

	for _, tt := range tests {
		if fault := w.refreshFault(w.basic(), tt.token); fault != "refresh_token:"+tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, fault, tt.want)
		}
	}

	for _, body := range []string{`{"refresh_token":null}`, `{}`} {
		fault := w.call(w.basic(), "POST", refreshPath, body).faults(t)
		if fault != "refresh_token:missing_required_parameter" {
			t.Errorf("%s: got %s, want a missing refresh_token", body, fault)
		}
	}

	fault := w.call(w.basic(), "POST", refreshPath, `{"refresh_token":[1]}`).faults(t)
	if fault != "refresh_token:invalid_parameter" {
		t.Errorf("an array: got %s, want an invalid refresh_token", fault)
	}

	w.pass(7500 * time.Second)
	if fault := w.refreshFault(w.basic(), got.RefreshToken); fault != "refresh_token:token_expired" {
		t.Errorf("an expired token: got %s, want token_expired", fault)
	}
}

// TestUsedTokenStaysUsed shows that a long-lived refresh token that was used cannot be used again
// after its short-lived successors have expired.
func TestUsedTokenStaysUsed(t *testing.T) {
	w := newWorld(t)
	body := `{"reference":"ada","expire_at":` + itoa(time.Now().Add(20*24*time.Hour).Unix()) + `}`
	one := w.tokens(body)
	w.refresh(one.RefreshToken)
	w.pass(3 * time.Hour)
	if err := w.rows.SweepFamilies(context.Background()); err != nil {
		t.Fatal(err)
	}
	if fault := w.refreshFault(w.basic(), one.RefreshToken); fault != "refresh_token:token_invalid" {
		t.Errorf("a used token: got %s, want token_invalid", fault)
	}
}

func TestRefreshAtOnce(t *testing.T) {
	w := newWorld(t)
	got := w.tokens(`{"reference":"ada"}`)
	body := `{"refresh_token":"` + got.RefreshToken + `"}`
	var successors atomic.Int32
	var requests sync.WaitGroup
	for range 50 {
		requests.Go(func() {
			r := w.call(w.basic(), "POST", refreshPath, body)
			switch r.status {
			case http.StatusCreated:
				successors.Add(1)
			case http.StatusUnprocessableEntity:
			default:
				t.Errorf("a concurrent refresh: got %d %s, want 201 or 422", r.status, r.text)
			}
		})
	}

	requests.Wait()
	if n := successors.Load(); n != 1 {
		t.Errorf("one refresh token returned %d successors, want 1", n)
	}
}

func TestRefreshOfGuest(t *testing.T) {
	w := newWorld(t)
	id := w.address(w.tokens(`{"reference":"ada"}`).Token).ID
	next := w.refresh(w.guest(id).RefreshToken)
	if got := w.open(next.Token, fabric.Guest).AddressIDs; !slices.Equal(got, []string{id}) {
		t.Errorf("a refreshed guest token reaches %v, want %s", got, id)
	}
	if next.SubscriberID != "" {
		t.Errorf("refreshing a guest token revealed the subscriber %s", next.SubscriberID)
	}
}

func TestDisabledSubscriber(t *testing.T) {
	w := newWorld(t)
	ada := w.tokens(`{"reference":"ada"}`)
	bob := w.tokens(`{"reference":"bob"}`)
	adas, bobs := w.address(ada.Token).ID, w.address(bob.Token).ID
	w.setDisabled(ada.SubscriberID, true)
	w.wantInfo(ada.Token, http.StatusUnauthorized)
	if fault := w.refreshFault(w.basic(), ada.RefreshToken); fault != "refresh_token:token_invalid" {
		t.Errorf("refresh: got %s, want token_invalid", fault)
	}

	fault := w.call(w.basic(), "POST", issue, `{"reference":"ada"}`).faults(t)
	if fault != "reference:invalid_parameter" {
		t.Errorf("new tokens: got %s, want an invalid reference", fault)
	}

	r := w.call(bearer(bob.Token), "GET", addresses+"/"+adas, "")
	r.wantStatus(t, "GET of the subscriber's address", http.StatusNotFound)
	w.wantReach("another subscriber", bob.Token, bobs)

	fault = w.call(w.basic(), "POST", guests, allowing(adas)).faults(t)
	if fault != "allowed_addresses:must_belong_to_project" {
		t.Errorf("a guest token for the subscriber's address: got %s, want must_belong_to_project", fault)
	}

	w.setDisabled(ada.SubscriberID, false)
	w.wantInfo(ada.Token, http.StatusUnauthorized) // a revocation is final
	w.pass(time.Minute)
	w.wantInfo(w.tokens(`{"reference":"ada"}`).Token, http.StatusOK)
}

func TestDeletedSubscriber(t *testing.T) {
	w := newWorld(t)
	got := w.tokens(`{"reference":"ada"}`)
	r := w.call(w.basic(), "DELETE", subscribers+"/"+got.SubscriberID, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	w.wantInfo(got.Token, http.StatusUnauthorized)
	if fault := w.refreshFault(w.basic(), got.RefreshToken); fault != "refresh_token:token_invalid" {
		t.Errorf("refresh: got %s, want token_invalid", fault)
	}
	if again := w.tokens(`{"reference":"ada"}`); again.SubscriberID == got.SubscriberID {
		t.Error("a new subscriber has the id of a deleted one")
	}
}
