package oidc

import (
	"net/http"
	"net/url"

	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/web"
)

// readCredentials returns the credentials of a client. It rejects an invalid Basic header, and
// several kinds of credentials in one request (RFC 6749, section 2.3).
func readCredentials(r *http.Request, form url.Values) (*op.ClientCredentials, *refusal) {
	headers := r.Header.Values("Authorization")
	asserted := form.Has("client_assertion") || form.Has("client_assertion_type")
	if asserted && (len(headers) > 0 || form.Has("client_secret")) {
		return nil, invalidRequest("the client authenticates in more than one way")
	}

	cc := &op.ClientCredentials{
		ClientID:            form.Get("client_id"),
		ClientSecret:        form.Get("client_secret"),
		ClientAssertion:     form.Get("client_assertion"),
		ClientAssertionType: form.Get("client_assertion_type"),
	}
	if asserted {
		return cc, checkAssertionForm(form)
	}

	if len(headers) == 0 {
		proven := form.Has("client_secret") || web.Certificates(r) != nil
		if !form.Has("client_id") || r.URL.Path == introspectPath && !proven {
			return nil, &refusal{
				status: http.StatusUnauthorized,
				code:   "invalid_client",
				text:   "the client does not authenticate",
			}
		}
		return cc, nil
	}

	name, secret, ok := basicCredentials(r)
	if !ok {
		return nil, &refusal{
			status: http.StatusUnauthorized,
			code:   "invalid_client",
			text:   "the Authorization header has no valid Basic credentials",
		}
	}
	if cc.ClientSecret != "" {
		return nil, invalidRequest("the client authenticates in more than one way")
	}
	form.Del("client_secret") // some clients send an empty value, which counts as omitted (RFC 6749, section 3.2)
	if cc.ClientID != "" && cc.ClientID != name {
		return nil, invalidRequest("client_id is not the one of the Authorization header")
	}
	cc.ClientID, cc.ClientSecret = name, secret
	return cc, nil
}

// basicCredentials returns the credentials in a Basic header, which are encoded like form values (RFC
// 6749, section 2.3.1).
func basicCredentials(r *http.Request) (clientID, secret string, ok bool) {
	name, password, ok := web.Basic(r)
	if !ok {
		return "", "", false
	}
	clientID, err := url.QueryUnescape(name)
	if err != nil || clientID == "" {
		return "", "", false
	}
	secret, err = url.QueryUnescape(password)
	return clientID, secret, err == nil
}

// checkAssertionForm checks that both parameters of RFC 7521, section 4.2 are present.
func checkAssertionForm(form url.Values) *refusal {
	switch {
	case form.Get("client_assertion_type") != idp.AssertionType:
		return &refusal{
			status: http.StatusUnauthorized,
			code:   "invalid_client",
			text:   "client_assertion_type must be " + idp.AssertionType,
		}
	case form.Get("client_assertion") == "":
		return &refusal{
			status: http.StatusUnauthorized,
			code:   "invalid_client",
			text:   "client_assertion is missing",
		}
	}
	return nil
}
