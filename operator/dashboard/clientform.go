package dashboard

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/keys"
)

// What the settings of a client mean, in words.
var (
	profileTitles = []choice{
		{Value: string(idp.Default), Title: "Default",
			Why: "OAuth 2.1: PKCE by S256, a redirect URI and a scope in each request. Choose it unless something old needs the other."},
		{Value: string(idp.MobileLegacy), Title: "Mobile, legacy",
			Why: "Understands what native fabric apps in the field send: no scope, no response type, a JSON body at the token endpoint. PKCE by S256 all the same."},
	}
	authTitles = []choice{
		{Title: "Usual for its type"},
		{Value: string(idp.AuthNone), Title: "Nothing: it keeps no secret"},
		{Value: string(idp.AuthBasic), Title: "Secret, by Basic (client_secret_basic)"},
		{Value: string(idp.AuthPost), Title: "Secret, in the form (client_secret_post)"},
		{Value: string(idp.AuthPrivateKeyJWT), Title: "Signed assertion (private_key_jwt)"},
	}
	tokenTitlesOfClients = []choice{
		{Title: "Usual for its type"}, {Value: string(idp.FabricToken),
			Title: "Fabric tokens: for browser SDKs and the fabric API"},
		{Value: string(idp.JWTToken), Title: "JWTs of RFC 9068: other services check them by the JWKS"},
	}
	pkceTitles = []choice{{Value: "required", Title: "Required"},
		{Value: "optional", Title: "Optional: only for a client that proves itself"}}
	acrTitles = []choice{{Title: "What its owner has set up"}, {Value: "2", Title: "Two factors, always"}}
	grants    = []choice{
		{Value: idp.GrantCode, Title: "Sign people in (authorization_code)"},
		{Value: idp.GrantRefresh, Title: "Stay signed in (refresh_token)"},
		{Value: idp.GrantDevice, Title: "Sign in on devices without a browser (device_code)"},
		{Value: idp.GrantClientCredentials, Title: "Act for itself (client_credentials)"},
	}
)

// A clientForm registers a client or changes one.
type clientForm struct {
	Base, Action, Title, Button, Back, BackTo string
	Form                                      form
	More                                      []input // what most need not touch
	Open                                      bool    // something is wrong there
	Faults                                    []fault
}

// chosen returns choices of which one is, or several are, chosen.
func chosen(all []choice, values ...string) []choice {
	all = slices.Clone(all)
	for i := range all {
		all[i].Chosen = slices.Contains(values, all[i].Value)
	}
	return all
}

// clientForm asks for the settings of a client; a new one has no ID.
func (v *visit) clientForm(c idp.Client) clientForm {
	p := clientForm{Base: v.base(), Action: v.base() + "/clients", Title: "New OAuth client",
		Button: "Register client", Back: v.base() + "/clients", BackTo: "OAuth clients"}
	if c.ID != "" {
		row := v.clientRow(c)
		p = clientForm{Base: v.base(), Action: row.URL + "/edit", Title: "Edit " + row.Title,
			Button: "Save changes", Back: row.URL, BackTo: row.Title}
	} else {
		p.Form.Inputs = []input{{Kind: "cards", Name: "type", Label: "What it is",
			Options: chosen(typeTitles, string(c.Type))}}
	}
	pkce := pkceTitles[0].Value
	if c.PKCEOptional {
		pkce = pkceTitles[1].Value
	}
	var algs []choice
	for _, a := range keys.Algorithms() {
		algs = append(algs, choice{Value: string(a), Title: string(a)})
	}
	var scopes []choice
	for _, s := range idp.Scopes() {
		scopes = append(scopes, choice{Value: s, Title: s})
	}
	p.Form.Inputs = append(p.Form.Inputs,
		input{Kind: "text", Type: "text", Name: "name", Label: "Name",
			Hint: "People see it when they sign in.", Length: 100, Value: c.Name},
		input{Kind: "area", Name: "redirect_uri", Label: "Redirect URIs", Rows: 3,
			Value: strings.Join(c.RedirectURIs, "\n"),
			Hint:  "One a line, compared character for character: https, or http on localhost. A service needs none."},
		input{Kind: "area", Name: "post_logout_redirect_uri", Label: "Where signing out may lead", Rows: 2,
			Value: strings.Join(c.LogoutURIs, "\n")},
		input{Kind: "check", Name: "first_party",
			Label: "It is an app of our own: people are not asked for consent", Checked: c.FirstParty})
	scopeHint, grantHint := "What it may ask for.", "How it gets tokens."
	if c.ID == "" {
		scopeHint, grantHint = scopeHint+" None is what is usual for its type.", grantHint+" None is what is usual for its type."
	}
	p.More = []input{
		{Kind: "cards", Name: "profile", Label: "How its requests are read",
			Options: chosen(profileTitles, string(c.Profile))},
		{Kind: "choices", Name: "scope", Label: "Scopes", Hint: scopeHint, Options: chosen(scopes, c.Scopes...)},
		{Kind: "choices", Name: "grant", Label: "Grants", Hint: grantHint, Options: chosen(grants, c.Grants...)},
		{Kind: "select", Name: "auth_method", Label: "Proves itself by",
			Options: chosen(authTitles, string(c.AuthMethod))},
		{Kind: "text", Type: "url", Name: "jwks_uri", Label: "Its public keys",
			Hint:  "Where its JWKS is, for signed assertions; they are read again when they change. Or",
			Value: c.JWKSURI, Length: 2000},
		{Kind: "json", Name: "jwks", Label: "its public keys themselves",
			Hint: `A JWKS of public keys alone: {"keys":[…]}.`, Rows: 4, Value: string(c.JWKS), Length: maxKeySet},
		{Kind: "select", Name: "access_token", Label: "Access tokens",
			Options: chosen(tokenTitlesOfClients, string(c.AccessToken))},
		{Kind: "select", Name: "id_token_alg", Label: "ID tokens are signed with",
			Options: chosen(algs, string(c.IDTokenAlg))},
		{Kind: "select", Name: "pkce", Label: "PKCE", Options: chosen(pkceTitles, pkce)},
		{Kind: "select", Name: "acr", Label: "People sign in with", Options: chosen(acrTitles, c.RequireACR)},
		{Kind: "text", Type: "url", Name: "backchannel_logout_uri", Label: "Told of logouts at",
			Hint: "A URI that gets a logout token when a login ends.", Value: c.BackchannelLogoutURI, Length: 2000},
	}
	if c.ID != "" {
		p.Form.Seen = marks(p.Form.Inputs, p.More)
	}
	return p
}

// maxKeySet bounds the keys of a client.
const maxKeySet = 16 << 10

// keySet returns what was typed as JSON, written tightly; what is none is a text, which is no
// set of keys and is told so.
func keySet(typed string) json.RawMessage {
	var tight bytes.Buffer
	if json.Compact(&tight, []byte(typed)) == nil {
		return tight.Bytes()
	}
	raw, _ := json.Marshal(typed) // a text is always written
	return raw
}

// clientOf writes a form into a client.
func clientOf(posted url.Values, c idp.Client) idp.Client {
	text := func(name string) string { return strings.TrimSpace(posted.Get(name)) }
	if c.ID == "" {
		c.Type = idp.ClientType(text("type"))
	}
	c.Name, c.FirstParty, c.PKCEOptional = text("name"), text("first_party") != "", text("pkce") == "optional"
	c.RedirectURIs, c.LogoutURIs = lines(posted.Get("redirect_uri")), lines(posted.Get("post_logout_redirect_uri"))
	c.Scopes, c.Grants = posted["scope"], posted["grant"]
	c.Profile, c.IDTokenAlg = idp.Profile(text("profile")), keys.Use(text("id_token_alg"))
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
	c.JWKSURI, c.RequireACR, c.BackchannelLogoutURI = text("jwks_uri"), text("acr"), text("backchannel_logout_uri")
	return c
}

// clientFault shows the form again with what is wrong at its fields.
func (a *clientPages) clientFault(v *visit, p clientForm, err error) error {
	retype(p.Form.Inputs, v.form)
	retype(p.More, v.form)
	whole := form{Inputs: append(slices.Clone(p.Form.Inputs), p.More...)}
	if !whole.blame(err) {
		return err
	}
	p.Form.Inputs, p.More = whole.Inputs[:len(p.Form.Inputs)], whole.Inputs[len(p.Form.Inputs):]
	p.Faults, p.Open = whole.Faults, slices.ContainsFunc(p.More, func(i input) bool { return i.Fault != "" })
	return a.page(v, http.StatusUnprocessableEntity, p.Title, "client_form", p)
}

// newClient serves GET /dashboard/projects/{project}/clients/new.
func (a *clientPages) newClient(v *visit) error {
	p := v.clientForm(idp.Client{Type: idp.SPA, Profile: idp.Default, IDTokenAlg: keys.RS256})
	return a.page(v, http.StatusOK, p.Title, "client_form", p)
}

// createClient serves POST /dashboard/projects/{project}/clients. The secret is shown
// this once.
func (a *clientPages) createClient(v *visit) error {
	c, secret, err := a.Clients.Clients.Create(v.r.Context(), clientOf(v.form, idp.Client{ProjectID: v.project.ID}))
	if err != nil {
		return a.clientFault(v, v.clientForm(idp.Client{}), err)
	}
	v.told = named(v.clientRow(c).Title) + " is registered. Give the app its client id and the issuer."
	if secret != "" {
		v.told = named(v.clientRow(c).Title) + " is registered. Copy the secret now: the app needs it beside its client id and the issuer."
	}
	return a.clientPage(v, c, secret, nil)
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

// changeClient serves POST /dashboard/projects/{project}/clients/{id}/edit: what its form
// changed is written, and nothing over what another changed meanwhile.
func (a *clientPages) changeClient(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	p := v.clientForm(c)
	if err = v.merge(p.Form.Inputs, p.More); err == nil {
		err = a.Clients.Clients.Update(v.r.Context(), c, clientOf(v.form, c))
	}
	if err != nil {
		return a.clientFault(v, p, err)
	}
	return v.redirect(v.clientRow(c).URL + "?done=changed")
}

// tryURL returns a link that asks for a login of a client, with a verifier that nobody
// has: the page of the login is shown, and the app gets an answer that it did not ask for.
func (a *clientPages) tryURL(c idp.Client) string {
	if !c.May(idp.GrantCode) || len(c.RedirectURIs) == 0 {
		return ""
	}
	q := url.Values{
		"client_id": {c.ID}, "response_type": {"code"}, "redirect_uri": {c.RedirectURIs[0]},
		"scope": {strings.Join(c.Scopes, " ")}, "state": {"try"},
		"code_challenge":        {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"},
		"code_challenge_method": {"S256"}, // of RFC 7636, appendix B
	}
	return a.AuthURL + "/login/oauth/authorize?" + q.Encode()
}
