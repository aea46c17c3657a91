package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/selvage/selvage/test/harness"
)

// codeFlow returns a task that runs a complete authorization flow in a signed-in browser. The flow
// takes two requests: one for the code and one for the tokens.
func (w *world) codeFlow() task {
	return func(c *wire) error {
		f := w.login.NewFlow(loginScope)
		a, err := c.do(w.get("/login/oauth/authorize?"+f.Query.Encode(), "Cookie: "+w.cookies))
		if err != nil {
			return err
		}
		code, err := codeOf(a, f)
		if err != nil {
			return err
		}
		return w.redeem(c, f, code)
	}
}

// codeOf returns the authorization code in the redirect that ends a flow.
func codeOf(a answer, f *harness.Flow) (string, error) {
	redirect, err := url.Parse(a.header("Location"))
	if err != nil {
		return "", err
	}
	q := redirect.Query()
	code, state := q.Get("code"), q.Get("state")
	if code == "" || state != f.Query.Get("state") {
		return "", fmt.Errorf("the authorization endpoint returned %d and redirected to %q", a.status,
			redirect)
	}
	return code, nil
}

// redeem exchanges the code of a flow for tokens.
func (w *world) redeem(c *wire, f *harness.Flow, code string) error {
	request := f.Form(code)
	request.Set("client_id", w.login.ID)
	a, err := c.do(w.post("/oauth/token", form, request.Encode()))
	if err != nil {
		return err
	}
	return a.want(200, `"access_token"`, `"id_token":"ey`, `"refresh_token"`)
}

// refreshChain returns a task that redeems a refresh token. Each repetition redeems the token that
// the previous repetition returned. The first token comes from an authorization flow of its own.
func (w *world) refreshChain(p *harness.Program) task {
	f := w.login.NewFlow(loginScope)
	code, err := f.QuickCode(harness.Header("Cookie", w.cookies))
	if err != nil {
		p.Fatalf("%v", err)
	}
	tokens, err := f.QuickRedeem(code)
	if err != nil {
		p.Fatalf("%v", err)
	}

	return func(c *wire) error {
		body := url.Values{
			"grant_type":    {"refresh_token"},
			"refresh_token": {tokens.RefreshToken},
			"client_id":     {w.login.ID},
		}
		a, err := c.do(w.post("/oauth/token", form, body.Encode()))
		if err != nil {
			return err
		}
		if err := a.want(200, `"id_token":"ey`); err != nil {
			return err
		}

		used := tokens.RefreshToken
		if err := json.Unmarshal(a.body, &tokens); err != nil {
			return err
		}
		if tokens.RefreshToken == used {
			return fmt.Errorf("the refresh token was not rotated")
		}
		return nil
	}
}

// passwordLogin returns a task that signs in from a browser without cookies. It takes three
// requests: the redirect to the login page, the page, and the form with the password.
func (w *world) passwordLogin() task {
	origin := "Origin: " + strings.TrimSuffix(w.Issuer(), "/")
	return func(c *wire) error {
		f := w.login.NewFlow(loginScope)
		a, err := c.do(w.get("/login/oauth/authorize?" + f.Query.Encode()))
		if err != nil {
			return err
		}

		page, cookie := a.header("Location"), cookiesOf(a)
		login, err := url.Parse(page)
		if err != nil || login.Path != "/login" {
			return fmt.Errorf("the authorization endpoint returned %d and redirected to %q, want a login page",
				a.status, page)
		}

		shown, err := c.do(w.get(page, cookie))
		if err != nil {
			return err
		}
		if err := shown.want(200, `id="login-submit"`); err != nil {
			return err
		}

		fields := url.Values{
			"id":       {login.Query().Get("id")},
			"username": {w.sub.Email},
			"password": {w.sub.Password},
		}
		signedIn, err := c.do(w.post("/login", form, fields.Encode(), cookie, origin, "Sec-Fetch-Site: same-origin"))
		if err != nil {
			return err
		}
		_, err = codeOf(signedIn, f)
		return err
	}
}

// cookiesOf returns the Cookie header for the cookies that a response sets.
func cookiesOf(a answer) string {
	var pairs []string
	for _, line := range strings.Split(string(a.head), "\r\n") {
		if value, ok := strings.CutPrefix(line, "Set-Cookie: "); ok {
			pair, _, _ := strings.Cut(value, ";")
			pairs = append(pairs, pair)
		}
	}
	return "Cookie: " + strings.Join(pairs, "; ")
}
