package attack

import (
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// wantNoRedirectTo opens the authorization endpoint with each redirect URI, and wants an error
// page.
func wantNoRedirectTo(t *testing.T, c *harness.Client, uris ...string) {
	t.Helper()
	for _, uri := range uris {
		t.Run(uri, func(t *testing.T) {
			c.Browser().Open(t, c.NewFlow("openid").With("redirect_uri", uri).URL()).WantErrorPage(t, 400)
		})
	}
}

// TestA01RedirectVariants shows that a redirect URI with anything added or removed is refused.
func TestA01RedirectVariants(t *testing.T) {
	c := project(t).NewClient(t, "spa")
	wantNoRedirectTo(t, c,
		"https://rp.example/cb/../evil", "https://rp.example/cb.evil.example", "https://rp.example/cb/x",
		"https://rp.example/c", "https://rp.example/cb?x=1",
		"https://rp.example@evil.example/cb", "https://evil.example@rp.example/cb",
		"https://a@b@rp.example/cb", "//rp.example/cb", "/cb", "https://rp.example")
}

// TestA04RedirectSchemes shows that fragments, script URLs and other schemes are refused as
// redirect URIs.
func TestA04RedirectSchemes(t *testing.T) {
	p := project(t)
	wantNoRedirectTo(t, p.NewClient(t, "spa"),
		"https://rp.example/cb#x", "https://rp.example/cb%23x", "javascript:alert(1)//https://rp.example/cb",
		"data:text/html,x", "vbscript:x", "http://rp.example/cb")
	wantNoRedirectTo(t, p.NewClient(t, "native", "--redirect-uri", "com.dialer://oauth-callback"),
		"com.dialler://oauth-callback", "com.dialer://oauth-callback#x", "com.dialer://oauth-callback/",
		"com.dialer:/oauth-callback")
}

// TestA07RedirectSpelling shows that redirect URIs are compared as strings, so that other spellings
// of a registered URI are refused.
func TestA07RedirectSpelling(t *testing.T) {
	wantNoRedirectTo(t, project(t).NewClient(t, "spa"),
		"HTTPS://RP.EXAMPLE/cb", "https://rp.example:443/cb", "https://rp.example./cb",
		"https://rр.example/cb", `https://rp.example\@evil.example/cb`,
		"https://rp.example/c\tb", "https://rp.example/cb\n", " https://rp.example/cb",
		"https://rp.example/..;/cb", "https://rp.example/%63b", "https://rp.example//cb")
}

// TestA08UnknownClients shows that the error page does not reveal which clients exist.
func TestA08UnknownClients(t *testing.T) {
	p := project(t)
	c, gone := p.NewClient(t, "spa"), p.NewClient(t, "spa")
	p.Command(t, "", "client", "delete", gone.ID)
	tests := map[string]*harness.Flow{
		"unknown client":               c.NewFlow("openid").With("client_id", "01900000-0000-7000-8000-000000000000"),
		"no client":                    c.NewFlow("openid").Without("client_id"),
		"odd client":                   c.NewFlow("openid").With("client_id", "' OR 1=1--"),
		"deleted client":               gone.NewFlow("openid"),
		"no redirect_uri":              c.NewFlow("openid").Without("redirect_uri"),
		"empty":                        c.NewFlow("openid").With("redirect_uri", ""),
		"an unregistered redirect_uri": c.NewFlow("openid").With("redirect_uri", "https://evil.example/"),
	}

	want := ""
	for name, f := range tests {
		page := c.Browser().Open(t, f.URL(),
			// The page tells requests from this machine the cause.
			harness.Header("X-Forwarded-For", "192.0.2.1"))
		page.WantErrorPage(t, 400)
		got := plain(page.Answer)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s: the error page differs from the others:\n%s\n%s", name, got, want)
		}
	}
}

// TestA10Challenge shows that public and confidential clients must use PKCE, with the method S256.
func TestA10Challenge(t *testing.T) {
	p := project(t)
	clients := map[string]*harness.Client{"public": p.NewClient(t, "spa"), "confidential": p.NewClient(t, "web")}
	for kind, c := range clients {
		tests := map[string]*harness.Flow{
			"no challenge":               c.NewFlow("openid").Without("code_challenge", "code_challenge_method"),
			"plain":                      c.NewFlow("openid").With("code_challenge_method", "plain"),
			"no method":                  c.NewFlow("openid").Without("code_challenge_method"),
			"lower case":                 c.NewFlow("openid").With("code_challenge_method", "s256"),
			"unknown":                    c.NewFlow("openid").With("code_challenge_method", "S999"),
			"method without a challenge": c.NewFlow("openid").Without("code_challenge"),
		}
		for name, f := range tests {
			t.Run(kind+", "+name, func(t *testing.T) {
				c.Browser().Open(t, f.URL()).WantCallbackError(t, "invalid_request")
			})
		}
	}

	// Clients of the legacy profile must not use a weak method either.
	legacy := p.NewClient(t, "native", "--profile", "mobile-legacy", "--redirect-uri", "com.dialer://oauth-callback")
	legacy.Browser().Open(t, legacy.NewFlow("").With(
		"code_challenge_method", "plain").URL()).WantCallbackError(t, "invalid_request")
	legacy.Browser().Open(t, legacy.NewFlow("").Without("code_challenge").URL()).WantCallbackError(t,
		"invalid_request")

	methods := p.Get(t, "/.well-known/openid-configuration").Want(t,
		200).Object(t)["code_challenge_methods_supported"]
	if list, ok := methods.([]any); !ok || len(list) != 1 || list[0] != "S256" {
		t.Errorf("code_challenge_methods_supported = %v, want [S256]", methods)
	}
}

// TestA10OptionalChallenge shows that a client for which PKCE is optional must send a verifier if,
// and only if, the flow began with a challenge.
func TestA10OptionalChallenge(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "web", "--pkce", "optional", "--first-party")
	sub := p.NewSubscriber(t)
	b := c.Browser()

	without := c.NewFlow(loginScope).Without("code_challenge", "code_challenge_method")
	// Redeem always sends a verifier.
	without.Redeem(t, without.Code(t, b, sub)).WantError(t, 400, "invalid_grant")
	form := without.Form(without.Code(t, b, sub))
	form.Del("code_verifier")
	c.Token(t, form).Want(t, 200)

	with := c.NewFlow(loginScope)
	form = with.Form(with.Code(t, b, sub))
	form.Del("code_verifier")
	c.Token(t, form).WantError(t, 400, "invalid_grant")
}

// TestA12Verifiers shows that challenges and verifiers are refused if their length or alphabet is
// wrong. The verifier of another flow is refused too.
func TestA12Verifiers(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)
	for _, challenge := range []string{strings.Repeat("a", 42), strings.Repeat("a", 129),
		strings.Repeat("a", 40) + "+/=", ""} {
		c.Browser().Open(t, c.NewFlow("openid").With("code_challenge", challenge).URL()).WantCallbackError(t,
			"invalid_request")
	}

	b := c.Browser()
	for _, verifier := range []string{strings.Repeat("v", 42), strings.Repeat("v", 129),
		strings.Repeat("v", 42) + "é", strings.Repeat("v", 42) + " "} {
		f := c.NewFlow("openid").With("code_challenge", harness.Challenge(verifier))
		f.Verifier = verifier
		f.Redeem(t, f.Code(t, b, sub)).Want(t, 400)
	}

	mine, other := c.NewFlow("openid"), c.NewFlow("openid")
	code := mine.Code(t, b, sub)
	other.Redeem(t, code).WantError(t, 400, "invalid_grant")
}

// TestA14Replay shows that redeeming a code twice revokes the tokens of the first redemption.
func TestA14Replay(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	for _, kind := range []string{"fabric", "jwt"} {
		t.Run(kind, func(t *testing.T) {
			c := p.NewClient(t, "spa", "--access-token", kind)
			f := c.NewFlow(loginScope)
			code := f.Code(t, c.Browser(), sub)
			var tokens harness.Tokens
			f.Redeem(t, code).Want(t, 200).Read(t, &tokens)

			p.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)).Want(t, 200)
			f.Redeem(t, code).WantError(t, 400, "invalid_grant")
			harness.WithinASecond(t, "the access token of a replayed code to be revoked", func() error {
				return p.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)).StatusIs(401)
			})
			c.Refresh(t, tokens.RefreshToken).WantError(t, 400, "invalid_grant")
		})
	}
}

// TestA17CodeBinding shows that a code is bound to its redirect URI and its client. An attempt by
// another client does not invalidate the code.
func TestA17CodeBinding(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "web", "--first-party")
	sub, b := p.NewSubscriber(t), c.Browser()
	for _, uri := range []string{"https://evil.example/cb", "https://rp.example/CB", "https://rp.example/cb/"} {
		f := c.NewFlow(loginScope)
		form := f.Form(f.Code(t, b, sub))
		form.Set("redirect_uri", uri)
		c.Token(t, form).WantError(t, 400, "invalid_grant")
	}

	for name, other := range map[string]*harness.Client{"its project": p.NewClient(t, "web"),
		"another project": project(t).NewClient(t, "web")} {
		f := c.NewFlow(loginScope)
		code := f.Code(t, b, sub)
		if a := other.Token(t, f.Form(code)); a.Status != 400 || a.Object(t)["error"] != "invalid_grant" {
			t.Errorf("another client of %s redeemed the code: %d %s, want invalid_grant", name, a.Status,
				a.Body)
		}
		f.Redeem(t, code).Want(t, 200) // the code is still valid
	}

	for _, code := range []string{"", "x", strings.Repeat("A", 10_000), "' OR 1=1--", "\x00"} {
		c.Token(t, c.NewFlow(loginScope).Form(code)).Want(t, 400)
	}
}

// TestA18Issuer shows that authorization responses name the issuer (RFC 9207), and that the
// metadata announces this.
func TestA18Issuer(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa")
	good := c.Browser().SignIn(t, c.NewFlow("openid").URL(), p.NewSubscriber(t))
	bad := c.Browser().Open(t, c.NewFlow("nonsense").URL()).Callback(t)
	for _, answer := range []url.Values{good, bad} {
		if got := answer.Get("iss"); got != p.Issuer() {
			t.Errorf("iss = %q in %v, want %q", got, answer, p.Issuer())
		}
	}

	for _, name := range []string{"openid-configuration", "oauth-authorization-server"} {
		// Naive clients append to an issuer that ends with a slash.
		for _, folder := range []string{"/.well-known/", "//.well-known/"} {
			doc := p.Get(t, p.HTTP+folder+name).Want(t, 200).Object(t)
			if iss := doc["authorization_response_iss_parameter_supported"]; doc["issuer"] != p.Issuer() ||
				iss != true {
				t.Errorf("%s%s: the issuer is %v and iss is supported: %v; want %q, true", folder, name,
					doc["issuer"], iss, p.Issuer())
			}
		}
	}
}
