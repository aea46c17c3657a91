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
// and revoked.
func TestRegistrationTokens(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	r := w.call(boss, "POST", registrationTokenPath, `{"name":"partner","max_uses":3}`)
	r.wantStatus(t, "POST", http.StatusCreated)
	created := as[registrationTokenBody](t, r)
	if !strings.HasPrefix(created.Token, "rt_") {
		t.Fatalf("POST: the secret is %q, want rt_…", created.Token)
	}
	if !strings.HasPrefix(created.Token, created.Prefix) {
		t.Fatalf("POST: the secret is %q, want it to begin with %q", created.Token, created.Prefix)
	}
	if created.Name != "partner" {
		t.Fatalf("POST: the name is %q, want partner", created.Name)
	}
	if created.MaxUses != 3 {
		t.Fatalf("POST: the maximum is %d uses, want 3", created.MaxUses)
	}
	if created.ExpiresAt == nil {
		t.Fatal("POST: the token never expires")
	}

	token, err := w.fabric.RegistrationTokens.Authenticate(t.Context(), created.Token)
	if err != nil {
		t.Fatal(err)
	}
	if token.ID != created.ID {
		t.Errorf("Authenticate returns the token %s, want %s", token.ID, created.ID)
	}
	if token.ProjectID != w.project.ID {
		t.Errorf("Authenticate returns a token of the project %s, want %s", token.ProjectID, w.project.ID)
	}

	r = w.call(boss, "GET", registrationTokenPath, "")
	r.wantNoText(t, "GET", created.Token)
	if found := as[listed[registrationTokenBody]](t, r).Data; len(found) != 1 {
		t.Errorf("GET: got %s, want one token", r.text)
	}

	r = w.call(boss, "DELETE", registrationTokenPath+"/"+created.ID, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	for _, secret := range []string{created.Token, created.Token + "0", "rt_", "", strings.Repeat("rt_", 99)} {
		_, err := w.fabric.RegistrationTokens.Authenticate(t.Context(), secret)
		if !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("Authenticate(%.20q) = %v, want unauthenticated", secret, err)
		}
	}

	r = w.call(boss, "DELETE", registrationTokenPath+"/x", "")
	r.wantStatus(t, "DELETE of an unknown token", http.StatusNotFound)
}

// TestRegistrationTokenRights shows who may create tokens and for how long, and which values are
// refused.
func TestRegistrationTokenRights(t *testing.T) {
	w := newWorld(t)
	_, voice := w.newKey(time.Time{}, fabric.Voice)
	for _, method := range []string{"GET", "POST"} {
		r := w.call(voice, method, registrationTokenPath, `{}`)
		r.wantStatus(t, method+" with Voice", http.StatusUnauthorized)
	}

	end := time.Now().Add(time.Hour)
	_, brief := w.newKey(end, fabric.Management)
	r := w.call(brief, "POST", registrationTokenPath, `{}`)
	expiry := as[registrationTokenBody](t, r).ExpiresAt
	if expiry == nil {
		t.Fatal("the token of a key that expires never expires")
	}
	if expiry.After(end) {
		t.Errorf("the token of a key that expires at %s expires at %s", end, expiry)
	}
	r = w.call(brief, "POST", registrationTokenPath, `{"expires_at":"2099-01-01T00:00:00Z"}`)
	r.wantStatus(t, "POST of a token that outlives its key", http.StatusUnprocessableEntity)

	boss := w.manager()
	for body, want := range map[string]string{
		`{"max_uses":-1}`:                       "max_uses:invalid_parameter",
		`{"max_uses":"many"}`:                   "max_uses:invalid_parameter",
		`{"expires_at":"2001-01-01T00:00:00Z"}`: "expires_at:invalid_parameter",
	} {
		if got := w.call(boss, "POST", registrationTokenPath, body).faults(t); got != want {
			t.Errorf("POST %s: got %s, want %s", body, got, want)
		}
	}
}

// TestProjectClientRegistration shows that a key with Management can change who may register
// clients.
func TestProjectClientRegistration(t *testing.T) {
	w := newWorld(t)
	boss := w.manager()
	type body struct {
		Mode string `json:"client_registration"`
	}
	if got := as[body](t, w.call(boss, "GET", projectPath, "")); got.Mode != "off" {
		t.Errorf("a new project has client_registration %q, want off", got.Mode)
	}

	for _, mode := range []string{"token", "open", "off"} {
		r := w.call(boss, "PATCH", projectPath, `{"client_registration":"`+mode+`"}`)
		if got := as[body](t, r); got.Mode != mode {
			t.Errorf("PATCH to %s: client_registration is %q", mode, got.Mode)
		}
	}
	got := w.call(boss, "PATCH", projectPath, `{"client_registration":"maybe"}`).faults(t)
	if got != "client_registration:invalid_parameter" {
		t.Errorf("PATCH to maybe: got %s, want an invalid client_registration", got)
	}
}
