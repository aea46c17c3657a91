package rest_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

const registrationTokenPath = "/api/project/registration_tokens"

type registrationTokenBody struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Token     string     `json:"token"`
	Prefix    string     `json:"prefix"`
	MaxUses   int        `json:"max_uses"`
	Uses      int        `json:"uses"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *string    `json:"revoked_at"`
}

// TestRegistrationTokens shows that an initial access token is created, listed without its secret,
// and revoked. Another project cannot revoke it.
func TestRegistrationTokens(t *testing.T) {
	w := newWorld(t)
	_, boss := w.newKey(time.Time{}, fabric.Management)
	r := w.call(boss, "POST", registrationTokenPath, `{"name":"partner","max_uses":3}`)
	created := as[registrationTokenBody](t, r)
	if r.status != http.StatusCreated || created.Name != "partner" || !strings.HasPrefix(created.Token, "rt_") ||
		!strings.HasPrefix(created.Token, created.Prefix) || created.MaxUses != 3 || created.ExpiresAt == nil {
		t.Fatalf("creating = %d %s, want 201 and the fields given", r.status, r.text)
	}
	k, err := w.fabric.RegistrationTokens.Authenticate(t.Context(), created.Token)
	if err != nil || k.ProjectID != w.project.ID || k.ID != created.ID {
		t.Errorf("Authenticate = %+v, %v, want the token created", k, err)
	}

	r = w.call(boss, "GET", registrationTokenPath, "")
	if listed := as[struct{ Data []registrationTokenBody }](t, r).Data; len(listed) != 1 ||
		strings.Contains(r.text, created.Token) {
		t.Errorf("listing = %d %s, want the token without its secret", r.status, r.text)
	}

	if r := w.call(boss, "DELETE", registrationTokenPath+"/"+created.ID, ""); r.status != http.StatusNoContent {
		t.Errorf("revoking = %d %s, want 204", r.status, r.text)
	}
	for _, secret := range []string{created.Token, created.Token + "0", "rt_", "", strings.Repeat("rt_", 99)} {
		_, err := w.fabric.RegistrationTokens.Authenticate(t.Context(), secret)
		if !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("Authenticate(%.20q) = %v, want unauthenticated", secret, err)
		}
	}

	if r := w.call(boss, "DELETE", registrationTokenPath+"/x", ""); r.status != http.StatusNotFound {
		t.Errorf("revoking an unknown token = %d, want 404", r.status)
	}
}

// TestRegistrationTokenRights shows who may create tokens and for how long, and which values are
// refused.
func TestRegistrationTokenRights(t *testing.T) {
	w := newWorld(t)
	_, voice := w.newKey(time.Time{}, fabric.Voice)
	for _, method := range []string{"GET", "POST"} {
		if r := w.call(voice, method, registrationTokenPath, `{}`); r.status != http.StatusUnauthorized {
			t.Errorf("%s with Voice = %d, want 401", method, r.status)
		}
	}

	end := time.Now().Add(time.Hour)
	_, brief := w.newKey(end, fabric.Management)
	r := w.call(brief, "POST", registrationTokenPath, `{}`)
	if at := as[registrationTokenBody](t, r).ExpiresAt; at == nil || at.After(end) {
		t.Errorf("the token of a key that expires = %s, want one that expires with it", r.text)
	}

	_, boss := w.newKey(time.Time{}, fabric.Management)
	for body, fault := range map[string]string{
		`{"max_uses":-1}`:                       "max_uses:invalid_parameter",
		`{"max_uses":"many"}`:                   "max_uses:invalid_parameter",
		`{"expires_at":"2001-01-01T00:00:00Z"}`: "expires_at:invalid_parameter",
	} {
		if r := w.call(boss, "POST", registrationTokenPath, body); r.faults(t) != fault {
			t.Errorf("%s = %d %s, want %s", body, r.status, r.text, fault)
		}
	}
	if r := w.call(brief, "POST", registrationTokenPath, `{"expires_at":"2099-01-01T00:00:00Z"}`); r.status != 422 {
		t.Errorf("a token that outlives its key = %d %s, want 422", r.status, r.text)
	}
}

// TestProjectClientRegistration shows that a key with Management can change who may register
// clients. Clients show how they were registered.
func TestProjectClientRegistration(t *testing.T) {
	w := newWorld(t)
	_, boss := w.newKey(time.Time{}, fabric.Management)
	type body struct {
		Clients string `json:"client_registration"`
	}
	if got := as[body](t, w.call(boss, "GET", "/api/project", "")); got.Clients != "off" {
		t.Errorf("a new project has client_registration %q, want off", got.Clients)
	}

	for _, mode := range []string{"token", "open", "off"} {
		r := w.call(boss, "PATCH", "/api/project", `{"client_registration":"`+mode+`"}`)
		if got := as[body](t, r); got.Clients != mode {
			t.Errorf("PATCH to %s = %d %s, want the new mode", mode, r.status, r.text)
		}
	}

	r := w.call(boss, "PATCH", "/api/project", `{"client_registration":"maybe"}`)
	if faults := r.faults(t); faults != "client_registration:invalid_parameter" {
		t.Errorf("PATCH to maybe = %d %s, want an invalid client_registration", r.status, r.text)
	}
}
