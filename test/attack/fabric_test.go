package attack

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// faults returns the code for each attribute that a 422 response names. It checks that every entry
// is a complete validation error.
func faults(t *testing.T, a harness.Answer) map[string]string {
	t.Helper()
	var body struct {
		Errors []struct{ Type, Code, Message, Attribute, URL string }
	}
	a.Want(t, 422).Read(t, &body)
	codes := make(map[string]string)
	for _, e := range body.Errors {
		if e.Type != "validation_error" {
			t.Errorf("an entry of a 422 has the type %q, want validation_error", e.Type)
		}
		if e.Code == "" || e.Message == "" || e.URL == "" {
			t.Errorf("a 422 has the entry %+v, want a code, a message and a URL", e)
		}
		codes[e.Attribute] = e.Code
	}

	if len(codes) == 0 {
		t.Errorf("a 422 names no errors: %s", a.Body)
	}
	return codes
}

// wantFault checks that a 422 response has an error for an attribute.
func wantFault(t *testing.T, request string, a harness.Answer, attribute string) {
	t.Helper()
	if codes := faults(t, a); codes[attribute] == "" {
		t.Errorf("%s: the errors are %v, want one for %s", request, codes, attribute)
	}
}

// TestF05Bodies shows that bodies that are malformed, too large or not a JSON object are refused
// and create nothing. The errors have the format of the fabric API.
func TestF05Bodies(t *testing.T) {
	p := project(t)
	const tokens = "/api/fabric/subscribers/tokens"
	refuse := func(name, kind, body string, statuses ...int) {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			a := p.Post(t, tokens, p.Basic(), harness.Body(kind, []byte(body)))
			a.Want(t, statuses...)
			if took := time.Since(began); took > time.Minute/2 {
				t.Errorf("the refusal took %v, want at most half a minute", took)
			}
			if o := a.Object(t); o["error"] == nil && o["errors"] == nil {
				t.Errorf("the refusal is %s, want the fabric API's format", a.Body)
			}
		})
	}

	const eve = `{"reference":"eve"}`
	refuse("text", "text/plain", eve, 400, 415)
	refuse("no type", "", eve, 400, 415)
	refuse("a different charset", "application/json; charset=utf-16", eve, 400, 415)
	refuse("a form with a duplicate member", "application/x-www-form-urlencoded",
		"reference=eve&reference=eve2", 400)

	for name, body := range map[string]string{
		"100,000 brackets": `{"reference":` + strings.Repeat("[", 100_000),
		"byte order mark":  "\xef\xbb\xbf" + eve,
		"not UTF-8":        "{\"reference\":\"\xff\"}",
		"a member twice":   `{"reference":"eve","reference":"eve2"}`,
		"trailing bytes":   eve + " x",
		"two objects":      eve + "{}",
		"NaN":              `{"reference":NaN}`,
		"an array":         `["reference"]`,
		"null":             "null",
		"nothing":          "",
		"half":             `{"reference":"e`,
	} {
		refuse(name, "application/json", body, 400)
	}

	for name, body := range map[string]string{
		"a number":         `{"reference":1}`,
		"an object":        `{"reference":{}}`,
		"NUL":              `{"reference":"eve\u0000"}`,
		"a name of 64 KiB": `{"reference":"` + strings.Repeat("e", 64<<10) + `"}`,
	} {
		refuse(name, "application/json", body, 422)
	}

	closed := `{"reference":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"
	refuse("closed brackets", "application/json", closed, 400, 422)
	refuse("10 MiB", "application/json", `{"reference":"`+strings.Repeat("x", 10<<20)+`"}`, 413)

	var list struct{ Data []any }
	p.Get(t, "/api/fabric/resources/subscribers", p.Basic()).Want(t, 200).Read(t, &list)
	if len(list.Data) != 0 {
		t.Errorf("refused requests created %d subscribers", len(list.Data))
	}
	p.Post(t, tokens, p.Basic(), harness.Form(url.Values{"reference": {"ada"}})).Want(t, 200)
}

// TestF07AllowedAddresses shows that a request for a guest token must name one to ten addresses of
// its own project.
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
		addresses any
		code      string // any code if empty
	}{
		"empty":        {addresses: []string{}},
		"null":         {addresses: nil},
		"a string":     {addresses: mine, code: "invalid_parameter"},
		"eleven":       {addresses: eleven, code: "allowed_address_limit_exceeded"},
		"not a UUID":   {addresses: []string{"x"}},
		"null inside":  {addresses: []any{nil}},
		"unknown":      {addresses: eleven[:1], code: "must_belong_to_project"},
		"another's":    {addresses: []string{mine, theirs}, code: "must_belong_to_project"},
		"SQL":          {addresses: []string{"' OR 1=1--"}},
		"upper-case":   {addresses: []string{strings.ToUpper(theirs)}},
		"nested array": {addresses: [][]string{{mine}}, code: "invalid_parameter"},
	}

	request := func(body map[string]any) harness.Answer {
		return p.Post(t, "/api/fabric/guests/tokens", p.Basic(), harness.JSON(body))
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := faults(t, request(map[string]any{"allowed_addresses": tt.addresses}))["allowed_addresses"]
			if !ok {
				t.Error("the 422 does not name allowed_addresses")
			}
			if tt.code != "" && got != tt.code {
				t.Errorf("the 422 has the code %q for allowed_addresses, want %q", got, tt.code)
			}
		})
	}

	absent := faults(t, request(map[string]any{}))
	if got := absent["allowed_addresses"]; got != "missing_required_parameter" {
		t.Errorf("without allowed_addresses, the 422 has the code %q, want missing_required_parameter", got)
	}
	request(map[string]any{"allowed_addresses": []string{mine, mine}}).Want(t, 201, 422)

	// A response reports all faults of a request at once.
	both := faults(t, request(map[string]any{"expire_at": "soon"}))
	for _, attribute := range []string{"allowed_addresses", "expire_at"} {
		if both[attribute] == "" {
			t.Errorf("the response to two faults is %v, want %s among them", both, attribute)
		}
	}
}

// TestF08Invites shows that a subscriber can create invites only to the subscriber's own addresses,
// and only for a limited time. An invite becomes invalid when its address is deleted.
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
			t.Errorf("an invite to an address (%s): the error does not name address_id", name)
		}
	}

	now := time.Now()
	for _, expiry := range []any{
		0, -1, 1.5, 1e300, "soon", []int{1}, "99999999999999999999",
		now.Unix() - 1,
		now.AddDate(0, 0, 31).Unix(),
	} {
		a := invite(map[string]any{"address_id": mine, "expires_at": expiry})
		if _, ok := faults(t, a)["expires_at"]; !ok {
			t.Errorf("an invite with expires_at %v: the error does not name expires_at", expiry)
		}
	}

	token := p.NewInvite(t, ada.Token, mine)
	p.Get(t, "/api/fabric/addresses/"+mine, harness.Bearer(token)).Want(t, 200)
	p.Get(t, "/api/fabric/addresses/"+theirs, harness.Bearer(token)).Want(t, 404)

	p.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+ada.SubscriberID, p.Basic()).Want(t, 204)
	harness.WithinASecond(t, "an invite to a deleted address", func() error {
		a := p.Get(t, "/api/fabric/addresses/"+mine, harness.Bearer(token))
		if a.Status == 401 {
			return nil
		}
		return a.StatusIs(404)
	})
}

// TestF10Refresh shows that a fabric refresh token works once and only in its own project. It also
// shows that the fingerprint and scope in a request for a token are checked.
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
	wantFault(t, "a used refresh token", refresh(p, first.RefreshToken), "refresh_token")
	faults(t, refresh(p, second.RefreshToken)) // the family has ended

	for _, bad := range []any{first.Token, "x", "", nil, 1, []string{"x"}, strings.Repeat("x", 32<<10)} {
		wantFault(t, fmt.Sprintf("refresh_token %.20v", bad), refresh(p, bad), "refresh_token")
	}

	// A fingerprint is a SHA-256 hash in base64url: 43 characters.
	issue := func(parameters map[string]any) harness.Answer {
		parameters["reference"] = "grace"
		return p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(), harness.JSON(parameters))
	}
	for _, bad := range []any{strings.Repeat("a", 42), strings.Repeat("a", 44), strings.Repeat("a", 42) + "+", 1} {
		a := issue(map[string]any{"scope": "sat:refresh", "fingerprint": bad})
		wantFault(t, fmt.Sprint("fingerprint ", bad), a, "fingerprint")
	}
	issue(map[string]any{"scope": []string{"sat:refresh"}, "fingerprint": strings.Repeat("a", 43)}).Want(t, 200)
	wantFault(t, "an unknown scope", issue(map[string]any{"scope": "everything"}), "scope")
}

// TestF10ShortLife shows that a token with the scope sat:refresh, but without a fingerprint, is
// valid for at most a minute.
func TestF10ShortLife(t *testing.T) {
	p := project(t)
	var sat harness.SAT
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
		harness.JSON(map[string]any{"reference": "ada", "scope": "sat:refresh"})).Want(t, 200).Read(t, &sat)

	inspected := p.CLI(t, sat.Token, "token", "inspect")
	expiry, err := time.Parse(time.RFC3339, fmt.Sprint(inspected["expires_at"]))
	if err != nil {
		t.Fatalf("token inspect printed %v: %v", inspected, err)
	}
	if left := time.Until(expiry); left > time.Minute {
		t.Errorf("the token is valid for another %v, want at most a minute", left)
	}
}

// TestF13Hosts shows that a request for a token cannot choose the host that the token's holder
// connects to.
func TestF13Hosts(t *testing.T) {
	p := project(t)
	mine := p.Address(t, p.NewSAT(t, "ada").SubscriberID)
	for _, field := range []string{"ch", "region"} {
		for _, value := range []any{
			"evil.example", "puc.evil.example:8443", "ws://evil.example", "us-central\r\nX-Evil: 1",
			map[string]string{"x": "y"}, 1,
		} {
			for path, body := range map[string]map[string]any{
				"/api/fabric/subscribers/tokens": {"reference": "ada"},
				"/api/fabric/guests/tokens":      {"allowed_addresses": []string{mine}},
			} {
				body[field] = value
				request := fmt.Sprintf("%s with %s %v", path, field, value)
				wantFault(t, request, p.Post(t, path, p.Basic(), harness.JSON(body)), field)
			}
		}
	}
}
