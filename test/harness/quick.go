package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// The flows in this file use a signed-in browser and a first-party client, so that no page is
// shown. They return errors instead of failing the test, because tests run many flows concurrently
// and may kill the server meanwhile.

// QuickCode gets an authorization code in one request.
func (f *Flow) QuickCode(cookies Option) (string, error) {
	a, err := f.Client.Try("GET", "/login/oauth/authorize?"+f.Query.Encode(), cookies)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(a.Header.Get("Location"))
	if err != nil {
		return "", err
	}
	if code := u.Query().Get("code"); code != "" && u.Query().Get("state") == f.Query.Get("state") {
		return code, nil
	}
	return "", fmt.Errorf("authorize returned %d with the location %q, want a code", a.Status,
		a.Header.Get("Location"))
}

// QuickRedeem redeems an authorization code.
func (f *Flow) QuickRedeem(code string) (Tokens, error) {
	return f.Client.QuickToken(f.Form(code))
}

// QuickRefresh redeems a refresh token.
func (c *Client) QuickRefresh(token string) (Tokens, error) {
	return c.QuickToken(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
}

// A Refusal is an error response of the token endpoint.
type Refusal struct {
	Status int
	Code   string `json:"error"`
}

func (r *Refusal) Error() string { return fmt.Sprintf("%d %s", r.Status, r.Code) }

// Patiently repeats ask, for at most a minute, while ask returns the status 503, or a [*Refusal]
// with this status. On a busy machine, many concurrent requests for the same row may wait longer
// than the server permits.
func Patiently(ask func() (status int, err error)) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		var r *Refusal
		if status, err := ask(); status != 503 && (!errors.As(err, &r) || r.Status != 503) {
			return
		}
	}
}

// TryPatiently is like [Server.Try], but repeats the request while the server is overloaded; see
// [Patiently].
func (s *Server) TryPatiently(method, target string, opts ...Option) (a Answer, err error) {
	Patiently(func() (int, error) {
		a, err = s.Try(method, target, opts...)
		return a.Status, err
	})
	return a, err
}

// QuickToken requests tokens. The error is a [*Refusal] if the status of the response is not 200.
func (c *Client) QuickToken(form url.Values) (Tokens, error) {
	a, err := c.Try("POST", "/oauth/token", c.Authenticated(form)...)
	if err != nil {
		return Tokens{}, err
	}
	if a.Status != 200 {
		r := &Refusal{Status: a.Status}
		_ = json.Unmarshal(a.Body, r) // a body that is not JSON has no error code
		return Tokens{}, r
	}
	var tokens Tokens
	return tokens, json.Unmarshal(a.Body, &tokens)
}
