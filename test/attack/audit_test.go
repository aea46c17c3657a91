package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/test/harness"
)

// An event is an entry of the audit trail.
type event struct {
	Action    string            `json:"action"`
	Outcome   string            `json:"outcome"`
	ActorKind string            `json:"actor_kind"`
	ActorID   string            `json:"actor_id"`
	TargetID  string            `json:"target_id"`
	Address   string            `json:"address"`
	RequestID string            `json:"request_id"`
	Detail    map[string]string `json:"detail"`
}

// eventsOf returns the events of a project's audit trail, and the exported text.
func eventsOf(t *testing.T, p *harness.Project, flags ...string) (events []event, text string) {
	t.Helper()
	text = p.Command(t, "", append([]string{"audit", "export", "--project", p.ID}, flags...)...)
	for line := range strings.Lines(text) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("audit export printed %q: %v", line, err)
		}
		events = append(events, e)
	}
	return events, text
}

// TestK05Audited shows that an attempt to manage keys without Management is refused, and that the
// audit trail names the key that was used.
func TestK05Audited(t *testing.T) {
	p := project(t)
	voice := p.NewKey(t, "Voice")
	a := p.Post(t, "/api/project/tokens", harness.Basic(p.ID, voice),
		harness.JSON(map[string]any{"name": "x", "permissions": []string{"management"}}))
	a.WantUnauthorized(t)

	events, text := eventsOf(t, p, "--action", "management")
	if len(events) != 1 {
		t.Fatalf("the audit trail has %d events about the refusal, want 1: %s", len(events), text)
	}
	e := events[0]
	if e.ActorID == "" {
		t.Errorf("the event %+v names no key", e)
	}
	got := event{Outcome: e.Outcome, ActorKind: e.ActorKind, Address: e.Address, RequestID: e.RequestID}
	want := event{
		Outcome:   "refused",
		ActorKind: "api_key",
		Address:   "127.0.0.1",
		RequestID: a.Header.Get("X-Request-Id"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the event differs (-want +got):\n%s", diff)
	}
}

// TestK05Flood shows that refused attempts with a key are recorded at most once a minute, and that
// the key's rate limit also applies to them.
func TestK05Flood(t *testing.T) {
	p := limited(t, "API_REQUESTS=5")
	keys := []string{p.NewKey(t, "Voice"), p.NewKey(t, "Voice")}
	ask := func(key string) harness.Answer {
		return p.Post(t, "/api/project/tokens", harness.Basic(p.ID, key),
			harness.JSON(map[string]any{"name": "x", "permissions": []string{"management"}}))
	}

	for _, key := range keys {
		for range 5 {
			ask(key).WantUnauthorized(t)
		}
		wantLater(t, ask(key), `{"error":"Too Many Requests"}`)
	}

	// A key has two events if a new minute began between its attempts.
	events, text := eventsOf(t, p, "--action", "management")
	if len(events) < 2 || len(events) > 4 {
		t.Errorf("the audit trail has %d events about twelve attempts with two keys, want 2 to 4: %s",
			len(events), text)
	}
}

// TestP06AuditedAddress shows that the audit trail records the address of the connection, even if
// an untrusted client claims a different address.
func TestP06AuditedAddress(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)

	for _, password := range []string{"wrong", sub.Password} {
		b := c.Browser()
		page := b.Open(t, c.NewFlow("openid").URL())
		b.Submit(t, page, "login-submit", map[string]string{"username": sub.Email, "password": password},
			harness.Header("X-Forwarded-For", "203.0.113.7"), harness.Header("Forwarded", "for=203.0.113.7"),
			harness.Header("X-Real-Ip", "203.0.113.7"))
	}

	events, text := eventsOf(t, p, "--action", "login")
	if len(events) != 2 {
		t.Fatalf("the trail has %d logins, want 2: %s", len(events), text)
	}
	for i, outcome := range []string{"refused", "done"} {
		if got := events[i].Outcome; got != outcome {
			t.Errorf("login %d has the outcome %q, want %q", i, got, outcome)
		}
		if got := events[i].Address; got != "127.0.0.1" {
			t.Errorf("login %d has the address %q, want 127.0.0.1", i, got)
		}
		if got := events[i].TargetID; got != sub.ID {
			t.Errorf("login %d has the target %q, want %q", i, got, sub.ID)
		}
	}
	if got := events[0].Detail["reason"]; got != "wrong password" {
		t.Errorf("the recorded reason is %q, want wrong password", got)
	}
}

// addedNames matches the names that an export adds to the ids in events. The trail itself does not
// contain these names.
var addedNames = regexp.MustCompile(`,?"(actor|target)_name":"[^"]*"`)

// TestI08AuditCanaries shows that the audit trail contains neither the secrets of a login nor an
// email address.
func TestI08AuditCanaries(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "web")
	sub := p.NewSubscriber(t)
	const typed = "canary-password-in-the-wrong-field"

	b := c.Browser()
	page := b.Open(t, c.NewFlow("openid").URL())
	b.Submit(t, page, "login-submit", map[string]string{"username": typed, "password": "canary-wrong-password"})
	tokens, browser := c.SignIn(t, sub, loginScope)

	r, err := http.NewRequest(http.MethodGet, c.Issuer(), nil)
	if err != nil {
		t.Fatal(err)
	}
	browser.Cookies()(r)

	sat := p.NewSAT(t, "canary@example.com")
	key := p.NewKey(t, "Voice", "Management")
	secrets := map[string]string{
		"a password":             sub.Password,
		"a wrong password":       "canary-wrong-password",
		"the unknown email":      typed,
		"an email":               sub.Email,
		"a client secret":        c.Secret,
		"an API key":             p.Key,
		"another API key":        key,
		"an access token":        tokens.AccessToken,
		"an ID token":            tokens.IDToken,
		"a refresh token":        tokens.RefreshToken,
		"a SAT":                  sat.Token,
		"a fabric refresh token": sat.RefreshToken,
	}
	for _, cookie := range r.Cookies() {
		secrets["the cookie "+cookie.Name] = cookie.Value
	}

	c.Refresh(t, tokens.RefreshToken).Want(t, 200)
	p.Command(t, "", "subscriber", "update", sub.ID, "--disabled")

	events, text := eventsOf(t, p)
	text = addedNames.ReplaceAllString(text, "")
	if len(events) < 8 {
		t.Errorf("there are %d events, want at least 8: %s", len(events), text)
	}

	for what, secret := range secrets {
		if secret == "" {
			t.Errorf("%s is empty", what)
		} else if strings.Contains(text, secret) {
			t.Errorf("%s is in the audit trail", what)
		}
	}
}

// TestI07AuditLines shows that unauthenticated clients cannot write control characters, long lines
// or spreadsheet formulas into the audit trail.
func TestI07AuditLines(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	b := c.Browser()

	for _, name := range []string{"=cmd|' /C calc'!A0@example.com", "a@x\u2028{\"id\":1}", "\x1b[31ma@b",
		strings.Repeat("a@", 4000)} {
		page := b.Open(t, c.NewFlow("openid").URL())
		b.Submit(t, page, "login-submit", map[string]string{"username": name, "password": "wrong"},
			harness.Header("User-Agent", "=1+1"))
	}

	events, text := eventsOf(t, p, "--action", "login")
	if len(events) != 4 {
		t.Fatalf("there are %d events, want 4: %s", len(events), text)
	}

	for line := range strings.Lines(text) {
		if strings.ContainsAny(line, "\x1b\u2028\x00") {
			t.Errorf("a line of the audit trail contains control characters: %q", line)
		}
		if len(line) > 4096 {
			t.Errorf("a line of the audit trail has %d bytes, want at most 4096: %q", len(line), line)
		}
	}
	for line := range strings.Lines(p.Command(t, "", "audit", "export", "--project", p.ID, "--format", "csv")) {
		for cell := range strings.SplitSeq(line, ",") {
			if strings.IndexAny(strings.Trim(cell, `"`), "=+-@") == 0 {
				t.Errorf("a cell of the CSV export is a formula: %q", cell)
			}
		}
	}
}

// TestP06AuditedConcurrently shows that, while commands and the server write events at the same
// time, no event is lost and the chain remains intact.
func TestP06AuditedConcurrently(t *testing.T) {
	p := harness.Start(t).NewProject(t)
	const each = 8

	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range each {
				email := fmt.Sprintf("served-%d-%d@example.com", i, j)
				if a := p.Post(t, "/api/fabric/resources/subscribers", p.Basic(),
					harness.JSON(map[string]any{"email": email})); a.Status != http.StatusCreated {
					t.Errorf("%s: %d %s, want 201", email, a.Status, a.Body)
				}
			}
		})
	}

	for i := range 2 {
		wg.Go(func() {
			for j := range each {
				email := fmt.Sprintf("commanded-%d-%d@example.com", i, j)
				if out, err := p.TryCommand("subscriber", "create", "--project", p.ID, "--email", email); err != nil {
					t.Errorf("%s: %v: %s", email, err, out)
				}
			}
		})
	}

	wg.Wait()
	if events, text := eventsOf(t, p, "--action", "subscriber.created"); len(events) != 6*each {
		t.Errorf("the trail has %d new subscribers, want %d: %s", len(events), 6*each, text)
	}
	if out, err := p.TryCommand("audit", "verify"); err != nil {
		t.Errorf("the chain is broken: %s", out)
	}
}
