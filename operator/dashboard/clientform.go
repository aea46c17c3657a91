package dashboard

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/keys"
)

// These are the choices for settings of a client, with their titles.
var (
	profileTitles = []choice{
		{Value: string(idp.Default), Title: "Default",
			Why: "OAuth 2.1: PKCE with S256, and a redirect URI and a scope in each request. Choose this for " +
				"all new apps."},
		{Value: string(idp.MobileLegacy), Title: "Mobile, legacy",
			Why: "Accepts the requests of older native fabric apps: no scope, no response type, a JSON body at the " +
				"token endpoint. Still requires PKCE with S256."},
		{Value: string(idp.FAPI2), Title: "FAPI 2.0",
			Why: "For money and health: pushed requests, a key or certificate instead of a secret, and tokens that " +
				"are bound to one."},
	}
	authTitles = []choice{
		{Title: "Default for its type"},
		{Value: string(idp.AuthNone), Title: "None: it keeps no secret"},
		{Value: string(idp.AuthBasic), Title: "Secret in the Authorization header (client_secret_basic)"},
		{Value: string(idp.AuthPost), Title: "Secret in the form (client_secret_post)"},
		{Value: string(idp.AuthPrivateKeyJWT), Title: "Signed assertion (private_key_jwt)"},
		{Value: string(idp.AuthTLS), Title: "Certificate by a trusted authority (tls_client_auth)"},
		{Value: string(idp.AuthSelfSignedTLS), Title: "Certificate in its JWKS (self_signed_tls_client_auth)"},
	}
	formatTitles = []choice{
		{Title: "Default for its type"},
		{Value: string(idp.FabricToken), Title: "Fabric tokens: for browser SDKs and the fabric API"},
		{Value: string(idp.JWTToken), Title: "JWTs (RFC 9068): other services can verify them with the JWKS"},
	}
	pkceTitles = []choice{
		{Value: "required", Title: "Required"},
		{Value: "optional", Title: "Optional: only for clients that authenticate"},
	}
	requestTitles = []choice{
		{Title: "As parameters, pushed or signed"},
		{Value: requestsPushed, Title: "Pushed (RFC 9126)"},
		{Value: requestsSigned, Title: "Signed (RFC 9101)"},
		{Value: requestsBoth, Title: "Pushed and signed"},
	}
	acrTitles   = []choice{{Title: "The factors they have set up"}, {Value: "2", Title: "Always two factors"}}
	grantTitles = []choice{
		{Value: idp.GrantCode, Title: "Sign users in (authorization_code)"},
		{Value: idp.GrantRefresh, Title: "Keep users signed in (refresh_token)"},
		{Value: idp.GrantDevice, Title: "Sign in on devices without a browser (device_code)"},
		{Value: idp.GrantClientCredentials, Title: "Act for itself (client_credentials)"},
	}
)

// A clientForm is the form that registers or changes a client.
type clientForm struct {
	Base   string
	Action string
	Title  string
	Button string
	Back   string
	BackTo string
	Form   form
}

// clientForm returns the form for a client. A new client has no ID.
func (v *visit) clientForm(c idp.Client) clientForm {
	if c.ID == "" {
		types := selectChoices(typeTitles, string(c.Type))
		typ := input{Kind: "cards", Name: "type", Label: "Type", Options: types}
		fields := clientFields(c)
		fields.Inputs = append([]input{typ}, fields.Inputs...)
		return clientForm{
			Base:   v.base(),
			Action: v.base() + "/clients",
			Title:  "New OAuth client",
			Button: "Register client",
			Back:   v.base() + "/clients",
			Form:   fields,
		}
	}

	row := v.clientRow(c)
	fields := clientFields(c)
	fields.mark()
	return clientForm{
		Base:   v.base(),
		Action: row.URL + "/edit",
		Title:  words.Textf("Edit %s", row.Title),
		Button: "Save changes",
		Back:   row.URL,
		BackTo: row.Title,
		Form:   fields,
	}
}

// clientFields returns the inputs that the forms for new and for existing clients share.
func clientFields(c idp.Client) form {
	return form{Inputs: clientInputs(c), More: clientSettings(c), About: "Profile, scopes, grants and tokens"}
}

// clientInputs returns the inputs for the settings that every client needs.
func clientInputs(c idp.Client) []input {
	return []input{
		{Kind: "text", Type: "text", Name: "name", Label: "Name",
			Hint: "People see it when they sign in.", Length: 100, Value: c.Name},
		{Kind: "area", Name: "redirect_uri", Label: "Redirect URIs", Rows: 3,
			Value: strings.Join(c.RedirectURIs, "\n"),
			Hint:  "One per line, compared character by character: https, or http on localhost. Services need none."},
		{Kind: "area", Name: "post_logout_redirect_uri", Label: "Redirect URIs after signing out", Rows: 2,
			Value: strings.Join(c.LogoutURIs, "\n")},
		{Kind: "check", Name: "first_party",
			Label: "First-party app: people are not asked for consent", Checked: c.FirstParty},
	}
}

// clientSettings returns the inputs for the settings that few clients need.
func clientSettings(c idp.Client) []input {
	pkce := "required"
	if c.PKCEOptional {
		pkce = "optional"
	}

	var algs, scopes []choice
	for _, a := range keys.Algorithms() {
		algs = append(algs, choice{Value: string(a), Title: string(a)})
	}

	for _, s := range idp.Scopes() {
		scopes = append(scopes, choice{Value: s, Title: s, Name: true})
	}
	scopeHint, grantHint := "The scopes that it may request.", "How it gets tokens."
	if c.ID == "" {
		scopeHint = words.Sentences(scopeHint, "Select none for the default of its type.")
		grantHint = words.Sentences(grantHint, "Select none for the default of its type.")
	}

	inputs := []input{
		{Kind: "cards", Name: "profile", Label: "Profile", Options: selectChoices(profileTitles, string(c.Profile))},
		{Kind: "choices", Name: "scope", Label: "Scopes", Hint: scopeHint, Options: selectChoices(scopes, c.Scopes...)},
		{Kind: "choices", Name: "grant", Label: "Grants", Hint: grantHint,
			Options: selectChoices(grantTitles, c.Grants...)},
		{Kind: "select", Name: "auth_method", Label: "Client authentication",
			Options: selectChoices(authTitles, string(c.AuthMethod))},
		{Kind: "text", Type: "url", Name: "jwks_uri", Label: "JWKS URL",
			Hint: "For signed assertions and requests: where the client publishes its public keys. They are read " +
				"again when they change.", Value: c.JWKSURI, Length: 2000},
		{Kind: "json", Name: "jwks", Label: "JWKS",
			Hint: `Instead of a URL: the public keys themselves, {"keys":[…]}.`, Rows: 4, Value: string(c.JWKS),
			Length: maxKeySet},
		{Kind: "select", Name: "access_token", Label: "Access tokens",
			Options: selectChoices(formatTitles, string(c.AccessToken))},
		{Kind: "check", Name: "dpop_bound_access_tokens",
			Label: "Tokens are bound to a key of the app (DPoP)", Checked: c.DPoPBound},
		{Kind: "select", Name: "id_token_alg", Label: "Signature of ID tokens",
			Options: selectChoices(algs, string(c.IDTokenAlg))},
		{Kind: "select", Name: "requests", Label: "Authorization requests",
			Options: selectChoices(requestTitles, requestsOf(c))},
		{Kind: "area", Name: "request_uri", Label: "Request URIs", Rows: 2,
			Hint:  "One per line: where the client’s signed requests may be read.",
			Value: strings.Join(c.RequestURIs, "\n")},
		{Kind: "select", Name: "pkce", Label: "PKCE", Options: selectChoices(pkceTitles, pkce)},
		{Kind: "select", Name: "acr", Label: "People sign in with", Options: selectChoices(acrTitles, c.RequireACR)},
		{Kind: "text", Type: "url", Name: "backchannel_logout_uri", Label: "Back-channel logout URI",
			Hint: "Receives a logout token when a login ends.", Value: c.BackchannelLogoutURI, Length: 2000},
		{Kind: "text", Type: "url", Name: "frontchannel_logout_uri", Label: "Front-channel logout URI",
			Hint: "Loaded in a frame by the page after a logout.", Value: c.FrontchannelLogoutURI, Length: 2000},
	}
	return append(inputs, certificateInputs(c)...)
}

// certificateInputs returns the inputs for a client that uses a certificate.
func certificateInputs(c idp.Client) []input {
	s := c.CertificateSubject
	text := func(name, label, hint, value string) input {
		return input{Kind: "text", Type: "text", Name: name, Label: label, Hint: hint, Value: value, Length: 2000}
	}
	return []input{
		{Kind: "check", Name: "tls_client_certificate_bound_access_tokens",
			Label: "Tokens are bound to the certificate of the app (mutual TLS)", Checked: c.CertificateBound},
		text("tls_client_auth_subject_dn", "Subject of its certificate",
			"For tls_client_auth: the distinguished name, such as CN=app,O=Acme, or one of the following.", s.DN),
		text("tls_client_auth_san_dns", "DNS name in its certificate", "", s.DNS),
		text("tls_client_auth_san_uri", "URI in its certificate", "", s.URI),
		text("tls_client_auth_san_ip", "IP address in its certificate", "", s.IP),
		text("tls_client_auth_san_email", "Email in its certificate", "", s.Email),
	}
}

// These are the ways in which a client may have to send its authorization requests.
const (
	requestsPushed = "pushed"
	requestsSigned = "signed"
	requestsBoth   = "both"
)

func requestsOf(c idp.Client) string {
	switch {
	case c.RequirePushed && c.RequireObject:
		return requestsBoth
	case c.RequirePushed:
		return requestsPushed
	case c.RequireObject:
		return requestsSigned
	}
	return ""
}

// maxKeySet is the maximum length of a client's set of public keys in bytes.
const maxKeySet = 16 << 10

// keySet returns JSON without white space. It turns any other text into a JSON string, which
// validation rejects because it is not a set of keys.
func keySet(typed string) json.RawMessage {
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(typed)) == nil {
		return compact.Bytes()
	}
	raw, _ := json.Marshal(typed) // cannot fail: every string can be encoded
	return raw
}

// clientOf returns c with the settings of a form. If the form names no authentication method or
// token format, an existing client keeps its own.
func clientOf(posted url.Values, c idp.Client) idp.Client {
	text := func(name string) string { return strings.TrimSpace(posted.Get(name)) }
	if c.ID == "" {
		c.Type = idp.ClientType(text("type"))
	}
	c.Name = text("name")
	c.FirstParty = text("first_party") != ""
	c.RedirectURIs = splitLines(posted.Get("redirect_uri"))
	c.LogoutURIs = splitLines(posted.Get("post_logout_redirect_uri"))

	c.Scopes = posted["scope"]
	c.Grants = posted["grant"]
	c.Profile = idp.Profile(text("profile"))
	c.IDTokenAlg = keys.Use(text("id_token_alg"))
	c.PKCEOptional = text("pkce") == "optional"
	if m := idp.AuthMethod(text("auth_method")); m != "" || c.ID == "" {
		c.AuthMethod = m
	}

	if f := idp.TokenFormat(text("access_token")); f != "" || c.ID == "" {
		c.AccessToken = f
	}
	c.JWKS = nil
	if set := text("jwks"); set != "" {
		c.JWKS = keySet(set)
	}

	c.JWKSURI = text("jwks_uri")
	c.DPoPBound = text("dpop_bound_access_tokens") != ""
	c.CertificateBound = text("tls_client_certificate_bound_access_tokens") != ""
	c.CertificateSubject = idp.CertificateSubject{DN: text("tls_client_auth_subject_dn"),
		DNS: text("tls_client_auth_san_dns"), URI: text("tls_client_auth_san_uri"),
		IP: text("tls_client_auth_san_ip"), Email: text("tls_client_auth_san_email")}
	c.RequirePushed = slices.Contains([]string{requestsPushed, requestsBoth}, text("requests"))
	c.RequireObject = slices.Contains([]string{requestsSigned, requestsBoth}, text("requests"))
	c.RequestURIs = splitLines(posted.Get("request_uri"))
	c.RequireACR = text("acr")
	c.BackchannelLogoutURI = text("backchannel_logout_uri")
	c.FrontchannelLogoutURI = text("frontchannel_logout_uri")
	return c
}

// clientFault shows the form again, with the errors next to their inputs.
func (a *clientPages) clientFault(v *visit, p clientForm, err error) error {
	p.Form.retype(v.form)
	if !p.Form.blame(err) {
		return err
	}
	return a.page(v, http.StatusUnprocessableEntity, p.Title, "client_form", p)
}

// newClient serves GET /dashboard/projects/{project}/clients/new.
func (a *clientPages) newClient(v *visit) error {
	p := v.clientForm(idp.Client{Type: idp.SPA, Profile: idp.Default, IDTokenAlg: keys.RS256})
	return a.page(v, http.StatusOK, p.Title, "client_form", p)
}

// createClient serves POST /dashboard/projects/{project}/clients. The secret is shown
// only once.
func (a *clientPages) createClient(v *visit) error {
	c := clientOf(v.form, idp.Client{ProjectID: v.project.ID})
	made, secret, err := a.Clients.Clients.Create(v.r.Context(), c)
	if err != nil {
		return a.clientFault(v, v.clientForm(idp.Client{}), explainURIs(v, c, err))
	}

	v.notice = words.Textf("%s is registered.", v.quote(v.clientRow(made).Title))
	next := "Give the app its client id and the issuer."
	if secret != "" {
		next = "Copy the secret now. The app needs it, its client id and the issuer."
	}
	v.notice = words.Sentences(v.notice, next)
	return a.showClientPage(v, made, secret, nil)
}

// editClient serves GET /dashboard/projects/{project}/clients/{id}/edit.
func (a *clientPages) editClient(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	p := v.clientForm(c)
	return a.page(v, http.StatusOK, p.Title, "client_form", p)
}

// changeClient serves POST /dashboard/projects/{project}/clients/{id}/edit. It writes only the
// fields that the operator changed, so that it does not overwrite changes by others.
func (a *clientPages) changeClient(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	p := v.clientForm(c)
	if err = v.merge(p.Form.Inputs, p.Form.More); err == nil {
		err = a.Clients.Clients.Update(v.r.Context(), c, clientOf(v.form, c), nil)
	}
	if err != nil {
		return a.clientFault(v, p, explainURIs(v, clientOf(v.form, c), err))
	}
	return v.redirect(v.clientRow(c).URL + "?done=changed")
}

// tryURL returns a link that starts a login at a client, or "" if the client does not use
// authorization codes. The link shows the login page, but the app cannot redeem the code that it
// then receives, because it does not know the verifier of the code challenge.
func (a *clientPages) tryURL(c idp.Client) string {
	if !c.May(idp.GrantCode) || len(c.RedirectURIs) == 0 {
		return ""
	}
	q := url.Values{
		"client_id": {c.ID}, "response_type": {"code"}, "redirect_uri": {c.RedirectURIs[0]},
		"scope": {strings.Join(c.Scopes, " ")}, "state": {"try"},
		"code_challenge":        {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"},
		"code_challenge_method": {"S256"}, // the challenge is the example in RFC 7636, appendix B
	}
	return a.AuthURL + "/login/oauth/authorize?" + q.Encode()
}
