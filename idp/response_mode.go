package idp

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A ResponseMode is how an authorization response is sent to the client (OAuth 2.0 Multiple
// Response Type Encoding Practices, section 2.1; OAuth 2.0 Form Post Response Mode).
type ResponseMode string

// These are the response modes: parameters in the query of the redirect URI, in its fragment, or in
// a form that the browser posts to it.
const (
	Query    ResponseMode = "query"
	Fragment ResponseMode = "fragment"
	FormPost ResponseMode = "form_post"
)

// signedMode is the response mode, or the suffix of one, for parameters in a signed JWT (JWT
// Secured Authorization Response Mode, JARM, section 2.3).
const signedMode = "jwt"

// ResponseModes returns the supported values of response_mode.
func ResponseModes() (all []string) {
	for _, m := range []ResponseMode{Query, Fragment, FormPost} {
		all = append(all, string(m), string(m)+"."+signedMode)
	}
	return append(all, signedMode)
}

// parseResponseMode sets the mode in which the response, or an error, is sent. If the requested
// mode is invalid, it returns an error and sets the default mode of the response_type.
func (a *AuthRequest) parseResponseMode(v url.Values) error {
	usual, asked := Query, v.Get("response_mode")
	kinds := strings.Fields(v.Get("response_type"))
	if slices.Contains(kinds, "id_token") || slices.Contains(kinds, "token") {
		usual = Fragment
	}
	a.Mode = usual

	mode := ResponseMode(asked)
	if asked == signedMode {
		mode, a.Signed = usual, true
	} else if plain, signed := strings.CutSuffix(asked, "."+signedMode); signed {
		mode, a.Signed = ResponseMode(plain), true
	}
	switch {
	case asked == "" || mode == usual || mode == Fragment:
		a.Mode = cmp.Or(mode, usual)
		return nil
	case mode == Query:
		// Servers see a query and log it (Multiple Response Types, section 3).
		return oauth("invalid_request", "response_mode must not be query for this response_type")
	case mode != FormPost:
		a.Signed = false
		return oauth("invalid_request", "response_mode must be one of %s", strings.Join(ResponseModes(), ", "))
	case (AuthRequest{RedirectURI: v.Get("redirect_uri")}).Origin() == "":
		return oauth("invalid_request", "response_mode form_post needs a redirect_uri with http or https")
	case !a.Signed && strings.ContainsAny(v.Get("state"), "\x00\r\n"):
		return oauth("invalid_request", "a form cannot return this state unchanged")
	}
	a.Mode = FormPost
	return nil
}

// responseFor is how long a signed response is valid (JARM, section 2.1).
const responseFor = 10 * time.Minute

// SignResponse returns the parameters of an authorization response as a JWT (JARM, section 2.1).
// The JWT has no sub, so it cannot be mistaken for an ID token.
func (ts *Tokens) SignResponse(c Client, v url.Values) (string, error) {
	claims := map[string]any{}
	for name := range maps.Keys(v) {
		claims[name] = v.Get(name)
	}
	claims["iss"], claims["aud"] = ts.Issuer, c.ID
	claims["exp"] = ts.Now().Add(responseFor).Unix()
	return ts.Ring.Sign(cmp.Or(c.ResponseAlg, c.IDTokenAlg), "JWT", claims)
}
