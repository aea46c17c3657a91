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
	maxMaxAge    = 100_000_000 // about three years, in seconds
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
	req := AuthRequest{
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

	// Parse the mode first, because all later errors are sent in this mode.
	err := req.parseResponseMode(v)
	if err != nil {
		return req, err
	}
	if err := c.checkSource(src); err != nil {
		return req, err
	}

	req.Prompt, err = parsePrompt(v.Get("prompt"))
	if err != nil {
		return req, err
	}
	if v.Has("registration") {
		return req, oauth("registration_not_supported", "registration is not supported")
	}
	if err := req.parseGranted(c, v); err != nil {
		return req, err
	}
	if err := rs.parseLogin(c, &req, v); err != nil {
		return req, err
	}
	req.Resources, err = rs.parseResources(c, v["resource"])
	if err != nil {
		return req, err
	}

	// The response must repeat state and nonce unchanged, so a value that is too long is an error.
	// Hints that are too long are ignored.
	switch {
	case len(req.State) > maxState:
		return req, oauth("invalid_request", "state is longer than %d bytes", maxState)
	case len(req.Nonce) > maxState:
		return req, oauth("invalid_request", "nonce is longer than %d bytes", maxState)
	}
	if len(req.LoginHint) > maxLoginHint {
		req.LoginHint = ""
	}
	if len(req.UILocales) > maxLocales {
		req.UILocales = ""
	}
	return req, nil
}

// parseGranted reads the parameters that determine what the response grants: its type, the scopes,
// and the proofs that are needed to use a code.
func (a *AuthRequest) parseGranted(c Client, v url.Values) (err error) {
	a.ResponseType, err = parseResponseType(c, v)
	if err != nil {
		return err
	}
	a.Scope, err = c.parseScope(v.Get("scope"))
	if err != nil {
		return err
	}
	if a.ResponseType != ResponseCode {
		if err := a.checkImplicit(c); err != nil {
			return err
		}
	}

	if a.Returns(ResponseCode) {
		a.Challenge, err = parseChallenge(c, v)
		if err != nil {
			return err
		}
	}
	a.JKT = v.Get("dpop_jkt")
	if a.JKT != "" && !isDigest(a.JKT) {
		return oauth("invalid_request", "dpop_jkt must be the 43 characters of a base64url SHA-256 (RFC 7638)")
	}
	return nil
}

// parseLogin reads the parameters that determine which logins can answer the request: the maximum
// age, the subscriber, and the class of the authentication. It also reads the requested claims.
func (rs *Requests) parseLogin(c Client, a *AuthRequest, v url.Values) error {
	maxAge, err := parseMaxAge(v)
	if err != nil {
		return err
	}
	if maxAge == nil {
		maxAge = c.DefaultMaxAge
	}
	a.MaxAge = maxAge

	// Ignore an invalid hint, because it must not make the request fail.
	hint, ok := rs.tokens.OpenIDHint(v.Get("id_token_hint"))
	if ok && hint.ClientID == c.ID {
		a.meanOneOf(rs.subjects, c, []string{hint.Subject})
	}

	acr := c.DefaultACR
	if v.Has("acr_values") {
		acr = strings.Fields(v.Get("acr_values"))
	}
	a.wantACR(acr)
	return rs.parseClaims(c, a, v.Get("claims")) // may restrict the subscriber and the class further
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
	responseType := canonicalResponseType(v.Get("response_type"))
	if responseType == "" && c.Profile == MobileLegacy {
		responseType = ResponseCode
	}
	if responseType == "" {
		return "", oauth("invalid_request", "response_type is missing; it must be %s",
			strings.Join(responseTypes, " or "))
	}
	if !slices.Contains(responseTypes, responseType) {
		return "", oauth("unsupported_response_type", "response_type must be %s",
			strings.Join(responseTypes, " or "))
	}

	if !c.Answers(responseType) {
		code := "unauthorized_client"
		if strings.Contains(responseType, " ") {
			code = "unsupported_response_type" // such types exist only for clients that are registered for them
		}
		return "", oauth(code, "this client is not registered for the response_type %s", responseType)
	}
	return responseType, nil
}

// parseChallenge applies the rules of the client's profile for code_challenge and
// code_challenge_method (docs/architecture.md).
func parseChallenge(c Client, v url.Values) (string, error) {
	challenge := v.Get("code_challenge")
	method := v.Get("code_challenge_method")
	if challenge == "" && method == "" && c.PKCEOptional {
		return "", nil
	}
	if challenge == "" {
		return "", oauth("invalid_request", "code_challenge is missing (RFC 7636)")
	}

	if method == "" && c.Profile == MobileLegacy {
		method = "S256"
	}
	if method != "S256" {
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

// allowedScopes returns scopes in canonical form, or an error if the client may not have all of them.
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

// Prompts returns the supported values of prompt (OpenID Connect Core, section 3.1.2.1). The value
// create is one of them only where people may create their own accounts (Initiating User
// Registration via OpenID Connect 1.0).
func Prompts(mayRegister bool) []string {
	prompts := []string{"none", "login", "consent", "select_account"}
	if mayRegister {
		prompts = append(prompts, "create")
	}
	return prompts
}

// CheckCreate returns an error for prompt=create if people may not create their own accounts.
func (rs *Requests) CheckCreate(ctx context.Context, c Client, a AuthRequest) error {
	if !a.Has("create") {
		return nil
	}
	mayRegister, err := rs.MayRegister(ctx, c.ProjectID)
	if err != nil {
		return err
	}
	if !mayRegister {
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

// parseMaxAge returns nil if the request does not limit the age of the login.
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
