package idp

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// These are the limits of a request's parameters. Lengths are in bytes.
const (
	maxState     = 4096
	maxScopes    = 64
	maxMaxAge    = 100_000_000 // three years, in seconds
	maxLoginHint = 320
	maxLocales   = 200
)

// base64URL has the characters of base64url (RFC 4648, section 5).
const base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// isDigest reports whether s has the form of a SHA-256 in base64url.
func isDigest(s string) bool {
	return len(s) == 43 && strings.Trim(s, base64URL) == ""
}

// isVerifier reports whether s has the form of a code_verifier (RFC 7636, section 4.1).
func isVerifier(s string) bool {
	return len(s) >= 43 && len(s) <= 128 && strings.Trim(s, base64URL+".~") == ""
}

// requestParams lists the parameters of an authorization request that this server uses.
var requestParams = []string{
	"acr_values", "claims", "client_id", "code_challenge", "code_challenge_method", "dpop_jkt",
	"id_token_hint", "login_hint", "max_age", "nonce", "prompt", "redirect_uri", "registration", "resource",
	"response_mode", "response_type", "scope", "state", "ui_locales",
}

// Parse checks the parameters of a request whose client and redirect URI have been checked. Its
// errors have the codes of RFC 6749, section 4.1.2.1 and OpenID Connect Core, section 3.1.2.6. The
// caller sends them to the client in the Mode of the returned request, which Parse sets even if it
// returns an error.
func (rs *Requests) Parse(c Client, v url.Values, src Source) (AuthRequest, error) {
	a := AuthRequest{
		ID:          randomToken(),
		ClientID:    c.ID,
		RedirectURI: v.Get("redirect_uri"),
		State:       v.Get("state"),
		Nonce:       v.Get("nonce"),
		LoginHint:   v.Get("login_hint"),
		UILocales:   v.Get("ui_locales"),
		Created:     rs.Now(),
		Pushed:      src.pushed,
		PushedUntil: src.until,
	}

	// Parse the mode first, because all later errors are sent in it.
	err := a.parseResponseMode(v)
	if err != nil {
		return a, err
	}
	if err := c.checkSource(src); err != nil {
		return a, err
	}
	if a.Prompt, err = parsePrompt(v.Get("prompt")); err != nil {
		return a, err
	}
	if v.Has("registration") {
		return a, oauth("registration_not_supported", "registration is not supported")
	}

	if a.ResponseType, err = parseResponseType(c, v); err != nil {
		return a, err
	}
	if a.Scope, err = c.parseScope(v.Get("scope")); err != nil {
		return a, err
	}
	if a.ResponseType != ResponseCode {
		if err := a.checkImplicit(c); err != nil {
			return a, err
		}
	}
	if a.Returns(ResponseCode) {
		if a.Challenge, err = parseChallenge(c, v); err != nil {
			return a, err
		}
	}

	a.JKT = v.Get("dpop_jkt")
	if a.JKT != "" && !isDigest(a.JKT) {
		return a, oauth("invalid_request", "dpop_jkt must be the 43 characters of a base64url SHA-256 (RFC 7638)")
	}

	// These parameters determine which logins can answer the request: maximum age, subscriber and
	// class.
	if a.MaxAge, err = parseMaxAge(v); err != nil {
		return a, err
	}
	if a.MaxAge == nil {
		a.MaxAge = c.DefaultMaxAge
	}

	// Ignore an invalid hint, because it must not make the request fail.
	if hint, ok := rs.tokens.OpenIDHint(v.Get("id_token_hint")); ok && hint.ClientID == c.ID {
		a.meanOneOf(rs.subjects, c, []string{hint.Subject})
	}

	acr := c.DefaultACR
	if v.Has("acr_values") {
		acr = strings.Fields(v.Get("acr_values"))
	}
	a.wantACR(acr)

	if err := rs.parseClaims(c, &a, v.Get("claims")); err != nil {
		return a, err
	}
	if a.Resources, err = rs.parseResources(c, v["resource"]); err != nil {
		return a, err
	}

	// The response must repeat state and nonce unchanged, so a value that is too long is an error.
	// Hints that are too long are ignored.
	switch {
	case len(a.State) > maxState:
		return a, oauth("invalid_request", "state is longer than %d bytes", maxState)
	case len(a.Nonce) > maxState:
		return a, oauth("invalid_request", "nonce is longer than %d bytes", maxState)
	case len(a.LoginHint) > maxLoginHint:
		a.LoginHint = ""
	case len(a.UILocales) > maxLocales:
		a.UILocales = ""
	}
	return a, nil
}

// oauth returns an error with an OAuth or OpenID Connect error code.
func oauth(code, format string, args ...any) *problem.Error {
	return problem.New(problem.Invalid, code, format, args...)
}

// checkSource returns an error if the client must push or sign its requests and has not done so.
func (c Client) checkSource(src Source) error {
	switch {
	case c.mustPush() && src.pushed == "":
		return oauth("invalid_request", "this client must push its authorization requests (RFC 9126)")
	case c.RequireObject && !src.signed:
		return oauth("invalid_request", "this client must sign its authorization requests (RFC 9101)")
	}
	return nil
}

// parseResponseType returns the response type if the client is registered for it.
func parseResponseType(c Client, v url.Values) (string, error) {
	t := canonicalResponseType(v.Get("response_type"))
	switch {
	case t == "" && c.Profile == MobileLegacy:
		t = ResponseCode
	case t == "":
		return "", oauth("invalid_request", "response_type is missing; it must be %s",
			strings.Join(responseTypes, " or "))
	case !slices.Contains(responseTypes, t):
		return "", oauth("unsupported_response_type", "response_type must be %s",
			strings.Join(responseTypes, " or "))
	}
	if c.Answers(t) {
		return t, nil
	}

	code := "unauthorized_client"
	if strings.Contains(t, " ") {
		code = "unsupported_response_type" // such types exist only for clients that are registered for them
	}
	return "", oauth(code, "this client is not registered for the response_type %s", t)
}

// parseChallenge applies the rules of the client's profile for code_challenge and
// code_challenge_method (docs/architecture.md).
func parseChallenge(c Client, v url.Values) (string, error) {
	challenge, method := v.Get("code_challenge"), v.Get("code_challenge_method")
	switch {
	case challenge == "" && method == "" && c.PKCEOptional:
		return "", nil
	case challenge == "":
		return "", oauth("invalid_request", "code_challenge is missing (RFC 7636)")
	case method == "" && c.Profile == MobileLegacy:
	case method != "S256":
		return "", oauth("invalid_request", "code_challenge_method must be S256")
	}
	if !isDigest(challenge) {
		return "", oauth("invalid_request", "code_challenge must be the 43 characters of a base64url SHA-256")
	}
	return challenge, nil
}

// parseScope returns the requested scopes. A scope that the client may not have is an error.
func (c Client) parseScope(raw string) ([]string, error) {
	asked := strings.Fields(raw)
	if len(asked) == 0 && c.Profile == MobileLegacy {
		return c.Scopes, nil
	}
	if len(asked) == 0 {
		return nil, oauth("invalid_scope", "scope is missing")
	}
	return c.allowedScopes(asked)
}

func (c Client) allowedScopes(asked []string) ([]string, error) {
	if len(asked) > maxScopes {
		return nil, oauth("invalid_scope", "more than %d scopes", maxScopes)
	}
	known, unknown := canonicalScopes(asked)
	if len(unknown) > 0 {
		return nil, oauth("invalid_scope", "unknown scope")
	}
	for _, s := range known {
		if !slices.Contains(c.Scopes, s) {
			return nil, oauth("invalid_scope", "this client may not request the scope %s", s)
		}
	}
	return known, nil
}

// Prompts returns the supported values of prompt (OpenID Connect Core, section 3.1.2.1). If open is
// set, they include create. open is for projects in which people may create their own accounts
// (Initiating User Registration via OpenID Connect 1.0).
func Prompts(open bool) []string {
	all := []string{"none", "login", "consent", "select_account"}
	if open {
		all = append(all, "create")
	}
	return all
}

// CheckCreate returns an error for prompt=create if people may not create their own accounts.
func (rs *Requests) CheckCreate(ctx context.Context, c Client, a AuthRequest) error {
	if !a.Has("create") {
		return nil
	}
	open, err := rs.MayRegister(ctx, c.ProjectID)
	if err != nil {
		return err
	}
	if !open {
		return oauth("invalid_request", "prompt=create is not supported: people cannot create their own accounts here")
	}
	return nil
}

func parsePrompt(raw string) ([]string, error) {
	prompts := strings.Fields(raw)
	for _, p := range prompts {
		if !slices.Contains(Prompts(true), p) {
			return nil, oauth("invalid_request", "prompt has an unknown value")
		}
	}
	if len(prompts) > 1 && slices.Contains(prompts, "none") {
		return nil, oauth("invalid_request", "prompt=none cannot be combined with other values")
	}
	return prompts, nil
}

func parseMaxAge(v url.Values) (*int64, error) {
	if !v.Has("max_age") {
		return nil, nil
	}
	n, err := strconv.ParseInt(v.Get("max_age"), 10, 64)
	if err != nil || n < 0 || n > maxMaxAge {
		return nil, oauth("invalid_request", "max_age must be a number of seconds from 0 to %d", maxMaxAge)
	}
	return &n, nil
}
