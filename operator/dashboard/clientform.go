package dashboard

import (
	"net/http"
	"net/url"
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
		typ := input{Kind: kindCards, Name: "type", Label: "Type", Options: types}
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
	name := input{
		Kind:   kindText,
		Type:   "text",
		Name:   "name",
		Label:  "Name",
		Hint:   "People see it when they sign in.",
		Length: 100,
		Value:  c.Name,
	}
	return []input{
		name,
		linesInput("redirect_uri", "Redirect URIs",
			"One per line, compared character by character: https, or http on localhost. Services need none.",
			3, c.RedirectURIs),
		linesInput("post_logout_redirect_uri", "Redirect URIs after signing out", "", 2, c.LogoutURIs),
		checkInput("first_party", "First-party app: people are not asked for consent", c.FirstParty),
	}
}

// clientSettings returns the inputs for the settings that few clients need.
func clientSettings(c idp.Client) []input {
	pkce := "required"
	if c.PKCEOptional {
		pkce = "optional"
	}

	var algs, scopes []choice
	for _, alg := range keys.Algorithms() {
		algs = append(algs, choice{Value: string(alg), Title: string(alg)})
	}
	for _, s := range idp.Scopes() {
		scopes = append(scopes, choice{Value: s, Title: s, Name: true})
	}
	scopeHint, grantHint := "The scopes that it may request.", "How it gets tokens."
	if c.ID == "" {
		scopeHint = words.Sentences(scopeHint, "Select none for the default of its type.")
		grantHint = words.Sentences(grantHint, "Select none for the default of its type.")
	}

	keysURL := input{
		Kind:  kindText,
		Type:  "url",
		Name:  "jwks_uri",
		Label: "JWKS URL",
		Hint: "For signed assertions and requests: where the client publishes its public keys. They are read " +
			"again when they change.",
		Value:  c.JWKSURI,
		Length: 2000,
	}
	pastedKeys := input{
		Kind:   kindJSON,
		Name:   "jwks",
		Label:  "JWKS",
		Hint:   `Instead of a URL: the public keys themselves, {"keys":[…]}.`,
		Rows:   4,
		Value:  string(c.JWKS),
		Length: maxKeySet,
	}

	inputs := []input{
		{Kind: kindCards, Name: "profile", Label: "Profile", Options: selectChoices(profileTitles, string(c.Profile))},
		{Kind: kindChoices, Name: "scope", Label: "Scopes", Hint: scopeHint,
			Options: selectChoices(scopes, c.Scopes...)},
		{Kind: kindChoices, Name: "grant", Label: "Grants", Hint: grantHint,
			Options: selectChoices(grantTitles, c.Grants...)},
		selectInput("auth_method", "Client authentication", selectChoices(authTitles, string(c.AuthMethod))),
		keysURL,
		pastedKeys,
		selectInput("access_token", "Access tokens", selectChoices(formatTitles, string(c.AccessToken))),
		checkInput("dpop_bound_access_tokens", "Tokens are bound to a key of the app (DPoP)", c.DPoPBound),
		selectInput("id_token_alg", "Signature of ID tokens", selectChoices(algs, string(c.IDTokenAlg))),
		selectInput("requests", "Authorization requests", selectChoices(requestTitles, requestsOf(c))),
		linesInput("request_uri", "Request URIs", "One per line: where the client’s signed requests may be read.",
			2, c.RequestURIs),
		{Kind: kindSelect, Name: "pkce", Label: "PKCE", Options: selectChoices(pkceTitles, pkce)},
		selectInput("acr", "People sign in with", selectChoices(acrTitles, c.RequireACR)),
		urlInput("backchannel_logout_uri", "Back-channel logout URI",
			"Receives a logout token when a login ends.", c.BackchannelLogoutURI),
		urlInput("frontchannel_logout_uri", "Front-channel logout URI",
			"Loaded in a frame by the page after a logout.", c.FrontchannelLogoutURI),
	}
	return append(inputs, certificateInputs(c)...)
}

// certificateInputs returns the inputs for a client that uses a certificate.
func certificateInputs(c idp.Client) []input {
	s := c.CertificateSubject
	text := func(name, label, hint, value string) input {
		return input{Kind: kindText, Type: "text", Name: name, Label: label, Hint: hint, Value: value, Length: 2000}
	}
	return []input{
		checkInput("tls_client_certificate_bound_access_tokens",
			"Tokens are bound to the certificate of the app (mutual TLS)", c.CertificateBound),
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

// requestsOf returns how a client must send its authorization requests, or "" if it may choose.
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
