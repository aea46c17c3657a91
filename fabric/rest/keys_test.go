package rest_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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

// newKey creates a key for the world's first project.
func (w *world) newKey(expires time.Time, scopes ...fabric.Scope) (fabric.APIKey, authorization) {
	w.t.Helper()
	k, secret, err := w.fabric.APIKeys.Create(context.Background(), w.project.ID,
		fabric.APIKeyInput{Scopes: scopes, Expires: &expires}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return k, w.withKey(secret)
}

func (w *world) withKey(secret string) authorization {
	return func(r *http.Request) { r.SetBasicAuth(w.project.ID, secret) }
}

// wants checks the status of a request with these credentials.
func (w *world) wants(auth authorization, status int, when string) {
	w.t.Helper()
	if r := w.call(auth, "GET", subscribers, ""); r.status != status {
		w.t.Errorf("%s: got %d, want %d", when, r.status, status)
	}
}

func TestKeys(t *testing.T) {
	w := newWorld(t)
	_, boss := w.newKey(time.Time{}, fabric.Management, fabric.Voice, fabric.Fax)
	r := w.call(boss, "POST", keyPath, `{"name":"backend","permissions":["calling","FAX","Voice"],
		"id":"x","project_id":"y","revoked_at":"2020-01-01T00:00:00Z","hash":"z"}`)
	created := as[keyBody](t, r)
	if r.status != http.StatusOK || created.Name != "backend" ||
		!slices.Equal(created.Permissions, []string{"calling", "fax"}) ||
		!strings.HasPrefix(created.Token, created.Prefix) ||
		len(created.Token) != 66 || created.RevokedAt != nil || created.ID == "x" {
		t.Fatalf("POST %s: got %d %s, want 200 and a new key with its secret", keyPath, r.status, r.text)
	}

	w.wants(w.withKey(created.Token), http.StatusOK, "a new key")
	if err := w.fabric.APIKeys.Settle(t.Context()); err != nil { // uses are recorded in the background
		t.Fatal(err)
	}

	for _, path := range []string{keyPath, keyPath + "/" + created.ID} {
		r := w.call(boss, "GET", path, "")
		if r.status != http.StatusOK || !strings.Contains(r.text, created.ID) ||
			strings.Contains(r.text, created.Token) || strings.Contains(r.text, `"token"`) ||
			strings.Contains(r.text, "hash") {
			t.Errorf("GET %s: got %d %s, want the key without its secret", path, r.status, r.text)
		}
	}

	r = w.call(boss, "PATCH", keyPath+"/"+created.ID, `{"name":"other"}`)
	if got := as[keyBody](t, r); r.status != http.StatusOK || got.Name != "other" ||
		!slices.Equal(got.Permissions, created.Permissions) || got.Token != "" {
		t.Errorf("PATCH of the name: got %d %s, want 200 and only the name changed", r.status, r.text)
	}

	r = w.call(boss, "PATCH", keyPath+"/"+created.ID, `{"permissions":["fax"],"name":null}`)
	if got := as[keyBody](t, r); r.status != http.StatusOK || got.Name != "other" ||
		!slices.Equal(got.Permissions, []string{"fax"}) {
		t.Errorf("PATCH of the permissions: got %d %s, want 200 and only fax", r.status, r.text)
	}
	if r := w.call(boss, "DELETE", keyPath+"/"+created.ID, ""); r.status != http.StatusNoContent {
		t.Errorf("DELETE: got %d %s, want 204", r.status, r.text)
	}

	w.wants(w.withKey(created.Token), http.StatusUnauthorized, "a revoked key")
	if got := as[keyBody](t, w.call(boss, "GET", keyPath+"/"+created.ID, "")); got.RevokedAt == nil ||
		got.LastUsedAt == nil {
		t.Errorf("a revoked key is %+v, want the times of revocation and last use", got)
	}

	for _, what := range []string{"PATCH", "POST"} {
		path := keyPath + "/" + created.ID
		if what == "POST" {
			path += "/rotate"
		}
		if got := w.call(boss, what, path, `{"name":"back"}`).faults(t); got != ":token_changed" {
			t.Errorf("%s of a revoked key: got %s, want :token_changed", what, got)
		}
	}
}

func TestKeyRefusals(t *testing.T) {
	w := newWorld(t)
	k, boss := w.newKey(time.Time{}, fabric.Management, fabric.Voice)
	tests := []struct{ body, want string }{
		{`{}`, "name:missing_required_parameter permissions:missing_required_parameter"},
		{`{"name":" ","permissions":[]}`, "name:missing_required_parameter permissions:missing_required_parameter"},
		{`{"name":7,"permissions":"calling","expires_at":[]}`,
			"name:invalid_parameter permissions:invalid_parameter expires_at:invalid_parameter"},
		{`{"name":"a\u0000b","permissions":["calling"]}`, "name:invalid_parameter"},
		{`{"name":"` + strings.Repeat("n", 256) + `","permissions":["calling"]}`, "name:invalid_parameter"},
		{`{"name":"x","permissions":["calling","everything"]}`, "permissions:invalid_parameter"},
		{`{"name":"x","permissions":["calling",null]}`, "permissions:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"expires_at":"soon"}`, "expires_at:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"expires_at":"2020-01-01T00:00:00Z"}`,
			"expires_at:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"expires_at":-5}`, "expires_at:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"expires_at":1e300}`, "expires_at:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"expires_at":99999999999999999}`, "expires_at:invalid_parameter"},
		{`{"name":"x","permissions":["calling"],"subproject_id":"` + w.other.ID + `"}`,
			"subproject_id:invalid_parameter"},
		{`{"name":"x","permissions":["calling","video","fax"]}`,
			"permissions:invalid_parameter"}, // more than the caller's own scopes
	}

	for _, tt := range tests {
		if got := w.call(boss, "POST", keyPath, tt.body).faults(t); got != tt.want {
			t.Errorf("POST %.90s: got %s, want %s", tt.body, got, tt.want)
		}
		if tt.want != tests[0].want {
			w.call(boss, "PATCH", keyPath+"/"+k.ID, tt.body).faults(t)
		}
	}

	for _, body := range []string{`{"overlap":-1}`, `{"overlap":2592001}`, `{"overlap":99999999999999999}`} {
		if got := w.call(boss, "POST", keyPath+"/"+k.ID+"/rotate", body).faults(t); got != "overlap:invalid_parameter" {
			t.Errorf("rotate %s: got %s, want overlap:invalid_parameter", body, got)
		}
	}

	if all := as[listed[keyBody]](t, w.call(boss, "GET", keyPath, "")); len(all.Data) != 2 {
		t.Errorf("refusals left %d keys, want 2", len(all.Data))
	}
}

// TestKeysGiveNoMoreThanTheyHave shows that a key cannot pass on more than it has. It cannot pass
// on other scopes or a later expiry, and cannot get the secret of a key with more rights.
func TestKeysGiveNoMoreThanTheyHave(t *testing.T) {
	w := newWorld(t)
	soon := w.now().Add(time.Hour).Truncate(time.Second)
	self, boss := w.newKey(soon, fabric.Management, fabric.Fax)
	more, _ := w.newKey(soon, fabric.Voice)
	longer, _ := w.newKey(time.Time{}, fabric.Fax)
	less, lessAuth := w.newKey(soon.Add(-time.Minute), fabric.Fax)
	later := soon.Add(time.Minute).UTC().Format(time.RFC3339)
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", keyPath, `{"name":"x","permissions":["calling"]}`, "permissions:invalid_parameter"},
		{"POST", keyPath, `{"name":"x","permissions":["fax"],"expires_at":null}`, "expires_at:invalid_parameter"},
		{"POST", keyPath, `{"name":"x","permissions":["fax"],"expires_at":"` + later + `"}`,
			"expires_at:invalid_parameter"},
		{"PATCH", keyPath + "/" + self.ID, `{"permissions":["management","fax","calling"]}`,
			"permissions:invalid_parameter"},
		{"PATCH", keyPath + "/" + self.ID, `{"expires_at":null}`, "expires_at:invalid_parameter"},
		{"PATCH", keyPath + "/" + less.ID, `{"expires_at":"` + later + `","permissions":["video"]}`,
			"permissions:invalid_parameter expires_at:invalid_parameter"},
	} {
		if got := w.call(boss, tt.method, tt.path, tt.body).faults(t); got != tt.want {
			t.Errorf("%s %s %s: got %s, want %s", tt.method, tt.path, tt.body, got, tt.want)
		}
	}

	for _, k := range []fabric.APIKey{more, longer} {
		r := w.call(boss, "POST", keyPath+"/"+k.ID+"/rotate", "")
		if r.status != http.StatusForbidden || strings.TrimSpace(r.text) != `{"error":"Forbidden"}` {
			t.Errorf("rotating a key with more rights: got %d %s, want 403", r.status, r.text)
		}
	}

	created := as[keyBody](t, w.call(boss, "POST", keyPath, `{"name":"x","permissions":["fax"]}`))
	if created.ExpiresAt == nil || *created.ExpiresAt != soon.UTC().Format(time.RFC3339) {
		t.Errorf("a key made by an expiring key: got %+v, want it to expire at the same time", created)
	}
	r := w.call(boss, "PATCH", keyPath+"/"+more.ID, `{"name":"renamed","permissions":["calling"]}`)
	if r.status != http.StatusOK {
		t.Errorf("an update that keeps a key's permissions: got %d %s, want 200", r.status, r.text)
	}

	w.wants(lessAuth, http.StatusOK, "a key that was not changed")
	r = w.call(boss, "POST", keyPath+"/"+self.ID+"/rotate", `{"overlap":0}`)
	if got := as[keyBody](t, r); r.status != http.StatusOK || got.Token == "" || got.Previous != nil {
		t.Errorf("a key that rotates itself: got %d %s, want 200 and only a new secret", r.status, r.text)
	}
	if r := w.call(boss, "GET", keyPath, ""); r.status != http.StatusUnauthorized {
		t.Errorf("the previous secret, without overlap: got %d, want 401", r.status)
	}
}

// TestKeysOfOthers shows that keys without Management cannot manage any key, including their own.
// Keys of other projects are reported as unknown.
func TestKeysOfOthers(t *testing.T) {
	w := newWorld(t)
	k, boss := w.newKey(time.Time{}, fabric.Management)
	var rest []fabric.Scope
	for _, s := range fabric.Scopes() {
		if s != fabric.Management {
			rest = append(rest, s)
		}
	}

	self, plain := w.newKey(time.Time{}, rest...)
	service := must[string](t)(w.fabric.Tokens.Seal(
		fabric.Token{Kind: fabric.Service, ProjectID: w.project.ID, Scope: []string{"Voice", "Fax"},
			ExpiresAt: w.now().Add(time.Hour)}))
	sat := w.tokens(`{"reference":"ada"}`).Token
	for name, auth := range map[string]authorization{"a key": plain, "a service": bearer(service),
		"a SAT": bearer(sat), "nobody": nobody} {
		for _, op := range [][3]string{
			{"GET", keyPath}, {"POST", keyPath, `{"name":"x","permissions":["management"]}`},
			{"GET", keyPath + "/" + self.ID}, {"PATCH", keyPath + "/" + self.ID, `{"permissions":["management"]}`},
			{"PUT", keyPath + "/" + self.ID, `{"name":"y"}`}, {"DELETE", keyPath + "/" + k.ID},
			{"POST", keyPath + "/" + k.ID + "/rotate"}, {"DELETE", keyPath + "/" + k.ID + "/secret/previous"},
		} {
			wantUnauthorized(t, name, [2]string{op[0], op[1]}, w.call(auth, op[0], op[1], op[2]))
		}
	}

	p, secret, _ := w.newProject("three", fabric.Management, fabric.Voice)
	third := func(r *http.Request) { r.SetBasicAuth(p.ID, secret) }
	for _, id := range []string{k.ID, "0199a000-0000-7000-8000-000000000000", "nonsense", strings.Repeat("x", 5000)} {
		for _, op := range [][3]string{{"GET", ""}, {"PATCH", "", `{"name":"x"}`}, {"DELETE", ""},
			{"POST", "/rotate", `{"overlap":0}`}, {"DELETE", "/secret/previous"}} {
			if r := w.call(third, op[0], keyPath+"/"+id+op[1], op[2]); r.status != http.StatusNotFound ||
				strings.TrimSpace(r.text) != `{"error":"Not Found"}` {
				t.Errorf("%s of %.40s by another project: got %d %s, want 404", op[0], id, r.status, r.text)
			}
		}
	}

	if r := w.call(boss, "GET", keyPath, ""); r.status != http.StatusOK {
		t.Errorf("the key after all requests: got %d, want 200", r.status)
	}

	with := must[string](t)(w.fabric.Tokens.Seal(
		fabric.Token{Kind: fabric.Service, ProjectID: w.project.ID, Scope: []string{"management"},
			ExpiresAt: w.now().Add(time.Hour)}))
	r := w.call(bearer(with), "POST", keyPath, `{"name":"x","permissions":["management"]}`)
	if r.status != http.StatusOK {
		t.Errorf("a key made by a service: got %d %s, want 200", r.status, r.text)
	}
	r = w.call(bearer(with), "POST", keyPath, `{"name":"x","permissions":["calling"]}`)
	if got := r.faults(t); got != "permissions:invalid_parameter" {
		t.Errorf("a key with more permissions than the service: got %s, want permissions:invalid_parameter", got)
	}
}

func TestKeyExpires(t *testing.T) {
	w := newWorld(t)
	at := w.now().Add(time.Hour)
	k, auth := w.newKey(at, fabric.Voice)
	sat := as[tokens](t, w.call(auth, "POST", issue, `{"reference":"ada"}`)).Token
	w.pass(59*time.Minute + 50*time.Second)
	w.wants(auth, http.StatusOK, "before it expires") // the key is now cached
	w.pass(10 * time.Second)
	w.wants(auth, http.StatusUnauthorized, "after it expired")
	w.wantInfo(sat, http.StatusOK) // tokens issued with the key keep their own lifetime
	_, boss := w.newKey(time.Time{}, fabric.Management)
	end := itoa(w.now().Add(time.Hour).Unix())
	if r := w.call(boss, "PATCH", keyPath+"/"+k.ID, `{"expires_at":`+end+`}`); r.status != http.StatusOK {
		t.Errorf("moving the expiry: got %d %s, want 200", r.status, r.text)
	}

	w.wants(auth, http.StatusOK, "after its expiry was moved")
	r := w.call(boss, "PATCH", keyPath+"/"+k.ID, `{"expires_at":null}`)
	if got := as[keyBody](t, r); got.ExpiresAt != nil {
		t.Errorf("removing the expiry: got %d %s, want no expiry", r.status, r.text)
	}
	if err := w.fabric.APIKeys.Revoke(context.Background(), w.project.ID, k.ID); err != nil {
		t.Fatal(err)
	}

	w.wantInfo(sat, http.StatusUnauthorized) // revoking the key ends its tokens
}

func TestRotation(t *testing.T) {
	w := newWorld(t)
	_, boss := w.newKey(time.Time{}, fabric.Management, fabric.Voice)
	sat := w.tokens(`{"reference":"ada"}`).Token
	w.wants(w.basic(), http.StatusOK, "the first secret")
	rotate := func(body string) (keyBody, authorization) {
		t.Helper()
		r := w.call(boss, "POST", keyPath+"/"+w.keyID+"/rotate", body)
		got := as[keyBody](t, r)
		if r.status != http.StatusOK || len(got.Token) != 66 {
			t.Fatalf("rotating: got %d %s, want 200 and a new secret", r.status, r.text)
		}
		return got, w.withKey(got.Token)
	}

	got, second := rotate("")
	if day := w.now().Add(24 * time.Hour).UTC(); got.Previous == nil ||
		got.Previous.ExpiresAt > day.Format(time.RFC3339) ||
		got.Previous.ExpiresAt < day.Add(-time.Minute).Format(time.RFC3339) {
		t.Errorf("rotating returned %+v, want the old secret valid for a day", got)
	}

	w.wants(w.basic(), http.StatusOK, "the old secret in the overlap")
	w.wants(second, http.StatusOK, "the new secret in the overlap")
	w.wantInfo(sat, http.StatusOK) // tokens stay valid
	w.pass(24*time.Hour + time.Minute)
	w.wants(w.basic(), http.StatusUnauthorized, "the old secret after the overlap")
	w.wants(second, http.StatusOK, "the new secret after the overlap")

	_, third := rotate(`{"overlap":3600}`)
	w.wants(second, http.StatusOK, "the second secret in its overlap")
	_, fourth := rotate(`{"overlap":"60"}`)
	w.wants(second, http.StatusUnauthorized, "the second secret, when there is a fourth")
	w.wants(third, http.StatusOK, "the third secret in its overlap")
	_, fifth := rotate(`{"overlap":0}`)
	w.wants(third, http.StatusUnauthorized, "the third secret")
	w.wants(fourth, http.StatusUnauthorized, "the fourth secret, without overlap")
	w.wants(fifth, http.StatusOK, "the fifth secret")
}

// TestOldSecretEnds shows that a caller with a previous secret cannot create a key or a secret that
// would outlive the previous secret.
func TestOldSecretEnds(t *testing.T) {
	w := newWorld(t)
	k, old := w.newKey(time.Time{}, fabric.Management, fabric.Voice)
	rotated := as[keyBody](t, w.call(old, "POST", keyPath+"/"+k.ID+"/rotate", `{"overlap":3600}`))
	end, present := rotated.Previous.ExpiresAt, w.withKey(rotated.Token)
	created := as[keyBody](t, w.call(old, "POST", keyPath, `{"name":"x","permissions":["calling"]}`))
	if created.ExpiresAt == nil || *created.ExpiresAt != end {
		t.Errorf("a key created with the old secret: got %+v, want it to expire at %s", created, end)
	}

	for _, op := range [][4]string{
		{"POST", "", `{"name":"x","permissions":["calling"],"expires_at":null}`, "expires_at:invalid_parameter"},
		{"PATCH", "/" + created.ID, `{"expires_at":null}`, "expires_at:invalid_parameter"},
	} {
		if got := w.call(old, op[0], keyPath+op[1], op[2]).faults(t); got != op[3] {
			t.Errorf("%s %s with the old secret: got %s, want %s", op[0], op[2], got, op[3])
		}
	}

	if r := w.call(old, "POST", keyPath+"/"+k.ID+"/rotate", ""); r.status != http.StatusForbidden {
		t.Errorf("rotating with the old secret: got %d %s, want 403", r.status, r.text)
	}

	w.wants(present, http.StatusOK, "the present secret")
	lasting := as[keyBody](t, w.call(present, "POST", keyPath, `{"name":"y","permissions":["calling"]}`))
	if lasting.ExpiresAt != nil {
		t.Errorf("a key made with the present secret: got %+v, want one that does not expire", lasting)
	}

	w.pass(time.Hour)
	w.wants(w.withKey(created.Token), http.StatusUnauthorized, "a key created with the old secret, after the overlap")
}

// TestEndOldSecret shows that the previous secret of a key can be ended on its own, even by a
// caller that presents this secret. The current secret stays valid.
func TestEndOldSecret(t *testing.T) {
	w := newWorld(t)
	k, old := w.newKey(time.Time{}, fabric.Management, fabric.Voice)
	path := keyPath + "/" + k.ID + "/secret/previous"
	if got := w.call(old, "DELETE", path, ""); got.faults(t) != ":no_old_secret" {
		t.Errorf("ending the old secret of a key with one secret: got %d %s, want :no_old_secret", got.status, got.text)
	}

	present := w.withKey(as[keyBody](t, w.call(old, "POST", keyPath+"/"+k.ID+"/rotate", "")).Token)
	w.wants(old, http.StatusOK, "the old secret") // every node now remembers that it is valid
	if got := w.call(old, "DELETE", path, ""); got.status != http.StatusNoContent {
		t.Errorf("ending the old secret: got %d %s, want 204", got.status, got.text)
	}
	w.wants(old, http.StatusUnauthorized, "the old secret after its end")
	w.wants(present, http.StatusOK, "the present secret")
	shown := as[keyBody](t, w.call(present, "GET", keyPath+"/"+k.ID, ""))
	if shown.Previous != nil || shown.RevokedAt != nil {
		t.Errorf("after the end of the old secret, the key is %+v, want it valid, with one secret", shown)
	}
}

// TestOldSecretUsed shows that uses of the previous secret are visible, so that operators know
// when it is no longer needed.
func TestOldSecretUsed(t *testing.T) {
	w := newWorld(t)
	settle := func() { // uses are recorded in the background, one per key at a time
		t.Helper()
		if err := w.fabric.APIKeys.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	w.wants(w.basic(), http.StatusOK, "before")
	settle()
	_, _, err := w.fabric.APIKeys.Rotate(context.Background(), w.project.ID, w.keyID, 24*time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}

	w.pass(2 * time.Hour)
	w.wants(w.basic(), http.StatusOK, "the old secret")
	want := w.now().Add(-time.Minute)
	settle()
	k := must[fabric.APIKey](t)(w.fabric.APIKeys.Find(context.Background(), w.project.ID, w.keyID))
	if !k.OldUsed.After(want) || !k.LastUsed.After(want) {
		t.Errorf("the use of the old secret was not recorded: %+v", k)
	}
}
