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
	var h map[string]string
	if err := json.Unmarshal(raw, &h); err != nil {
		t.Fatalf("reading token %q: %v", token, err)
	}
	return h
}

func (w *world) open(token string, kind fabric.TokenKind) fabric.Token {
	w.t.Helper()
	t, err := w.fabric.Tokens.Open(context.Background(), token, kind)
	if err != nil {
		w.t.Fatalf("opening a %s: %v", kind, err)
	}
	return t
}

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
	r := w.call(w.basic(), "POST", issue,
		`{"reference":"ada@example.com","first_name":"Ada","time_zone":"CET","ttl":5,"subscriber_id":"x"}`)
	got := as[tokens](t, r)
	if r.status != http.StatusOK || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("POST %s: got %d, Cache-Control %q, want 200 and no-store",
			issue, r.status, r.header.Get("Cache-Control"))
	}

	for token, typ := range map[string]string{got.Token: "SAT", got.RefreshToken: "Refresh"} {
		if h := header(t, token); h["typ"] != typ || h["ch"] != host || h["alg"] != "dir" || h["enc"] != "A256GCM" {
			t.Errorf("header of a %s: got %v, want its typ and the host", typ, h)
		}
	}

	sat, refresh := w.open(got.Token, fabric.SAT), w.open(got.RefreshToken, fabric.Refresh)
	if life := sat.ExpiresAt.Sub(sat.IssuedAt).Round(time.Second); life != 7200*time.Second {
		t.Errorf("a SAT lives for %v, want 2 h", life)
	}
	if life := refresh.ExpiresAt.Sub(refresh.IssuedAt).Round(time.Second); life != 7500*time.Second {
		t.Errorf("a refresh token lives for %v, want 2 h 5 min", life)
	}

	s := as[envelope](t, w.call(w.basic(), "GET", subscribers+"/"+got.SubscriberID, ""))
	if s.Subscriber["email"] != "ada@example.com" || s.Subscriber["first_name"] != "Ada" ||
		s.Subscriber["timezone"] != "CET" {
		t.Errorf("the new subscriber: got %+v, want the fields given", s)
	}

	for _, reference := range []string{"ada@example.com", "ADA@Example.com"} {
		if again := w.tokens(`{"reference":"` + reference + `"}`); again.SubscriberID != got.SubscriberID {
			t.Errorf("reference %s: got another subscriber", reference)
		}
	}

	created := w.create(`{"email":"bob@example.com"}`)
	if bob := w.tokens(`{"reference":"bob@example.com","last_name":"B"}`); bob.SubscriberID != created.ID {
		t.Errorf("a reference that is an email: got another subscriber")
	}
	path := subscribers + "/" + created.ID
	if s := as[envelope](t, w.call(w.basic(), "GET", path, "")); s.Subscriber["last_name"] != "B" {
		t.Errorf("the profile of a known subscriber: got %+v, want it changed", s)
	}
}

func TestKnownSubscriberIsNotWritten(t *testing.T) {
	w := newWorld(t)
	body := `{"reference":"ada","password":"correct horse","first_name":"Ada","country":"UK"}`
	before := w.tokens(body).SubscriberID
	was := as[envelope](t, w.call(w.basic(), "GET", subscribers+"/"+before, ""))
	w.pass(time.Minute)
	w.tokens(body)
	if is := as[envelope](t, w.call(w.basic(), "GET", subscribers+"/"+before, "")); is.UpdatedAt != was.UpdatedAt {
		t.Errorf("tokens of an unchanged subscriber: updated_at went from %s to %s", was.UpdatedAt, is.UpdatedAt)
	}
}

func TestTokenForms(t *testing.T) {
	w := newWorld(t)
	at := time.Now().Add(time.Hour).Unix()
	multipart := "--x\r\nContent-Disposition: form-data; name=\"reference\"\r\n\r\nada\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"expire_at\"\r\n\r\n" + fmt.Sprint(at) + "\r\n--x--\r\n"
	for _, tt := range []struct{ kind, body string }{
		{"application/json", fmt.Sprintf(`{"reference":"ada","expire_at":%d}`, at)},
		{"application/x-www-form-urlencoded", fmt.Sprintf("reference=ada&expire_at=%d", at)},
		{"multipart/form-data; boundary=x", multipart},
	} {
		r := w.callAs(w.basic(), "POST", issue, tt.kind, tt.body)
		if r.status != http.StatusOK {
			t.Errorf("POST %s: got %d %s, want 200", tt.kind, r.status, r.text)
			continue
		}
		if sat := w.open(as[tokens](t, r).Token, fabric.SAT); sat.ExpiresAt.Unix() != at {
			t.Errorf("POST %s: expires at %d, want %d", tt.kind, sat.ExpiresAt.Unix(), at)
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
		{`{"reference":"ada","application_id":"0199a000-0000-7000-8000-000000000000"}`,
			"application_id:does_not_exist"},
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
	jkt := strings.Repeat("aB3_-", 9)[:43]
	tests := []struct {
		members  string
		lifetime time.Duration
	}{
		{`"scope":"sat:refresh"`, time.Minute},
		{`"scope":["sat:refresh"]`, time.Minute},
		{`"scope":"sat:refresh","fingerprint":"` + jkt + `"`, 2 * time.Hour},
		{`"scope":""`, 2 * time.Hour},
		{`"fingerprint":null,"scope":null`, 2 * time.Hour},
	}

	for _, tt := range tests {
		got := w.tokens(`{"reference":"ada",` + tt.members + `}`)
		sat := w.open(got.Token, fabric.SAT)
		if life := sat.ExpiresAt.Sub(sat.IssuedAt).Round(time.Second); life != tt.lifetime {
			t.Errorf("%s: the SAT lives for %v, want %v", tt.members, life, tt.lifetime)
		}
		next := w.refresh(got.RefreshToken)
		again := w.open(next.Token, fabric.SAT)
		if life := again.ExpiresAt.Sub(again.IssuedAt).Round(time.Second); life != tt.lifetime ||
			again.Binding != sat.Binding {
			t.Errorf("%s, refreshed: the SAT lives for %v with key %q, want %v, %q", tt.members, life,
				again.Binding, tt.lifetime, sat.Binding)
		}
	}
}

func TestApplicationToken(t *testing.T) {
	w := newWorld(t)
	app := w.application(w.project.ID)
	got := w.tokens(`{"reference":"ada","application_id":"` + strings.ToUpper(app.ID) + `"}`)
	for _, token := range []string{got.Token, w.refresh(got.RefreshToken).Token} {
		r := w.call(bearer(token), "GET", "/subscriber/info", "")
		settings := as[struct {
			AppSettings struct {
				DisplayName string   `json:"display_name"`
				Scopes      []string `json:"scopes"`
			} `json:"app_settings"`
		}](t, r).AppSettings
		if settings.DisplayName != "Dialer" || strings.Join(settings.Scopes, " ") != "openid Voice" {
			t.Errorf("info with an application: got %s, want its settings", r.text)
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
	tests := []struct {
		method, path, body string
		change             bool
	}{
		{"POST", issue, `{"reference":"ada@example.com","password":"battery staple"}`, true},
		{"POST", issue, `{"reference":"grace","password":"battery staple"}`, true},
		{"PATCH", ada, `{"password":"battery staple"}`, true},
		{"PUT", ada, `{"email":"mallory@example.com"}`, true},
		{"POST", issue, `{"reference":"ada@example.com","password":"correct horse"}`, false},
		{"PUT", ada, `{"email":"Ada@example.com","first_name":"Ada","password":"correct horse"}`, false},
	}

	for _, scope := range []fabric.Scope{fabric.Voice, fabric.Messaging, fabric.Fax, fabric.Video} {
		_, auth := w.newKey(time.Time{}, scope)
		for _, tt := range tests {
			r := w.call(auth, tt.method, tt.path, tt.body)
			if tt.change {
				wantUnauthorized(t, string(scope), [2]string{tt.method, tt.path}, r)
			} else if r.status != http.StatusOK {
				t.Errorf("%s: %s %s with %s: got %d %s, want 200", scope, tt.method, tt.path, tt.body, r.status, r.text)
			}
		}
	}

	noted, err := w.fabric.Audit.List(t.Context(), audit.Filter{ProjectID: w.project.ID}, page.Query{Size: 50})
	if err != nil || !strings.Contains(fmt.Sprint(noted.Items), "lack the scope Management") {
		t.Errorf("the refusals are recorded as %v, %v, want the missing scope", noted.Items, err)
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
		if r := w.call(bearer(sat), "GET", "/subscriber/info", ""); r.status != http.StatusUnauthorized {
			t.Errorf("a SAT from before the password changed: got %d, want 401", r.status)
		}
	}

	got := w.call(w.basic(), "POST", issue+"/refresh", `{"refresh_token":"`+first.RefreshToken+`"}`).faults(t)
	if got != "refresh_token:token_invalid" {
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
	w.address(one.Token) // the refused password changed nothing
}
