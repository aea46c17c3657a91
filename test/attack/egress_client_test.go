package attack

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// inside returns URLs that only the server can reach. Most of them lead to the trap. The URLs in
// shown name localhost or an internal address. The host name in hidden resolves to an internal
// address.
func (tr *trap) inside(t *testing.T) (shown []string, hidden string) {
	t.Helper()
	u, err := url.Parse(tr.URL)
	if err != nil {
		t.Fatal(err)
	}
	port := ":" + u.Port()
	return []string{"http://localhost" + port, "https://localhost" + port, "https://127.0.0.1" + port,
		"https://[::ffff:127.0.0.1]" + port, "https://169.254.169.254"}, "https://" + privateName(t) + port
}

// TestI12ClientDocuments shows that the server never fetches a client's documents from an address
// that only the server can reach. These documents are the client's keys, sector identifier, logo
// and request objects.
func TestI12ClientDocuments(t *testing.T) {
	p, tr := project(t), newTrap(t)
	p.CLI(t, "", "project", "update", p.ID, "--client-registration", "token")
	token := p.CLI(t, "", "client-registration", "token", "create", "--project", p.ID)["token"].(string)
	register := func(more map[string]any) harness.Answer {
		body := map[string]any{"client_name": "Parrot", "redirect_uris": []string{harness.RedirectURI}}
		maps.Copy(body, more)
		return p.Post(t, "/oauth/register", harness.Bearer(token), harness.JSON(body))
	}

	shown, hidden := tr.inside(t)
	for _, at := range append(shown, hidden) {
		register(map[string]any{"sector_identifier_uri": at, "subject_type": "pairwise"}).
			WantError(t, 400, "invalid_client_metadata")
	}

	documents := func(at string) map[string]any {
		return map[string]any{
			"logo_uri":                   at,
			"request_uris":               []string{at},
			"jwks_uri":                   at,
			"backchannel_logout_uri":     at,
			"token_endpoint_auth_method": "private_key_jwt",
		}
	}

	for _, at := range shown {
		a := register(documents(at)).WantError(t, 400, "invalid_client_metadata")
		for _, member := range []string{"logo_uri", "request_uris", "jwks_uri", "backchannel_logout_uri"} {
			if !strings.Contains(string(a.Body), member) {
				t.Errorf("registering a client with %s at %s: %s, want an error about this member", member,
					at, a.Body)
			}
		}
	}

	id := register(documents(hidden)).Want(t, 201).Object(t)["client_id"].(string)
	wantUnfetched(t, &harness.Client{Project: p, ID: id, Redirect: harness.RedirectURI}, hidden)
	tr.wantNoCalls(t)
}

// wantUnfetched checks that a client whose documents are at hidden has no logo, no request object
// and no keys.
func wantUnfetched(t *testing.T, c *harness.Client, hidden string) {
	t.Helper()
	page := c.Browser().Open(t, c.NewFlow("openid").URL())
	if !page.Has("login-submit") || page.Has("brand-logo") {
		t.Errorf("the login page is %d %s, want it without a logo", page.Status, page.Body)
	}

	fetched := url.Values{
		"client_id":     {c.ID},
		"response_type": {"code"},
		"scope":         {"openid"},
		"redirect_uri":  {c.Redirect},
		"request_uri":   {hidden},
	}
	got := c.Browser().Open(t, c.Issuer()+"login/oauth/authorize?"+fetched.Encode()).Callback(t)
	if got.Get("error") != "invalid_request_uri" {
		t.Errorf("with a request_uri at %s: %v, want invalid_request_uri", hidden, got)
	}

	form := url.Values{
		"grant_type":            {"authorization_code"},
		"code":                  {"x"},
		"redirect_uri":          {c.Redirect},
		"client_assertion":      {unverified(t, c)},
		"client_assertion_type": {assertionType},
	}
	c.Post(t, "/oauth/token", harness.Form(form)).WantError(t, 401, "invalid_client")
}

// unverified returns a client assertion with a wrong signature. To find that out, the server must
// fetch the client's keys.
func unverified(t *testing.T, c *harness.Client) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{
		"iss": c.ID,
		"sub": c.ID,
		"aud": c.Issuer(),
		"jti": rand.Text(),
		"exp": time.Now().Add(time.Minute).Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + part(claims) + "." + part(make([]byte, 64))
}

// TestI12Upstream shows that the server never fetches the metadata of a provider from an address
// that only the server can reach.
func TestI12Upstream(t *testing.T) {
	p, tr := project(t), newTrap(t)
	shown, hidden := tr.inside(t)
	provider := func(issuer string) harness.Option {
		return harness.JSON(map[string]any{
			"name":          "Inside",
			"issuer":        issuer,
			"client_id":     "selvage",
			"client_secret": "secret",
		})
	}

	for _, issuer := range shown {
		a := p.Post(t, "/api/project/upstreams", manager(t, p), provider(issuer))
		if a.Status != 422 || !strings.Contains(string(a.Body), "issuer") {
			t.Errorf("a provider at %s = %d %s, want 422 about the issuer", issuer, a.Status, a.Body)
		}
	}

	p.Post(t, "/api/project/upstreams", manager(t, p), provider(hidden)).Want(t, 201)
	b := p.Browser()
	left := b.Submit(t, b.Open(t, p.NewClient(t, "spa").NewFlow("openid").URL()), "upstream-0", nil)
	if left.Left != nil || left.Status < 400 {
		t.Errorf("the button led to %v with the status %d, want an error page", left.Left, left.Status)
	}
	tr.wantNoCalls(t)
}
