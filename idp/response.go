package idp

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// A ResponseMode is how an authorization response gets to the client (OAuth 2.0
// Multiple Response Type Encoding Practices, section 2.1; OAuth 2.0 Form Post
// Response Mode).
type ResponseMode string

// The modes: in the query of the redirect URI, in its fragment, or in a form that
// the browser posts to it.
const (
	Query    ResponseMode = "query"
	Fragment ResponseMode = "fragment"
	FormPost ResponseMode = "form_post"
)

// ResponseModes lists the modes.
func ResponseModes() []string { return []string{string(Query), string(Fragment), string(FormPost)} }

// parseResponseMode gives the mode of a request's answer, errors included: the one
// that is asked, where it can be, else the one that its response_type has by itself,
// which an error says is taken instead.
func parseResponseMode(v url.Values) (ResponseMode, error) {
	own, asked := Query, v.Get("response_mode")
	kinds := strings.Fields(v.Get("response_type"))
	if slices.Contains(kinds, "id_token") || slices.Contains(kinds, "token") {
		own = Fragment
	}
	switch mode := ResponseMode(asked); {
	case asked == "" || mode == own || mode == Fragment:
		return cmp.Or(mode, own), nil
	case mode == Query:
		// Servers and logs see a query (Multiple Response Types, section 3).
		return own, oauth("invalid_request", "response_mode must not be query for this response_type")
	case mode != FormPost:
		return own, oauth("invalid_request", "response_mode must be one of %s", strings.Join(ResponseModes(), ", "))
	case (AuthRequest{RedirectURI: v.Get("redirect_uri")}).Origin() == "":
		return own, oauth("invalid_request", "response_mode form_post needs a redirect_uri with http or https")
	case strings.ContainsAny(v.Get("state"), "\x00\r\n"):
		return own, oauth("invalid_request", "a form cannot bring back this state as it is")
	}
	return FormPost, nil
}
