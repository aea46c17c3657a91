package attack

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// faults returns the code of each attribute that a 422 response names. Every entry must be
// complete.
func faults(t *testing.T, a harness.Answer) map[string]string {
	t.Helper()
	var body struct {
		Errors []struct{ Type, Code, Message, Attribute, URL string }
	}
	a.Want(t, 422).Read(t, &body)
	found := map[string]string{}
	for _, e := range body.Errors {
		if e.Type != "validation_error" || e.Code == "" || e.Message == "" || e.URL == "" {
			t.Errorf("a 422 has the entry %+v, want all members", e)
		}
		found[e.Attribute] = e.Code
	}

	if len(found) == 0 {
		t.Errorf("a 422 without errors: %s", a.Body)
	}
	return found
}

// TestF05Bodies shows that bodies that are malformed, too large or not a JSON object are refused
// and create nothing. The errors have the format of the fabric API.
func TestF05Bodies(t *testing.T) {
	p := project(t)
	huge := append(append([]byte(`{"reference":"`), bytes.Repeat([]byte("x"), 10<<20)...), `"}`...)
	tests := map[string]struct {
		kind   string
		body   []byte
		status []int
	}{
		"10 MiB": {"application/json", huge, []int{413}},
		"100,000 brackets": {"application/json",
			append([]byte(`{"reference":`), bytes.Repeat([]byte("["), 100_000)...), []int{400}},
		"closed brackets": {"application/json",
			append(append([]byte(`{"reference":`), strings.Repeat("[", 100_000)...),
				strings.Repeat("]", 100_000)+"}"...), []int{400, 422}},
		"text":                {"text/plain", []byte(`{"reference":"eve"}`), []int{400, 415}},
		"no type":             {"", []byte(`{"reference":"eve"}`), []int{400, 415}},
		"a different charset": {"application/json; charset=utf-16", []byte(`{"reference":"eve"}`), []int{400, 415}},
		"byte order mark":     {"application/json", []byte("\xef\xbb\xbf" + `{"reference":"eve"}`), []int{400}},
		"not UTF-8":           {"application/json", []byte("{\"reference\":\"\xff\"}"), []int{400}},
		"a member twice":      {"application/json", []byte(`{"reference":"eve","reference":"eve2"}`), []int{400}},
		"trailing bytes":      {"application/json", []byte(`{"reference":"eve"} x`), []int{400}},
		"two objects":         {"application/json", []byte(`{"reference":"eve"}{}`), []int{400}},
		"NaN":                 {"application/json", []byte(`{"reference":NaN}`), []int{400}},
		"an array":            {"application/json", []byte(`["reference"]`), []int{400}},
		"null":                {"application/json", []byte(`null`), []int{400}},
		"nothing":             {"application/json", nil, []int{400}},
		"half":                {"application/json", []byte(`{"reference":"e`), []int{400}},
		"a number":            {"application/json", []byte(`{"reference":1}`), []int{422}},
		"an object":           {"application/json", []byte(`{"reference":{}}`), []int{422}},
		"NUL":                 {"application/json", []byte(`{"reference":"eve\u0000"}`), []int{422}},
		"a name of 64 KiB": {"application/json",
			[]byte(`{"reference":"` + strings.Repeat("e", 64<<10) + `"}`), []int{422}},
		"a form with a duplicate member": {"application/x-www-form-urlencoded", []byte("reference=eve&reference=eve2"),
			[]int{400}},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			a := p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
				harness.Body(tt.kind, tt.body)).Want(t, tt.status...)
			if took := time.Since(began); took > time.Minute/2 {
				t.Errorf("the refusal took %v, want at most half a minute", took)
			}
			if o := a.Object(t); o["error"] == nil && o["errors"] == nil {
				t.Errorf("the refusal is %s, want the fabric API's format", a.Body)
			}
		})
	}

	var list struct{ Data []any }
	p.Get(t, "/api/fabric/resources/subscribers", p.Basic()).Want(t, 200).Read(t, &list)
	if len(list.Data) != 0 {
		t.Errorf("refused bodies left %d subscribers", len(list.Data))
	}
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
		harness.Form(url.Values{"reference": {"ada"}})).Want(t, 200)
}

// TestF07AllowedAddresses shows that a guest token needs one to ten addresses of its project.
func TestF07AllowedAddresses(t *testing.T) {
	p := project(t)
	mine := p.Address(t, p.NewSAT(t, "ada").SubscriberID)
	stranger := project(t)
	theirs := stranger.Address(t, stranger.NewSAT(t, "eve").SubscriberID)

	eleven := make([]string, 11)
	for i := range eleven {
		eleven[i] = fmt.Sprintf("01900000-0000-7000-8000-%012d", i)
	}

	tests := map[string]struct {
		body any
		code string
	}{
		"absent":       {map[string]any{}, "missing_required_parameter"},
		"empty":        {map[string]any{"allowed_addresses": []string{}}, ""},
		"null":         {map[string]any{"allowed_addresses": nil}, ""},
		"a string":     {map[string]any{"allowed_addresses": mine}, "invalid_parameter"},
		"eleven":       {map[string]any{"allowed_addresses": eleven}, "allowed_address_limit_exceeded"},
		"not a UUID":   {map[string]any{"allowed_addresses": []string{"x"}}, ""},
		"null inside":  {map[string]any{"allowed_addresses": []any{nil}}, ""},
		"unknown":      {map[string]any{"allowed_addresses": eleven[:1]}, "must_belong_to_project"},
		"another's":    {map[string]any{"allowed_addresses": []string{mine, theirs}}, "must_belong_to_project"},
		"SQL":          {map[string]any{"allowed_addresses": []string{"' OR 1=1--"}}, ""},
		"upper-case":   {map[string]any{"allowed_addresses": []string{strings.ToUpper(theirs)}}, ""},
		"nested array": {map[string]any{"allowed_addresses": [][]string{{mine}}}, "invalid_parameter"},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := faults(t, p.Post(
				t, "/api/fabric/guests/tokens", p.Basic(), harness.JSON(tt.body)))["allowed_addresses"]
			if !ok || tt.code != "" && got != tt.code {
				t.Errorf("the 422 has the code %q for allowed_addresses, want %q", got, tt.code)
			}
		})
	}

	p.Post(t, "/api/fabric/guests/tokens", p.Basic(),
		harness.JSON(map[string]any{"allowed_addresses": []string{mine, mine}})).Want(t, 201, 422)

	// A response reports all faults of a request together.
	both := faults(t, p.Post(t, "/api/fabric/guests/tokens", p.Basic(),
		harness.JSON(map[string]any{"expire_at": "soon"})))
	if both["allowed_addresses"] == "" || both["expire_at"] == "" {
		t.Errorf("two faults are reported as %v, want both", both)
	}
}

// TestF08Invites shows that a subscriber can invite only to the subscriber's own addresses, for a
// limited time. An invite becomes invalid when its address is deleted.
func TestF08Invites(t *testing.T) {
	p := project(t)
	ada, eve := p.NewSAT(t, "ada"), p.NewSAT(t, "eve")
	mine, theirs := p.Address(t, ada.SubscriberID), p.Address(t, eve.SubscriberID)

	invite := func(body map[string]any) harness.Answer {
		return p.Post(t, "/api/fabric/subscriber/invites", harness.Bearer(ada.Token), harness.JSON(body))
	}

	invite(map[string]any{"address_id": mine}).Want(t, 201)
	for name, body := range map[string]map[string]any{
		"another's": {"address_id": theirs},
		"unknown":   {"address_id": "01900000-0000-7000-8000-000000000000"},
		"no UUID":   {"address_id": "x"},
		"absent":    {},
		"null":      {"address_id": nil},
		"an array":  {"address_id": []string{mine}},
	} {
		if _, ok := faults(t, invite(body))["address_id"]; !ok {
			t.Errorf("an invite to an address that is %s: the error does not name address_id", name)
		}
	}

	now := time.Now()
	for _, at := range []any{0, -1, now.Unix() - 1, now.AddDate(0, 0, 31).Unix(), 1e300, "soon", 1.5,
		[]int{1}, "99999999999999999999"} {
		if _, ok := faults(t, invite(map[string]any{"address_id": mine, "expires_at": at}))["expires_at"]; !ok {
			t.Errorf("an invite with expires_at %v: the error does not name expires_at", at)
		}
	}

	token := p.NewInvite(t, ada.Token, mine)
	p.Get(t, "/api/fabric/addresses/"+mine, harness.Bearer(token)).Want(t, 200)
	p.Get(t, "/api/fabric/addresses/"+theirs, harness.Bearer(token)).Want(t, 404)

	p.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+ada.SubscriberID, p.Basic()).Want(t, 204)
	harness.WithinASecond(t, "an invite to a deleted address", func() error {
		if a := p.Get(t, "/api/fabric/addresses/"+mine, harness.Bearer(token)); a.Status != 401 && a.Status != 404 {
			return a.StatusIs(404)
		}
		return nil
	})
}

// TestF10Refresh shows that a fabric refresh token works once and only in its own project. It also
// shows that the fingerprint and scope of a token are checked.
func TestF10Refresh(t *testing.T) {
	p, stranger := project(t), project(t)
	refresh := func(p *harness.Project, token any) harness.Answer {
		return p.Post(t, "/api/fabric/subscribers/tokens/refresh", p.Basic(),
			harness.JSON(map[string]any{"refresh_token": token}))
	}

	// Using a refresh token again ends its family.
	first := p.NewSAT(t, "ada")
	faults(t, refresh(stranger, first.RefreshToken))
	var second harness.SAT
	refresh(p, first.RefreshToken).Want(t, 201).Read(t, &second)
	p.Get(t, "/subscriber/info", harness.Bearer(second.Token)).Want(t, 200)
	if got := faults(t, refresh(p, first.RefreshToken)); got["refresh_token"] == "" {
		t.Errorf("a used refresh token: the error names %v, want refresh_token", got)
	}
	faults(t, refresh(p, second.RefreshToken)) // the family has ended

	for _, bad := range []any{first.Token, "x", "", nil, 1, []string{"x"}, strings.Repeat("x", 32<<10)} {
		if got := faults(t, refresh(p, bad)); got["refresh_token"] == "" {
			t.Errorf("refresh_token %.20v: the error names %v, want refresh_token", bad, got)
		}
	}

	// A fingerprint is a SHA-256 hash in base64url: 43 characters.
	issue := func(more map[string]any) harness.Answer {
		more["reference"] = "grace"
		return p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(), harness.JSON(more))
	}
	for _, bad := range []any{strings.Repeat("a", 42), strings.Repeat("a", 44), strings.Repeat("a", 42) + "+", 1} {
		if got := faults(t, issue(map[string]any{"scope": "sat:refresh",
			"fingerprint": bad})); got["fingerprint"] == "" {
			t.Errorf("fingerprint %v: the error names %v, want fingerprint", bad, got)
		}
	}
	issue(map[string]any{"scope": []string{"sat:refresh"}, "fingerprint": strings.Repeat("a", 43)}).Want(t, 200)
	if got := faults(t, issue(map[string]any{"scope": "everything"})); got["scope"] == "" {
		t.Errorf("an unknown scope: the error names %v, want scope", got)
	}
}

// TestF10ShortLife shows that a renewable token that is not bound to a key is valid for at most a
// minute.
func TestF10ShortLife(t *testing.T) {
	p := project(t)
	var sat harness.SAT
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
		harness.JSON(map[string]any{"reference": "ada", "scope": "sat:refresh"})).Want(t, 200).Read(t, &sat)

	said := p.CLI(t, sat.Token, "token", "inspect")
	ends, err := time.Parse(time.RFC3339, fmt.Sprint(said["expires_at"]))
	if err != nil {
		t.Fatalf("token inspect printed %v: %v", said, err)
	}
	if left := time.Until(ends); left > time.Minute {
		t.Errorf("the token lives for another %v, want at most a minute", left)
	}
}

// TestF13Hosts shows that a token request cannot choose the host to which the token's holder
// connects.
func TestF13Hosts(t *testing.T) {
	p := project(t)
	mine := p.Address(t, p.NewSAT(t, "ada").SubscriberID)
	for _, field := range []string{"ch", "region"} {
		for _, value := range []any{"evil.example", "puc.evil.example:8443", "ws://evil.example",
			"us-central\r\nX-Evil: 1", map[string]string{"x": "y"}, 1} {
			for path, body := range map[string]map[string]any{
				"/api/fabric/subscribers/tokens": {"reference": "ada"},
				"/api/fabric/guests/tokens":      {"allowed_addresses": []string{mine}},
			} {
				body[field] = value
				if got := faults(t, p.Post(t, path, p.Basic(), harness.JSON(body))); got[field] == "" {
					t.Errorf("%s with %s %v returned %v, want %s", path, field, value, got, field)
				}
			}
		}
	}
}

// TestConsentNamesFabricAccess shows that the consent page mentions fabric access. A fabric token
// reveals more than the scope openid, so people must know this before they agree. A client with JWT
// access tokens learns no more than the scope allows.
func TestConsentNamesFabricAccess(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	for format, reveals := range map[string]bool{"fabric": true, "jwt": false} {
		c := p.NewClient(t, "spa", "--access-token", format)
		f, b := c.NewFlow("openid"), c.Browser()
		page := b.Submit(t, b.Open(t, f.URL()), "login-submit",
			map[string]string{"username": sub.Email, "password": sub.Password})
		if got := strings.Contains(string(page.Body), "Call as you"); got != reveals || !page.Has("consent-allow") {
			t.Errorf("with %s tokens the page says that the app can call as the subscriber: %v, want %v\n%s", format,
				got, reveals, page.Body)
		}

		var tokens harness.Tokens
		f.Redeem(t, b.Submit(t, page, "consent-allow", nil).Callback(t).Get("code")).Want(t, 200).Read(t, &tokens)
		info := p.Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).Want(t, 200, 401)
		if got := strings.Contains(string(info.Body), sub.Email); got != reveals {
			t.Errorf("the %s token of the scope openid returns the email: %v, want %v", format, got, reveals)
		}
	}
}

// TestFabricAccessNeedsConsent shows that a client gets a fabric token only after the subscriber
// has consented that the client may act as the subscriber. Two clients try to reuse a consent to
// something else. The subscriber consented to an ID token for the first client, and to JWT access
// tokens for the second.
func TestFabricAccessNeedsConsent(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	signIn := func(c *harness.Client, f *harness.Flow) *harness.Browser {
		b := c.Browser()
		b.SignIn(t, f.URL(), sub)
		return b
	}

	// A consent to an ID token does not cover a fabric token.
	both := p.NewClient(t, "spa", "--access-token", "fabric", "--response-type", "code,id_token")
	b := signIn(both, both.NewFlow("openid").With("response_type", "id_token").With("nonce", "n").
		Without("code_challenge", "code_challenge_method"))
	b.Open(t, both.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "consent_required")

	// A consent given while tokens were JWTs does not cover fabric tokens.
	c := p.NewClient(t, "spa", "--access-token", "jwt")
	b = c.Browser()
	tokens := c.SignInWith(t, b, sub, loginScope)
	c.Refresh(t, tokens.RefreshToken).Want(t, 200).Read(t, &tokens)

	p.Command(t, "", "client", "update", c.ID, "--access-token", "fabric")
	harness.WithinASecond(t, "a code without a new consent", func() error {
		got := b.Open(t, c.NewFlow(loginScope).With("prompt", "none").URL()).Callback(t)
		if got.Get("error") != "consent_required" {
			return fmt.Errorf("the client gets %v", got)
		}
		return nil
	})
	c.Refresh(t, tokens.RefreshToken).WantError(t, 400, "invalid_grant")

	// After the consent, the account page lists the access. If the access is revoked, the app must
	// ask again.
	page := b.Open(t, c.NewFlow(loginScope).URL())
	if !strings.Contains(string(page.Body), "Call as you") {
		t.Fatalf("the page does not ask whether the app may call as the subscriber: %s", page.Body)
	}
	b.Submit(t, page, "consent-allow", nil).Callback(t)
	b.Open(t, c.NewFlow(loginScope).With("prompt", "none").URL()).Callback(t)
	if apps := string(b.Open(t, p.AuthURL+"/account").Body); !strings.Contains(apps, "Call as you") {
		t.Error("the account page does not show that an app may call as the subscriber")
	}
	p.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sub.ID+"/consents/"+c.ID, p.Basic()).Want(t, 204)
	b.Open(t, c.NewFlow(loginScope).With("prompt", "none").URL()).WantCallbackError(t, "consent_required")
}
