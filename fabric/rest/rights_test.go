package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

// TestRights shows that only credentials with Management can export and erase a subscriber's data.
func TestRights(t *testing.T) {
	w := newWorld(t)
	made := w.tokens(`{"reference":"canary@example.com","password":"correct horse battery","first_name":"Canary"}`)
	of := subscribers + "/" + made.SubscriberID
	_, secret, err := w.fabric.APIKeys.Create(t.Context(), w.project.ID,
		fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Voice}}, nil)
	if err != nil {
		t.Fatal(err)
	}

	_, managing, err := w.fabric.APIKeys.Create(t.Context(), w.project.ID,
		fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Management, fabric.Voice}}, nil)
	if err != nil {
		t.Fatal(err)
	}

	manager := func(r *http.Request) { r.SetBasicAuth(w.project.ID, managing) }
	_, management := w.newKey(time.Time{}, fabric.Management)
	if got := w.call(management, "POST", of+"/erase", ""); got.status != http.StatusUnauthorized {
		t.Errorf("erasing with a key without Voice: %d %s, want 401", got.status, got.text)
	}

	weak := func(r *http.Request) { r.SetBasicAuth(w.project.ID, secret) }
	for name, auth := range map[string]authorization{"another project": w.stranger(),
		"a key without Management": weak} {
		for method, path := range map[string]string{"GET": of + "/export", "POST": of + "/erase"} {
			if got := w.call(auth, method, path, ""); got.status == http.StatusOK ||
				strings.Contains(got.text, "canary") {
				t.Errorf("%s: %s %s: %d %s, want a refusal", name, method, path, got.status, got.text)
			}
		}
	}

	got := w.call(manager, "GET", of+"/export", "")
	for _, want := range []string{`"email":"canary@example.com"`, `"reference":"canary@example.com"`,
		`"first_name":"Canary"`, `"address":"/private/canary"`, `"has_password":true`, `"recordings":[]`} {
		if got.status != http.StatusOK || !strings.Contains(got.text, want) {
			t.Errorf("the export does not contain %s: %d %s", want, got.status, got.text)
		}
	}

	if strings.Contains(got.text, "argon2") {
		t.Errorf("the export contains the password hash: %s", got.text)
	}

	got = w.call(manager, "POST", of+"/erase", "")
	if got.status != http.StatusOK || !strings.Contains(got.text, `"found":true`) ||
		!strings.Contains(got.text, `"addresses":1`) || !strings.Contains(got.text, `"why":`) ||
		strings.Contains(got.text, "canary") {
		t.Errorf("the erasure: %d %s, want 200, the data that was found, and the reason why other data stays",
			got.status, got.text)
	}

	w.wantRevoked(true, made)
	if got := w.call(manager, "POST", of+"/erase", ""); got.status != http.StatusNotFound {
		t.Errorf("erasing again: %d %s, want 404", got.status, got.text)
	}

	for _, path := range []string{of + "/export", subscribers + "/nobody/export"} {
		if got := w.call(manager, "GET", path, ""); got.status != http.StatusNotFound {
			t.Errorf("GET %s: %d, want 404", path, got.status)
		}
	}
}
