package idp

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// A ResponseMode is how an authorization response reaches the client (OAuth 2.0 Multiple
// Response Type Encoding Practices, section 2.1; OAuth 2.0 Form Post Response Mode).
type ResponseMode string

// The modes: in the query of the redirect URI, in its fragment, or in a form that the
// browser posts to it.
const (
	Query    ResponseMode = "query"
	Fragment ResponseMode = "fragment"
	FormPost ResponseMode = "form_post"
)

// ResponseModes returns the modes.
func ResponseModes() []string { return []string{string(Query), string(Fragment), string(FormPost)} }

// heedObject returns the parameters of a request, completed by the state and
// response_mode of its request object. Request objects are rejected, and a client that
// puts everything into one (RFC 9101) learns it in the way that it expects. The object's
// author does not matter: both values could be in the request as well.
func heedObject(v url.Values) url.Values {
	parts := strings.Split(v.Get("request"), ".")
	if len(parts) != 3 {
		return v
	}

	var object struct {
		State string `json:"state"`
		Mode  string `json:"response_mode"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &object) != nil || len(object.State) > maxState {
		return v
	}

	heeded := maps.Clone(v)
	if object.State != "" && !v.Has("state") {
		heeded.Set("state", object.State)
	}
	if object.Mode != "" && !v.Has("response_mode") {
		heeded.Set("response_mode", object.Mode)
		if _, err := parseResponseMode(heeded); err != nil {
			heeded.Del("response_mode")
		}
	}
	return heeded
}

// parseResponseMode returns the mode of a request's response, errors included. If the
// requested mode is impossible, it returns an error and the default mode of the
// response_type, which the error is sent in.
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
		return own, oauth("invalid_request", "a form cannot return this state unchanged")
	}
	return FormPost, nil
}
