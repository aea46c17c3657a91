package rest_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

type family struct {
	ID          string  `json:"id"`
	ClientID    *string `json:"client_id"`
	RefreshedAt *string `json:"refreshed_at"`
	Refreshes   int     `json:"refreshes"`
	Revoked     bool    `json:"revoked"`
}

// families lists the used refresh tokens of a subscriber.
func (w *world) families(id string) []family {
	w.t.Helper()
	return as[listed[family]](w.t, w.call(w.basic(), "GET", subscribers+"/"+id+"/tokens", "")).Data
}

// wantRevoked checks that access and refresh tokens are refused.
func (w *world) wantRevoked(revoked ...tokens) {
	w.t.Helper()
	for i, pair := range revoked {
		w.wantInfo(pair.Token, http.StatusUnauthorized)
		if fault := w.refreshFault(w.basic(), pair.RefreshToken); fault != "refresh_token:token_invalid" {
			w.t.Errorf("refreshing with token %d: got %s, want refresh_token:token_invalid", i, fault)
		}
	}
}

// wantValid checks that access tokens are accepted. It does not use the refresh tokens.
func (w *world) wantValid(valid ...tokens) {
	w.t.Helper()
	for _, pair := range valid {
		w.wantInfo(pair.Token, http.StatusOK)
	}
}

func TestRefreshTokensOfSubscriber(t *testing.T) {
	w := newWorld(t)
	app := w.application(w.project.ID)
	one := w.tokens(`{"reference":"ada","application_id":"` + app.ID + `"}`)
	other := w.tokens(`{"reference":"ada"}`)
	bob := w.refresh(w.tokens(`{"reference":"bob"}`).RefreshToken)
	if got := w.families(one.SubscriberID); len(got) != 0 {
		t.Errorf("refresh tokens before any refresh: got %+v, want none", got)
	}

	one.RefreshToken = w.refresh(w.refresh(one.RefreshToken).RefreshToken).RefreshToken
	families := w.families(one.SubscriberID)
	if len(families) != 1 {
		t.Fatalf("refresh tokens after two refreshes: got %+v, want one family", families)
	}
	if families[0].RefreshedAt == nil {
		t.Fatal("after two refreshes, refreshed_at is null")
	}
	want := family{
		ID:          families[0].ID,
		ClientID:    &app.ID,
		RefreshedAt: families[0].RefreshedAt,
		Refreshes:   2,
	}
	if diff := cmp.Diff(want, families[0]); diff != "" {
		t.Fatalf("the family after two refreshes (-want +got):\n%s", diff)
	}

	path := subscribers + "/" + one.SubscriberID + "/tokens/"
	for _, id := range []string{"nonsense", w.project.ID, want.ID} {
		r := w.call(w.stranger(), "DELETE", path+id, "")
		r.wantStatus(t, "DELETE of the refresh token "+id+" by another project", http.StatusNotFound)
	}
	bobs := subscribers + "/" + w.open(bob.Token, fabric.SAT).SubscriberID + "/tokens/"
	r := w.call(w.basic(), "DELETE", bobs+want.ID, "")
	r.wantStatus(t, "DELETE of another subscriber's refresh token", http.StatusNotFound)
	w.wantValid(one)

	r = w.call(w.basic(), "DELETE", path+want.ID, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	w.wantRevoked(one)
	w.wantValid(other, bob)
	if got := w.families(one.SubscriberID); len(got) != 1 || !got[0].Revoked {
		t.Errorf("refresh tokens after the revocation: got %+v, want one revoked family", got)
	}
}

// TestRevokeSubscriber shows that all tokens of a subscriber can be revoked at once. This includes
// unused refresh tokens, although they are not listed, and the invites and guest tokens that the
// subscriber issued. A guest token that the backend issued remains valid.
func TestRevokeSubscriber(t *testing.T) {
	w := newWorld(t)
	one := w.tokens(`{"reference":"ada"}`)
	two := w.refresh(w.tokens(`{"reference":"ada"}`).RefreshToken)
	bob := w.tokens(`{"reference":"bob"}`)
	id := w.address(one.Token).ID
	invite := w.invite(one.Token, id)
	guest := as[tokens](t, w.call(bearer(one.Token), "POST", guests, allowing(id)))
	guestOfBackend := w.guest(id)
	path := subscribers + "/" + one.SubscriberID + "/tokens"
	r := w.call(w.stranger(), "DELETE", path, "")
	r.wantStatus(t, "DELETE by another project", http.StatusNotFound)
	r = w.call(bearer(one.Token), "DELETE", path, "")
	r.wantStatus(t, "DELETE by the subscriber", http.StatusUnauthorized)
	w.wantValid(one)

	r = w.call(w.basic(), "DELETE", path, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	w.wantRevoked(one, two)
	w.wantValid(bob)
	for _, tt := range []struct {
		name, token string
		want        int
	}{
		{"an invite", invite, http.StatusUnauthorized},
		{"the subscriber's guest token", guest.Token, http.StatusUnauthorized},
		{"the backend's guest token", guestOfBackend.Token, http.StatusOK},
	} {
		r := w.call(bearer(tt.token), "GET", addresses, "")
		r.wantStatus(t, tt.name+" after the revocation", tt.want)
	}

	if fault := w.refreshFault(w.basic(), guest.RefreshToken); fault != "refresh_token:token_invalid" {
		t.Errorf("refreshing with the subscriber's guest token: got %s, want token_invalid", fault)
	}
	if families := w.families(one.SubscriberID); len(families) != 1 || !families[0].Revoked {
		t.Errorf("the subscriber's refresh tokens: got %+v, want one revoked family", families)
	}

	w.wantValid(w.tokens(`{"reference":"ada"}`)) // new tokens are valid immediately
	r = w.call(w.basic(), "DELETE", subscribers+"/"+w.project.ID+"/tokens", "")
	r.wantStatus(t, "DELETE for an unknown subscriber", http.StatusNotFound)
}

// TestRevokeToken shows that a backend can revoke the SATs, refresh tokens, guest tokens, invites
// and embed keys of its project. API keys and service tokens are refused.
func TestRevokeToken(t *testing.T) {
	w := newWorld(t)
	const path = "/api/fabric/tokens/revoke"
	one, two := w.tokens(`{"reference":"ada"}`), w.tokens(`{"reference":"ada"}`)
	id := w.address(one.Token).ID
	guest, invite := w.guest(id), w.invite(one.Token, id)
	embed := w.embedKey(id)
	type request struct {
		auth               authorization
		method, path, body string
	}
	tests := []struct {
		name, token string
		use         request // a request that succeeds while the token is valid
		want        int     // the status of that request
	}{
		{"a SAT", one.Token, request{bearer(one.Token), "GET", addresses, ""}, http.StatusOK},
		// The SAT was issued together with the refresh token.
		{"a refresh token", two.RefreshToken, request{bearer(two.Token), "GET", addresses, ""}, http.StatusOK},
		{"a guest token", guest.Token, request{bearer(guest.Token), "GET", addresses, ""}, http.StatusOK},
		{"an invite", invite, request{bearer(invite), "GET", addresses, ""}, http.StatusOK},
		{"an embed key", embed, request{nobody, "POST", embeds, `{"token":"` + embed + `"}`}, http.StatusCreated},
	}
	for _, tt := range tests {
		got := w.call(w.stranger(), "POST", path, `{"token":"`+tt.token+`"}`).faults(t)
		if got != "token:token_invalid" {
			t.Errorf("revoking %s of another project: got %s, want token:token_invalid", tt.name, got)
		}
	}

	for body, want := range map[string]string{
		`{}`:                                     "token:missing_required_parameter",
		`{"token":5}`:                            "token:invalid_parameter",
		`{"token":"x"}`:                          "token:token_invalid",
		`{"token":"` + w.key + `"}`:              "token:token_invalid",
		`{"token":"` + w.service("Voice") + `"}`: "token:token_invalid",
	} {
		if got := w.call(w.basic(), "POST", path, body).faults(t); got != want {
			t.Errorf("POST %.40s: got %s, want %s", body, got, want)
		}
	}

	for i, tt := range tests {
		for _, valid := range tests[i:] {
			r := w.call(valid.use.auth, valid.use.method, valid.use.path, valid.use.body)
			r.wantStatus(t, "using "+valid.name+" before revoking "+tt.name, valid.want)
		}
		for range 2 { // revoking twice succeeds
			r := w.call(w.basic(), "POST", path, `{"token":"`+tt.token+`"}`)
			r.wantStatus(t, "revoking "+tt.name, http.StatusNoContent)
		}
	}
	for _, tt := range tests {
		r := w.call(tt.use.auth, tt.use.method, tt.use.path, tt.use.body)
		if r.status == tt.want {
			t.Errorf("using %s after all were revoked: got %d, want a refusal", tt.name, r.status)
		}
	}
}

// TestTokensOfDeadTokens shows that tokens issued from a revoked token are refused as well, even if
// the node that issued them had not yet read the revocation.
func TestTokensOfDeadTokens(t *testing.T) {
	t.Run("all tokens are revoked", func(t *testing.T) {
		testTokensOfDeadTokens(t, func(w *world, id string) error {
			return w.fabric.Subscribers.Revoke(t.Context(), w.project.ID, id)
		})
	})
	t.Run("the password is changed", func(t *testing.T) {
		testTokensOfDeadTokens(t, func(w *world, id string) error {
			password := "another horse"
			in := fabric.SubscriberInput{Password: &password}
			_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, id, in)
			return err
		})
	})
}

func testTokensOfDeadTokens(t *testing.T, end func(w *world, subscriberID string) error) {
	ctx := t.Context()
	w := newWorld(t)
	dead := w.tokens(`{"reference":"ada","password":"correct horse"}`)
	w.sync()
	sat := w.open(dead.Token, fabric.SAT)
	id := w.address(dead.Token).ID
	if err := end(w, dead.SubscriberID); err != nil {
		t.Fatal(err)
	}

	deaf := w.deafNode()
	subscriber := fabric.Issuer{ProjectID: w.project.ID, SAT: &sat}
	guest, err := deaf.Tokens.IssueGuest(ctx, subscriber, fabric.GuestTokenInput{AllowedAddresses: []string{id}})
	if err != nil {
		t.Fatal(err)
	}
	invite, err := deaf.Tokens.IssueInvite(ctx, sat, fabric.InviteInput{AddressID: id})
	if err != nil {
		t.Fatal(err)
	}
	refreshed, err := deaf.Tokens.Refresh(ctx, fabric.Issuer{ProjectID: w.project.ID}, dead.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}

	w.sync()
	for name, token := range map[string]string{
		"a guest token": guest.Access,
		"an invite":     invite,
		"a SAT":         refreshed.Access,
	} {
		r := w.call(bearer(token), "GET", addresses, "")
		r.wantStatus(t, name+" issued from a dead token", http.StatusUnauthorized)
	}
	for name, token := range map[string]string{
		"a guest's":        guest.Refresh,
		"the subscriber's": refreshed.Refresh,
	} {
		if fault := w.refreshFault(w.basic(), token); fault != "refresh_token:token_invalid" {
			t.Errorf("%s refresh token issued from a dead token: got %s, want token_invalid", name, fault)
		}
	}
	w.wantValid(w.tokens(`{"reference":"ada"}`))
}

// TestRevokeUsedToken shows that a refresh token that was used and then revoked is listed as revoked,
// and that the audit trail of the project has the revocation.
func TestRevokeUsedToken(t *testing.T) {
	w := newWorld(t)
	one := w.tokens(`{"reference":"ada"}`)
	used := w.refresh(one.RefreshToken)
	r := w.call(w.basic(), "POST", "/api/fabric/tokens/revoke", `{"token":"`+used.RefreshToken+`"}`)
	r.wantStatus(t, "revoking a refresh token", http.StatusNoContent)
	if got := w.families(one.SubscriberID); len(got) != 1 || !got[0].Revoked {
		t.Errorf("refresh tokens after the revocation: got %+v, want one revoked family", got)
	}

	revoked := audit.Filter{ProjectID: w.project.ID, Action: "token.revoked"}
	recorded, err := w.fabric.Audit.List(t.Context(), revoked, page.Query{Size: 50})
	if err != nil {
		t.Fatal(err)
	}
	if len(recorded.Items) != 1 {
		t.Errorf("revocations in the audit trail of the project: got %+v, want one", recorded.Items)
	}
}
