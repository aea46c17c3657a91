package attack

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// clientCredentials returns the smallest token request.
func clientCredentials() url.Values { return url.Values{"grant_type": {"client_credentials"}} }

// TestT01TwoWays shows that a client must not authenticate in two ways in the same request.
func TestT01TwoWays(t *testing.T) {
	c := project(t).NewClient(t, "service")
	for _, secret := range []string{c.Secret, "another"} {
		form := clientCredentials()
		form.Set("client_id", c.ID)
		form.Set("client_secret", secret)
		c.Post(t, "/oauth/token", harness.Form(form), harness.Basic(c.ID, c.Secret)).WantError(
			t, 400, "invalid_request")
	}
	form := clientCredentials()
	form.Set("client_id", project(t).NewClient(t, "service").ID)
	c.Post(t, "/oauth/token", harness.Form(form), harness.Basic(c.ID, c.Secret)).Want(t, 400, 401)
}

// TestT04BasicForms shows that malformed Basic credentials are refused, and that credentials may be
// escaped (RFC 6749, section 2.3.1).
func TestT04BasicForms(t *testing.T) {
	c := project(t).NewClient(t, "service")
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	tests := map[string]struct {
		header string
		status int
	}{
		"as documented":      {"Basic " + encode(c.ID+":"+c.Secret), 200},
		"lower-case":         {"basic " + encode(c.ID+":"+c.Secret), 200},
		"escaped characters": {"Basic " + encode(escapeAll(c.ID)+":"+escapeAll(c.Secret)), 200},
		"bad escape in name": {"Basic " + encode("%zz:"+c.Secret), 401},
		"bad secret escape":  {"Basic " + encode(c.ID+":%zz"), 401},
		"no colon":           {"Basic " + encode(c.ID+c.Secret), 401},
		"not base64":         {"Basic !!!!", 401},
		"nothing":            {"Basic ", 401},
		"not UTF-8":          {"Basic " + encode("\xff\xfe:\xff"), 401},
		"special characters": {"Basic " + encode(c.ID+":%3A%20%25%2B%26%3D%C3%A9"), 401},
		"a different scheme": {"Bearer " + c.Secret, 401},
		"digest":             {"Digest username=x", 401},
	}

	for name, tt := range tests {
		if a := c.Post(t, "/oauth/token", harness.Form(clientCredentials()),
			harness.Header("Authorization", tt.header)); a.Status != tt.status {
			t.Errorf("credentials (%s) returned %d %s, want %d", name, a.Status, a.Body, tt.status)
		}
	}

	c.Post(t, "/oauth/token", harness.Form(clientCredentials()), harness.Basic(c.ID, c.Secret),
		harness.AddHeader("Authorization", "Basic x")).Want(t, 400, 401)
}

func escapeAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString("%" + strings.ToUpper(string("0123456789abcdef"[s[i]>>4])) + strings.ToUpper(
			string("0123456789abcdef"[s[i]&15])))
	}
	return b.String()
}

// TestT05WrongClient shows that a client must authenticate with its registered method and with
// exactly its own secret.
func TestT05WrongClient(t *testing.T) {
	p := project(t)
	basic, public := p.NewClient(t, "service"), p.NewClient(t, "spa")
	post := p.NewClient(t, "service", "--auth-method", "client_secret_post")

	inBody := func(c *harness.Client, secret string) harness.Option {
		form := clientCredentials()
		form.Set("client_id", c.ID)
		form.Set("client_secret", secret)
		return harness.Form(form)
	}

	refresh := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}}
	secret := url.Values{
		"grant_type":    {"refresh_token"},
		"refresh_token": {"x"},
		"client_id":     {public.ID},
		"client_secret": {"x"},
	}

	tests := map[string][]harness.Option{
		"wrong secret": {harness.Form(clientCredentials()), harness.Basic(basic.ID, "wrong")},
		"empty secret": {harness.Form(clientCredentials()), harness.Basic(basic.ID, "")},
		"unknown client": {harness.Form(clientCredentials()),
			harness.Basic("nobody", basic.Secret)},
		"another's secret":         {harness.Form(clientCredentials()), harness.Basic(basic.ID, post.Secret)},
		"post client by Basic":     {harness.Form(clientCredentials()), harness.Basic(post.ID, post.Secret)},
		"basic client in the body": {inBody(basic, basic.Secret)},
		"wrong secret in the body": {inBody(post, "wrong")},
		"confidential client, no secret": {harness.Form(
			url.Values{"grant_type": {"client_credentials"}, "client_id": {basic.ID}})},
		"public client with a secret": {harness.Form(secret)},
		"public client by Basic":      {harness.Form(refresh), harness.Basic(public.ID, "x")},
		"nobody":                      {harness.Form(clientCredentials())},
		"secret hash (SHA-256) as secret": {harness.Form(clientCredentials()),
			harness.Basic(basic.ID, harness.Challenge(basic.Secret))},
		"secret with a suffix": {harness.Form(clientCredentials()),
			harness.Basic(basic.ID, basic.Secret+"x")},
		"secret without its last character": {harness.Form(clientCredentials()),
			harness.Basic(basic.ID, basic.Secret[:len(basic.Secret)-1])},
		"secret with a NUL after it": {harness.Form(clientCredentials()),
			harness.Basic(basic.ID, basic.Secret+"%00")},
		"client id in upper case": {harness.Form(clientCredentials()),
			harness.Basic(strings.ToUpper(basic.ID), basic.Secret)},
	}

	// Clients that identify themselves in the body do not get the challenge Basic.
	named := []string{"basic client in the body", "wrong secret in the body",
		"confidential client, no secret", "public client with a secret"}
	for name, opts := range tests {
		t.Run(name, func(t *testing.T) {
			a := p.Post(t, "/oauth/token", opts...).WantError(t, 401, "invalid_client")
			want := !slices.Contains(named, name)
			got := a.Header.Get("WWW-Authenticate")
			if strings.HasPrefix(got, "Basic ") != want || (got == "") == want {
				t.Errorf("WWW-Authenticate = %q, want Basic: %v", got, want)
			}
		})
	}
}

// TestT07Grants shows that a client cannot use unsupported grants, or grants for which it is not
// registered.
func TestT07Grants(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	web, service, public := p.NewClient(t, "web"), p.NewClient(t, "service"), p.NewClient(t, "spa")
	for _, grant := range []string{"password", "implicit", "urn:ietf:params:oauth:grant-type:token-exchange",
		"urn:ietf:params:oauth:grant-type:jwt-bearer",
		"urn:ietf:params:oauth:grant-type:device_code", "", "authorization_code "} {
		form := url.Values{
			"grant_type":    {grant},
			"username":      {sub.Email},
			"password":      {sub.Password},
			"assertion":     {"x.y.z"},
			"subject_token": {"x"},
			"device_code":   {"x"},
		}
		a := web.Token(t, form).Want(t, 400)
		if got := a.Object(t)["error"]; got != "unsupported_grant_type" && got != "unauthorized_client" &&
			(grant != "" || got != "invalid_request") {
			t.Errorf("grant_type %q: %v, want unsupported_grant_type", grant, got)
		}
	}

	public.Token(t, clientCredentials()).Want(t, 400, 401)
	web.Token(t, clientCredentials()).WantError(t, 400, "unauthorized_client")
	service.Token(t, service.NewFlow("openid").Form("x")).WantError(t, 400, "unauthorized_client")
	service.Refresh(t, "x").WantError(t, 400, "unauthorized_client")
}

// TestT08RefreshReuse redeems used refresh tokens again. During a grace period, the predecessor of
// the current token returns the current token again. After the grace period, redeeming the
// predecessor ends the family of tokens. Redeeming an older token ends the family at any time.
func TestT08RefreshReuse(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	for _, kind := range []string{"fabric", "jwt"} {
		for back := 1; back <= 2; back++ {
			t.Run(fmt.Sprintf("%s, %d back", kind, back), func(t *testing.T) {
				t.Parallel()
				c := p.NewClient(t, "spa", "--access-token", kind)
				tokens, _ := c.SignIn(t, sub, loginScope)
				used := tokens.RefreshToken
				for range back {
					c.Refresh(t, tokens.RefreshToken).Want(t, 200).Read(t, &tokens)
				}

				p.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)).Want(t, 200)
				if back == 1 {
					harness.Eventually(t, time.Minute, "the end of the grace period", func() error {
						again := c.Refresh(t, used)
						if again.Status == 200 && again.Object(t)["refresh_token"] != tokens.RefreshToken {
							t.Errorf("a used refresh token returned another successor: %s", again.Body)
						}
						return again.StatusIs(400)
					})
				}

				c.Refresh(t, used).WantError(t, 400, "invalid_grant")
				c.Refresh(t, tokens.RefreshToken).WantError(t, 400, "invalid_grant")
				harness.WithinASecond(t, "an access token of an ended family", func() error {
					return p.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)).StatusIs(401)
				})
			})
		}
	}
}

// TestT10RefreshBinding shows that a refresh token is bound to its client and its scopes. A
// refresh may request fewer scopes, but not more than were granted.
func TestT10RefreshBinding(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "web")
	sub := p.NewSubscriber(t)
	tokens, _ := c.SignIn(t, sub, loginScope)
	for _, other := range []*harness.Client{p.NewClient(t, "web"), p.NewClient(t, "spa"),
		project(t).NewClient(t, "web")} {
		other.Refresh(t, tokens.RefreshToken).WantError(t, 400, "invalid_grant")
	}

	ask := func(scope string) harness.Answer {
		t.Helper()
		a := c.Token(t, url.Values{
			"grant_type":    {"refresh_token"},
			"refresh_token": {tokens.RefreshToken},
			"scope":         {scope},
		})
		if a.Status == 200 {
			a.Read(t, &tokens)
		}
		return a
	}

	ask(loginScope+" Voice").WantError(t, 400, "invalid_scope")
	ask("openid").Want(t, 200)
	if tokens.Scope != "" && tokens.Scope != "openid" {
		t.Errorf("a refresh with the scope openid returned the scope %q", tokens.Scope)
	}
	p.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)).Want(t, 200)
	ask(loginScope).Want(t, 200) // a later refresh may request everything that was granted
	ask("openid Voice").WantError(t, 400, "invalid_scope")
}

// TestT14Bodies shows that the token endpoint accepts only a small, well-formed form by POST.
func TestT14Bodies(t *testing.T) {
	c := project(t).NewClient(t, "service")
	auth := harness.Basic(c.ID, c.Secret)
	form := []byte("grant_type=client_credentials")
	tests := map[string]struct {
		kind   string
		body   []byte
		status []int
	}{
		"JSON": {"application/json", []byte(`{"grant_type":"client_credentials"}`), []int{415}},
		"multipart": {"multipart/form-data; boundary=x",
			[]byte("--x\r\nContent-Disposition: form-data; name=grant_type\r\n\r\nclient_credentials\r\n--x--\r\n"),
			[]int{400, 415}},
		"UTF-16":   {"application/x-www-form-urlencoded; charset=utf-16", form, []int{400, 415}},
		"no type":  {"", form, []int{400, 415}},
		"odd type": {"application/;;", form, []int{400, 415}},
		"100,000 parameters": {"application/x-www-form-urlencoded", bytes.Repeat([]byte("a=1&"), 100_000),
			[]int{400, 413}},
		"1 MiB": {"application/x-www-form-urlencoded",
			append([]byte("x="), bytes.Repeat([]byte("x"), 1<<20)...), []int{413}},
		"twice": {"application/x-www-form-urlencoded",
			append(form, "&grant_type=refresh_token"...), []int{400}},
		"bad escape": {"application/x-www-form-urlencoded", append(form, "&x=%zz"...), []int{400}},
		"empty":      {"application/x-www-form-urlencoded", nil, []int{400}},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			c.Post(t, "/oauth/token", harness.Body(tt.kind, tt.body), auth).Want(t, tt.status...)
			if took := time.Since(began); took > time.Minute/2 {
				t.Errorf("the refusal took %v, want at most half a minute", took)
			}
		})
	}

	c.Post(t, "/oauth/token?grant_type=client_credentials", harness.Form(url.Values{}), auth).Want(t, 400)
	for _, method := range []string{"GET", "PUT", "DELETE", "PATCH"} {
		c.Do(t, method, "/oauth/token?grant_type=client_credentials", auth).Want(t, 405)
	}
}

// TestT15Headers checks responses that contain or refuse tokens. They must not be cached, must not
// allow scripts of other origins to use credentials, and must not repeat anything from the request.
func TestT15Headers(t *testing.T) {
	c := project(t).NewClient(t, "service")
	wrong := "wrong-secret-of-mine"
	answers := []harness.Answer{
		c.Post(t, "/oauth/token", harness.Form(clientCredentials()), harness.Basic(c.ID, c.Secret),
			harness.Header("Origin", "https://evil.example")).Want(t, 200),
		c.Post(t, "/oauth/token", harness.Form(clientCredentials()), harness.Basic(c.ID, wrong),
			harness.Header("Origin", "https://evil.example")).Want(t, 401),
		c.Token(t, url.Values{"grant_type": {"<b>"}}).Want(t, 400),
	}

	for _, a := range answers {
		h := a.Header
		if h.Get("Cache-Control") != "no-store" ||
			!strings.HasPrefix(h.Get("Content-Type"), "application/json") ||
			h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("the %d response has the headers %v, want no-store, JSON and nosniff", a.Status, h)
		}
		if h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("the %d response allows scripts of other origins to use credentials", a.Status)
		}
		if strings.Contains(string(a.Body), wrong) || strings.Contains(string(a.Body), c.Secret) ||
			strings.Contains(string(a.Body), "<b>") {
			t.Errorf("the %d response repeats the values that were sent: %s", a.Status, a.Body)
		}
	}
}
