package oidc

import (
	"net/http"
	"net/url"

	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/web"
)

// readCredentials returns the credentials of a client. It rejects an invalid Basic header, and
// several kinds of credentials in one request (RFC 6749, section 2.3). If the client uses Basic,
// readCredentials deletes an empty client_secret from the form. Some clients send one, and an empty value
// counts as omitted (RFC 6749, section 3.2).
func readCredentials(r *http.Request, form url.Values) (*op.ClientCredentials, *refusal) {
	hasHeader := len(r.Header.Values("Authorization")) > 0
	hasAssertion := form.Has("client_assertion") || form.Has("client_assertion_type")
	if hasAssertion && (hasHeader || form.Has("client_secret")) {
		return nil, invalidRequest("the client authenticates in more than one way")
	}

	cc := &op.ClientCredentials{
		ClientID:            form.Get("client_id"),
		ClientSecret:        form.Get("client_secret"),
		ClientAssertion:     form.Get("client_assertion"),
		ClientAssertionType: form.Get("client_assertion_type"),
	}
	if hasAssertion {
		if refused := checkAssertionForm(form); refused != nil {
			return nil, refused
		}
		return cc, nil
	}
	if !hasHeader {
		// Everyone may know a client_id. For introspection, a client must prove that it has this id.
		proven := form.Has("client_secret") || web.Certificates(r) != nil
		if !form.Has("client_id") || r.URL.Path == introspectPath && !proven {
			return nil, invalidClient("the client does not authenticate")
		}
		return cc, nil
	}

	clientID, secret, ok := basicCredentials(r)
	if !ok {
		return nil, invalidClient("the Authorization header has no valid Basic credentials")
	}
	if cc.ClientSecret != "" {
		return nil, invalidRequest("the client authenticates in more than one way")
	}
	form.Del("client_secret")
	if cc.ClientID != "" && cc.ClientID != clientID {
		return nil, invalidRequest("client_id is not the one of the Authorization header")
	}
	cc.ClientID, cc.ClientSecret = clientID, secret
	return cc, nil
}

// invalidClient returns the refusal for a client that does not authenticate correctly.
func invalidClient(text string) *refusal {
	return &refusal{status: http.StatusUnauthorized, code: "invalid_client", text: text}
}

// basicCredentials returns the credentials in a Basic header, which are encoded like form values (RFC
// 6749, section 2.3.1).
func basicCredentials(r *http.Request) (clientID, secret string, ok bool) {
	user, password, ok := web.Basic(r)
	if !ok {
		return "", "", false
	}
	clientID, err := url.QueryUnescape(user)
	if err != nil || clientID == "" {
		return "", "", false
	}
	secret, err = url.QueryUnescape(password)
	if err != nil {
		return "", "", false
	}
	return clientID, secret, true
}

// checkAssertionForm checks that both parameters of RFC 7521, section 4.2 are present.
func checkAssertionForm(form url.Values) *refusal {
	if form.Get("client_assertion_type") != idp.AssertionType {
		return invalidClient("client_assertion_type must be " + idp.AssertionType)
	}
	if form.Get("client_assertion") == "" {
		return invalidClient("client_assertion is missing")
	}
	return nil
}
