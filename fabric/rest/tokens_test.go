package rest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

const issue = "/api/fabric/subscribers/tokens"

// header decodes the public header of a token.
func header(t *testing.T, token string) map[string]string {
	t.Helper()
	head, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		t.Fatalf("reading token %q: %v", token, err)
	}
	var members map[string]string
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatalf("reading token %q: %v", token, err)
	}
	return members
}

// lifetime returns how long a token is valid, to the second.
func lifetime(t fabric.Token) time.Duration { return t.ExpiresAt.Sub(t.IssuedAt).Round(time.Second) }

// open opens a token, which must be of the given kind.
func (w *world) open(token string, kind fabric.TokenKind) fabric.Token {
	w.t.Helper()
	t, err := w.fabric.Tokens.Open(context.Background(), token, kind)
	if err != nil {
		w.t.Fatalf("opening a %s: %v", kind, err)
	}
	return t
}

// application creates an OAuth client.
func (w *world) application(projectID string) idp.Client {
	w.t.Helper()
	c := idp.Client{
		ID:        "0199a000-0000-7000-8000-" + projectID[len(projectID)-12:],
		ProjectID: projectID,
		Name:      "Dialer",
		Scopes:    []string{"openid", "Voice"},
	}
	if err := w.rows.CreateClient(context.Background(), c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func TestSubscriberTokens(t *testing.T) {
	w := newWorld(t)
	r := w.call(w.basic(), "POST", issue, `{"reference":"ada@example.com","ttl":5,"subscriber_id":"x"}`)
	r.wantStatus(t, "POST", http.StatusOK)
	if got := r.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("POST: Cache-Control is %q, want no-store", got)
	}

	got := as[tokens](t, r)
	for token, typ := range map[string]string{got.Token: "SAT", got.RefreshToken: "Refresh"} {
		members := header(t, token)
		for member, want := range map[string]string{"typ": typ, "ch": host, "alg": "dir", "enc": "A256GCM"} {
			if members[member] != want {
				t.Errorf("the header of a %s has the %s %q, want %q", typ, member, members[member], want)
			}
		}
	}
	if life := lifetime(w.open(got.Token, fabric.SAT)); life != 2*time.Hour {
		t.Errorf("a SAT lives for %v, want 2 h", life)
	}
	if life := lifetime(w.open(got.RefreshToken, fabric.Refresh)); life != 2*time.Hour+5*time.Minute {
		t.Errorf("a refresh token lives for %v, want 2 h 5 min", life)
	}
}

// TestReferences shows that a reference creates a subscriber if none has it, and that a known
// subscriber's profile is changed.
func TestReferences(t *testing.T) {
	w := newWorld(t)
	ada := w.tokens(`{"reference":"ada@example.com","first_name":"Ada","time_zone":"CET"}`).SubscriberID
	got := as[envelope](t, w.call(w.basic(), "GET", subscribers+"/"+ada, "")).Subscriber
	for member, want := range map[string]string{
		"email":      "ada@example.com",
		"first_name": "Ada",
		"timezone":   "CET",
	} {
		if got[member] != want {
			t.Errorf("the new subscriber has the %s %q, want %q", member, got[member], want)
		}
	}

	for _, reference := range []string{"ada@example.com", "ADA@Example.com"} {
		if again := w.tokens(`{"reference":"` + reference + `"}`).SubscriberID; again != ada {
			t.Errorf("the reference %s returns the subscriber %s, want %s", reference, again, ada)
		}
	}

	created := w.create(`{"email":"bob@example.com"}`).ID
	if bob := w.tokens(`{"reference":"bob@example.com","last_name":"B"}`).SubscriberID; bob != created {
		t.Errorf("a reference that is an email returns the subscriber %s, want %s", bob, created)
	}
	got = as[envelope](t, w.call(w.basic(), "GET", subscribers+"/"+created, "")).Subscriber
	if got["last_name"] != "B" {
		t.Errorf("a known subscriber has the last_name %q, want B", got["last_name"])
	}
}

func TestKnownSubscriberIsNotWritten(t *testing.T) {
	w := newWorld(t)
	body := `{"reference":"ada","password":"correct horse","first_name":"Ada","country":"UK"}`
	path := subscribers + "/" + w.tokens(body).SubscriberID
	before := as[envelope](t, w.call(w.basic(), "GET", path, ""))
	w.pass(time.Minute)
	w.tokens(body)
	after := as[envelope](t, w.call(w.basic(), "GET", path, ""))
	if after.UpdatedAt != before.UpdatedAt {
		t.Errorf("updated_at of an unchanged subscriber is %s, want %s", after.UpdatedAt, before.UpdatedAt)
	}
}

func TestTokenForms(t *testing.T) {
	w := newWorld(t)
	expiry := time.Now().Add(time.Hour).Unix()
	multipart := "--x\r\nContent-Disposition: form-data; name=\"reference\"\r\n\r\nada\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"expire_at\"\r\n\r\n" + fmt.Sprint(expiry) + "\r\n--x--\r\n"
	for _, tt := range []struct{ kind, body string }{
		{"application/json", fmt.Sprintf(`{"reference":"ada","expire_at":%d}`, expiry)},
		{"application/x-www-form-urlencoded", fmt.Sprintf("reference=ada&expire_at=%d", expiry)},
		{"multipart/form-data; boundary=x", multipart},
	} {
		r := w.callAs(w.basic(), "POST", issue, tt.kind, tt.body)
		if r.status != http.StatusOK {
			t.Errorf("POST %s: got %d %s, want 200", tt.kind, r.status, r.text)
			continue
		}
		if sat := w.open(as[tokens](t, r).Token, fabric.SAT); sat.ExpiresAt.Unix() != expiry {
			t.Errorf("POST %s: expires at %d, want %d", tt.kind, sat.ExpiresAt.Unix(), expiry)
		}
	}
}

func TestTokenRefusals(t *testing.T) {
	w := newWorld(t)
	foreign := w.application(w.other.ID).ID
	now := time.Now().Unix()
	tests := []struct{ body, want string }{
		{`{}`, "reference:missing_required_parameter"},
		{`{"reference":"  "}`, "reference:missing_required_parameter"},
		{`{"reference":7}`, "reference:invalid_parameter"},
		{`{"reference":"` + strings.Repeat("r", 256) + `"}`, "reference:invalid_parameter"},
		{`{"reference":"a\u0000b"}`, "reference:invalid_parameter"},
		{`{"reference":"ada","expire_at":"soon"}`, "expire_at:invalid_parameter"},
		{`{"reference":"ada","expire_at":1e300}`, "expire_at:invalid_parameter"},
		{`{"reference":"ada","expire_at":1.5}`, "expire_at:invalid_parameter"},
		{`{"reference":"ada","expire_at":-1}`, "expire_at:invalid_parameter"},
		{fmt.Sprintf(`{"reference":"ada","expire_at":%d}`, now-1), "expire_at:invalid_parameter"},
		{fmt.Sprintf(`{"reference":"ada","expire_at":%d}`, now+31*24*3600), "expire_at:invalid_parameter"},
		{`{"reference":"ada","application_id":"x"}`, "application_id:invalid_parameter"},
		{
			`{"reference":"ada","application_id":"0199a000-0000-7000-8000-000000000000"}`,
			"application_id:does_not_exist",
		},
		{`{"reference":"ada","application_id":"` + foreign + `"}`, "application_id:does_not_exist"},
		{`{"reference":"ada","password":"short"}`, "password:invalid_parameter"},
		{`{"reference":"ada","fingerprint":"` + strings.Repeat("a", 42) + `"}`, "fingerprint:invalid_parameter"},
		{`{"reference":"ada","fingerprint":"` + strings.Repeat("a", 44) + `"}`, "fingerprint:invalid_parameter"},
		{`{"reference":"ada","fingerprint":"` + strings.Repeat("+", 43) + `"}`, "fingerprint:invalid_parameter"},
		{`{"reference":"ada","scope":"Voice"}`, "scope:invalid_parameter"},
		{`{"reference":"ada","scope":[["sat:refresh"]]}`, "scope:invalid_parameter"},
		{`{"reference":"ada","region":"eu"}`, "region:invalid_parameter"},
		{`{"reference":"ada","ch":"evil.example"}`, "ch:invalid_parameter"},
		{`{"reference":"ada","ch":"` + host + `\r\nx"}`, "ch:invalid_parameter"},
		{`{"reference":"ada","ch":{"a":1}}`, "ch:invalid_parameter"},
		{`{"reference":"ada","time_zone":"` + strings.Repeat("z", 300) + `"}`, "time_zone:invalid_parameter"},
		{
			`{"expire_at":0,"password":"x","country":5}`,
			"country:invalid_parameter reference:missing_required_parameter " +
				"expire_at:invalid_parameter password:invalid_parameter",
		},
	}

	for _, tt := range tests {
		if got := w.call(w.basic(), "POST", issue, tt.body).faults(t); got != tt.want {
			t.Errorf("POST %.80s: got %s, want %s", tt.body, got, tt.want)
		}
	}

	if all := as[listed[envelope]](t, w.call(w.basic(), "GET", subscribers, "")); len(all.Data) != 0 {
		t.Errorf("refused requests created %d subscribers, want none", len(all.Data))
	}
}

func TestRefreshingScope(t *testing.T) {
	w := newWorld(t)
	thumbprint := strings.Repeat("aB3_-", 9)[:43]
	tests := []struct {
		members      string
		wantLifetime time.Duration
	}{
		{`"scope":"sat:refresh"`, time.Minute},
		{`"scope":["sat:refresh"]`, time.Minute},
		{`"scope":"sat:refresh","fingerprint":"` + thumbprint + `"`, 2 * time.Hour},
		{`"scope":""`, 2 * time.Hour},
		{`"fingerprint":null,"scope":null`, 2 * time.Hour},
	}

	for _, tt := range tests {
		issued := w.tokens(`{"reference":"ada",` + tt.members + `}`)
		first := w.open(issued.Token, fabric.SAT)
		if life := lifetime(first); life != tt.wantLifetime {
			t.Errorf("%s: the SAT lives for %v, want %v", tt.members, life, tt.wantLifetime)
		}
		second := w.open(w.refresh(issued.RefreshToken).Token, fabric.SAT)
		if life := lifetime(second); life != tt.wantLifetime {
			t.Errorf("%s: the refreshed SAT lives for %v, want %v", tt.members, life, tt.wantLifetime)
		}
		if second.Binding != first.Binding {
			t.Errorf("%s: the refreshed SAT has the key %q, want %q", tt.members, second.Binding, first.Binding)
		}
	}
}

func TestApplicationToken(t *testing.T) {
	w := newWorld(t)
	app := w.application(w.project.ID)
	got := w.tokens(`{"reference":"ada","application_id":"` + strings.ToUpper(app.ID) + `"}`)
	for _, token := range []string{got.Token, w.refresh(got.RefreshToken).Token} {
		info := as[satInfo](t, w.call(bearer(token), "GET", "/subscriber/info", ""))
		want := &appSettings{DisplayName: "Dialer", Scopes: []string{"openid", "Voice"}}
		if diff := cmp.Diff(want, info.App); diff != "" {
			t.Errorf("app_settings (-want +got):\n%s", diff)
		}
	}
}

// TestTakeover shows that a key without Management cannot set the password or the email of an
// existing subscriber, not even a first password. Sending the current values is allowed.
func TestTakeover(t *testing.T) {
	w := newWorld(t)
	w.tokens(`{"reference":"ada@example.com","password":"correct horse"}`)
	w.tokens(`{"reference":"grace"}`)
	ada := subscribers + "/" + as[listed[envelope]](t, w.call(w.basic(), "GET", subscribers, "")).Data[0].ID
	type request struct{ method, path, body string }
	changes := []request{
		{"POST", issue, `{"reference":"ada@example.com","password":"battery staple"}`},
		{"POST", issue, `{"reference":"grace","password":"battery staple"}`},
		{"PATCH", ada, `{"password":"battery staple"}`},
		{"PUT", ada, `{"email":"mallory@example.com"}`},
	}
	repetitions := []request{
		{"POST", issue, `{"reference":"ada@example.com","password":"correct horse"}`},
		{"PUT", ada, `{"email":"Ada@example.com","first_name":"Ada","password":"correct horse"}`},
	}

	for _, scope := range []fabric.Scope{fabric.Voice, fabric.Messaging, fabric.Fax, fabric.Video} {
		_, auth := w.newKey(time.Time{}, scope)
		for _, change := range changes {
			w.wantUnauthorized(string(scope), auth, change.method, change.path, change.body)
		}
		for _, same := range repetitions {
			r := w.call(auth, same.method, same.path, same.body)
			r.wantStatus(t, same.method+" "+same.path+" by "+string(scope), http.StatusOK)
		}
	}

	recorded, err := w.fabric.Audit.List(t.Context(), audit.Filter{ProjectID: w.project.ID}, page.Query{Size: 50})
	if err != nil {
		t.Fatal(err)
	}
	if events := fmt.Sprint(recorded.Items); !strings.Contains(events, "lack the scope Management") {
		t.Errorf("the refusals are recorded as %s, want them to name the missing scope", events)
	}
}

func TestPasswordByToken(t *testing.T) {
	w := newWorld(t)
	first := w.tokens(`{"reference":"ada","password":"correct horse"}`)
	same := w.tokens(`{"reference":"ada","password":"correct horse"}`)
	blank := w.tokens(`{"reference":"ada","password":""}`)
	for _, sat := range []string{first.Token, same.Token, blank.Token} {
		w.address(sat)
	}

	r := w.call(w.administrator(), "POST", issue, `{"reference":"ada","password":"battery staple"}`)
	changed := as[tokens](t, r)
	w.address(changed.Token)
	for _, sat := range []string{first.Token, same.Token, blank.Token} {
		w.wantInfo(sat, http.StatusUnauthorized)
	}
	if got := w.refreshFault(w.basic(), first.RefreshToken); got != "refresh_token:token_invalid" {
		t.Errorf("a refresh token from before the password changed: got %s, want token_invalid", got)
	}
}

func TestOneReferenceAtOnce(t *testing.T) {
	w := newWorld(t)
	ids := make([]string, 64)
	var wait sync.WaitGroup
	for i := range ids {
		wait.Go(func() {
			r := w.call(w.basic(), "POST", issue, `{"reference":"ada@example.com"}`)
			if r.status == http.StatusOK {
				ids[i] = as[tokens](t, r).SubscriberID
			}
		})
	}

	wait.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("64 calls with one reference: got subscribers %v, want one", ids)
		}
	}
}

func TestOneReferenceInTwoProjects(t *testing.T) {
	w := newWorld(t)
	one := w.tokens(`{"reference":"ada","password":"correct horse"}`)
	two := as[tokens](t, w.call(w.stranger(), "POST", issue, `{"reference":"ada","password":"battery staple"}`))
	if one.SubscriberID == two.SubscriberID {
		t.Fatal("two projects share a subscriber")
	}
	w.address(one.Token) // the other project's password changed nothing
}
