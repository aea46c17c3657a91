package rest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
)

const keyPath = "/api/project/tokens"

type keyBody struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Permissions []string `json:"permissions"`
	Token       string   `json:"token"`
	Prefix      string   `json:"prefix"`
	ExpiresAt   *string  `json:"expires_at"`
	RevokedAt   *string  `json:"revoked_at"`
	LastUsedAt  *string  `json:"last_used_at"`
	Previous    *struct {
		ExpiresAt  string  `json:"expires_at"`
		LastUsedAt *string `json:"last_used_at"`
	} `json:"previous"`
}

// wants checks the status of a request with these credentials.
func (w *world) wants(auth authorization, status int, when string) {
	w.t.Helper()
	r := w.call(auth, "GET", subscribers, "")
	r.wantStatus(w.t, when, status)
}

// wantExpiry fails the test unless a key expires at the given time.
func (w *world) wantExpiry(key keyBody, want, what string) {
	w.t.Helper()
	if key.ExpiresAt == nil {
		w.t.Errorf("%s never expires, want it to expire at %s", what, want)
	} else if *key.ExpiresAt != want {
		w.t.Errorf("%s expires at %s, want %s", what, *key.ExpiresAt, want)
	}
}

// settle waits until the uses of keys are recorded, which happens in the background.
func (w *world) settle() {
	w.t.Helper()
	if err := w.fabric.APIKeys.Settle(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func TestKeys(t *testing.T) {
	w := newWorld(t)
	_, boss := w.newKey(time.Time{}, fabric.Management, fabric.Voice, fabric.Fax)
	r := w.call(boss, "POST", keyPath, `{"name":"backend","permissions":["calling","FAX","Voice"],
		"id":"x","project_id":"y","revoked_at":"2020-01-01T00:00:00Z","hash":"z"}`)
	r.wantStatus(t, "POST", http.StatusOK)
	created := as[keyBody](t, r)
	if created.ID == "x" {
		t.Fatal("POST: the key has the id that the caller chose")
	}
	if len(created.Token) != 66 {
		t.Fatalf("POST: the secret has %d characters, want 66", len(created.Token))
	}
	if !strings.HasPrefix(created.Token, created.Prefix) {
		t.Fatalf("POST: the secret is %s, want it to begin with %s", created.Token, created.Prefix)
	}
	want := keyBody{
		ID:          created.ID,
		Name:        "backend",
		Permissions: []string{"calling", "fax"},
		Token:       created.Token,
		Prefix:      created.Prefix,
	}
	if diff := cmp.Diff(want, created); diff != "" {
		t.Fatalf("POST (-want +got):\n%s", diff)
	}

	w.wants(w.withKey(created.Token), http.StatusOK, "a new key")
	w.settle()
	path := keyPath + "/" + created.ID
	for _, path := range []string{keyPath, path} {
		r := w.call(boss, "GET", path, "")
		r.wantStatus(t, "GET "+path, http.StatusOK)
		r.wantText(t, "GET "+path, created.ID)
		r.wantNoText(t, "GET "+path, created.Token, `"token"`, "hash")
	}

	r = w.call(boss, "PATCH", path, `{"name":"other"}`)
	r.wantStatus(t, "PATCH of the name", http.StatusOK)
	want.Name = "other"
	want.Token = ""
	got := as[keyBody](t, r)
	want.LastUsedAt = got.LastUsedAt
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PATCH of the name (-want +got):\n%s", diff)
	}

	r = w.call(boss, "PATCH", path, `{"permissions":["fax"],"name":null}`)
	r.wantStatus(t, "PATCH of the permissions", http.StatusOK)
	want.Permissions = []string{"fax"}
	if diff := cmp.Diff(want, as[keyBody](t, r)); diff != "" {
		t.Errorf("PATCH of the permissions (-want +got):\n%s", diff)
	}
}

func TestRevokeKey(t *testing.T) {
	w := newWorld(t)
	boss := w.administrator()
	key, revoked := w.newKey(time.Time{}, fabric.Voice)
	w.wants(revoked, http.StatusOK, "a new key")
	w.settle()

	path := keyPath + "/" + key.ID
	r := w.call(boss, "DELETE", path, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	w.wants(revoked, http.StatusUnauthorized, "a revoked key")
	got := as[keyBody](t, w.call(boss, "GET", path, ""))
	if got.RevokedAt == nil {
		t.Error("GET of a revoked key: there is no revoked_at")
	}
	if got.LastUsedAt == nil {
		t.Error("GET of a revoked key: there is no last_used_at")
	}

	if got := w.call(boss, "PATCH", path, `{"name":"back"}`).faults(t); got != ":token_changed" {
		t.Errorf("PATCH of a revoked key: got %s, want :token_changed", got)
	}
	if got := w.call(boss, "POST", path+"/rotate", `{"name":"back"}`).faults(t); got != ":token_changed" {
		t.Errorf("rotating a revoked key: got %s, want :token_changed", got)
	}
}

func TestKeyRefusals(t *testing.T) {
	w := newWorld(t)
	k, boss := w.newKey(time.Time{}, fabric.Management, fabric.Voice)
	const missing = "name:missing_required_parameter permissions:missing_required_parameter"
	tests := []struct{ body, want string }{
		{`{}`, missing},
		{`{"name":" ","permissions":[]}`, missing},
		{
			`{"name":7,"permissions":"calling","expires_at":[]}`,
			"name:invalid_parameter permissions:invalid_parameter expires_at:invalid_parameter",
		},
		{`{"name":"a\u0000b","permissions":["calling"]}`, "name:invalid_parameter"},
		{`{"name":"` + strings.Repeat("n", 256) + `","permissions":["calling"]}`, "name:invalid_parameter"},
		{`{"name":"x","permissions":["calling","everything"]}`, "permissions:invalid_parameter"},
		{`{"name":"x","permissions":["calling",null]}`, "permissions:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"expires_at":"soon"}`, "expires_at:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"expires_at":"2020-01-01T00:00:00Z"}`, "expires_at:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"expires_at":-5}`, "expires_at:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"expires_at":1e300}`, "expires_at:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"expires_at":99999999999999999}`, "expires_at:invalid_parameter"},
		{
			`{"name":"x","permissions":["calling"],"subproject_id":"` + w.other.ID + `"}`,
			"subproject_id:invalid_parameter",
		},
		// A key cannot have scopes that its creator does not have.
		{`{"name":"x","permissions":["calling","video","fax"]}`, "permissions:invalid_parameter"},
	}

	for _, tt := range tests {
		if got := w.call(boss, "POST", keyPath, tt.body).faults(t); got != tt.want {
			t.Errorf("POST %.90s: got %s, want %s", tt.body, got, tt.want)
		}
		if tt.want != missing { // an update does not need all members
			w.call(boss, "PATCH", keyPath+"/"+k.ID, tt.body).faults(t)
		}
	}

	for _, body := range []string{`{"overlap":-1}`, `{"overlap":2592001}`, `{"overlap":99999999999999999}`} {
		if got := w.call(boss, "POST", keyPath+"/"+k.ID+"/rotate", body).faults(t); got != "overlap:invalid_parameter" {
			t.Errorf("rotate %s: got %s, want overlap:invalid_parameter", body, got)
		}
	}

	if all := as[listed[keyBody]](t, w.call(boss, "GET", keyPath, "")); len(all.Data) != 2 {
		t.Errorf("after the refusals there are %d keys, want 2", len(all.Data))
	}
}

// TestKeysGiveNoMoreThanTheyHave shows that a key can give another key neither scopes that it does not
// have, nor a later expiry than its own. It cannot get the secret of a key with more rights.
func TestKeysGiveNoMoreThanTheyHave(t *testing.T) {
	w := newWorld(t)
	soon := w.now().Add(time.Hour).Truncate(time.Second)
	self, boss := w.newKey(soon, fabric.Management, fabric.Fax)
	more, _ := w.newKey(soon, fabric.Voice)
	longer, _ := w.newKey(time.Time{}, fabric.Voice)
	less, lessAuth := w.newKey(soon.Add(-time.Minute), fabric.Fax)
	later := soon.Add(time.Minute).UTC().Format(time.RFC3339)
	const badScopes, badExpiry = "permissions:invalid_parameter", "expires_at:invalid_parameter"
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", "", `{"name":"x","permissions":["calling"]}`, badScopes},
		{"POST", "", `{"name":"x","permissions":["fax"],"expires_at":null}`, badExpiry},
		{"POST", "", `{"name":"x","permissions":["fax"],"expires_at":"` + later + `"}`, badExpiry},
		{"PATCH", "/" + self.ID, `{"permissions":["management","fax","calling"]}`, badScopes},
		{"PATCH", "/" + self.ID, `{"expires_at":null}`, badExpiry},
		{"PATCH", "/" + longer.ID, `{"permissions":["calling","fax"]}`, badExpiry},
		{
			"PATCH", "/" + less.ID,
			`{"expires_at":"` + later + `","permissions":["video"]}`,
			badScopes + " " + badExpiry,
		},
	} {
		if got := w.call(boss, tt.method, keyPath+tt.path, tt.body).faults(t); got != tt.want {
			t.Errorf("%s %s: got %s, want %s", tt.method, tt.body, got, tt.want)
		}
	}

	for _, k := range []fabric.APIKey{more, longer} {
		r := w.call(boss, "POST", keyPath+"/"+k.ID+"/rotate", "")
		r.wantError(t, "rotating a key with more rights", http.StatusForbidden)
	}

	created := as[keyBody](t, w.call(boss, "POST", keyPath, `{"name":"x","permissions":["fax"]}`))
	w.wantExpiry(created, soon.UTC().Format(time.RFC3339), "a key created by an expiring key")
	r := w.call(boss, "PATCH", keyPath+"/"+more.ID, `{"name":"renamed","permissions":["calling"]}`)
	r.wantStatus(t, "an update that keeps a key's permissions", http.StatusOK)
	r = w.call(boss, "PATCH", keyPath+"/"+longer.ID, `{"name":"renamed","permissions":["calling"]}`)
	r.wantStatus(t, "an update that keeps the permissions of a key without an expiry", http.StatusOK)
	r = w.call(boss, "PATCH", keyPath+"/"+longer.ID,
		`{"permissions":["calling","fax"],"expires_at":"`+soon.UTC().Format(time.RFC3339)+`"}`)
	r.wantStatus(t, "an update that adds a permission and lets the key expire in time", http.StatusOK)
	w.wants(lessAuth, http.StatusOK, "a key that was not changed")

	r = w.call(boss, "POST", keyPath+"/"+self.ID+"/rotate", `{"overlap":0}`)
	r.wantStatus(t, "a key that rotates itself", http.StatusOK)
	rotated := as[keyBody](t, r)
	if rotated.Token == "" {
		t.Error("a key that rotates itself gets no secret")
	}
	if rotated.Previous != nil {
		t.Errorf("a key that rotates itself has the previous secret %+v, want none", *rotated.Previous)
	}
	r = w.call(boss, "GET", keyPath, "")
	r.wantStatus(t, "the previous secret, without overlap", http.StatusUnauthorized)
}

// TestKeysOfOthers shows that keys without Management cannot manage any key, including their own.
// Keys of other projects are reported as unknown.
func TestKeysOfOthers(t *testing.T) {
	w := newWorld(t)
	k, boss := w.newKey(time.Time{}, fabric.Management)
	others := slices.DeleteFunc(fabric.Scopes(), func(s fabric.Scope) bool { return s == fabric.Management })
	self, plain := w.newKey(time.Time{}, others...)
	for name, auth := range map[string]authorization{
		"a key":     plain,
		"a service": bearer(w.service("Voice", "Fax")),
		"a SAT":     bearer(w.tokens(`{"reference":"ada"}`).Token),
		"nobody":    nobody,
	} {
		for _, request := range []struct{ method, path, body string }{
			{"GET", "", ""},
			{"POST", "", `{"name":"x","permissions":["management"]}`},
			{"GET", "/" + self.ID, ""},
			{"PATCH", "/" + self.ID, `{"permissions":["management"]}`},
			{"PUT", "/" + self.ID, `{"name":"y"}`},
			{"DELETE", "/" + k.ID, ""},
			{"POST", "/" + k.ID + "/rotate", ""},
			{"DELETE", "/" + k.ID + "/secret/previous", ""},
		} {
			w.wantUnauthorized(name, auth, request.method, keyPath+request.path, request.body)
		}
	}

	third, secret, _ := w.newProject("three", fabric.Management, fabric.Voice)
	unknown := "0199a000-0000-7000-8000-000000000000"
	for _, id := range []string{k.ID, unknown, "nonsense", strings.Repeat("x", 5000)} {
		for _, request := range []struct{ method, path, body string }{
			{"GET", "", ""},
			{"PATCH", "", `{"name":"x"}`},
			{"DELETE", "", ""},
			{"POST", "/rotate", `{"overlap":0}`},
			{"DELETE", "/secret/previous", ""},
		} {
			path := keyPath + "/" + id + request.path
			r := w.call(basicAuth(third.ID, secret), request.method, path, request.body)
			r.wantError(t, fmt.Sprintf("%s %.40s by another project", request.method, path), http.StatusNotFound)
		}
	}

	r := w.call(boss, "GET", keyPath, "")
	r.wantStatus(t, "GET with the key after all requests", http.StatusOK)
}

func TestKeysOfServices(t *testing.T) {
	w := newWorld(t)
	manager := bearer(w.service("management"))
	r := w.call(manager, "POST", keyPath, `{"name":"x","permissions":["management"]}`)
	r.wantStatus(t, "POST by a service", http.StatusOK)
	got := w.call(manager, "POST", keyPath, `{"name":"x","permissions":["calling"]}`).faults(t)
	if got != "permissions:invalid_parameter" {
		t.Errorf("a key with more permissions than the service: got %s, want permissions:invalid_parameter", got)
	}
}
