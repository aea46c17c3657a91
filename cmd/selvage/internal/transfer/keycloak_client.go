package transfer

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage/selvage/idp"
)

// keycloakBuiltIn lists the clients that Keycloak itself adds to realms.
var keycloakBuiltIn = []string{
	"account",
	"account-console",
	"admin-cli",
	"broker",
	"realm-management",
	"security-admin-console",
	"master-realm",
}

// keycloakClient returns a client. It returns nil for a built-in client, and for a client that is
// not imported.
func keycloakClient(o object, u unmapped) *Client {
	id := o.text("clientId")
	if slices.Contains(keycloakBuiltIn, id) {
		return nil
	}
	if protocol := o.text("protocol"); protocol != "" && protocol != "openid-connect" {
		u.add("clients", id, "only OpenID Connect clients are imported")
		return nil
	}
	enabled := true
	if o.take("enabled", &enabled); !enabled || o.flag("bearerOnly") {
		u.add("clients", id, "disabled and bearer-only clients are not imported")
		return nil
	}

	c := &Client{Kind: kindClient, ID: id, Name: o.text("name"), Type: idp.Web, AccessToken: idp.JWTToken}
	if strings.HasPrefix(c.Name, "${") { // the name is a message key
		c.Name = ""
	}
	keycloakGrants(o, c, u)
	keycloakURIs(o, c, u)
	secret := o.text("secret")
	method := o.text("clientAuthenticatorType")
	switch {
	case c.AuthMethod == idp.AuthNone:
	case method == "client-jwt":
		c.AuthMethod = idp.AuthPrivateKeyJWT
	case secret != "" && strings.Trim(secret, "*") != "": // the console masks secrets
		c.SecretHash = idp.ImportedSecret(secret)
	}

	consent := o.flag("consentRequired")
	c.FirstParty = !consent
	o.ignore("id", "rootUrl", "adminUrl", "baseUrl", "webOrigins", "surrogateAuthRequired", "notBefore",
		"alwaysDisplayInConsole", "nodeReRegistrationTimeout", "fullScopeAllowed", "defaultClientScopes",
		"optionalClientScopes", "access", "description", "registrationAccessToken")
	o.rest(u, "clients", id)
	return c
}

// keycloakGrants reads the flows that a client may use.
func keycloakGrants(o object, c *Client, u unmapped) {
	code := true
	o.take("standardFlowEnabled", &code)
	service := o.flag("serviceAccountsEnabled")
	if o.flag("publicClient") {
		c.Type, c.AuthMethod = idp.SPA, idp.AuthNone
	}
	if code {
		c.Grants = append(c.Grants, idp.GrantCode, idp.GrantRefresh)
	}
	if service {
		c.Grants = append(c.Grants, idp.GrantClientCredentials)
		if !code {
			c.Type = idp.Service
		}
	}
	if o.flag("implicitFlowEnabled") {
		u.add("clients.implicitFlowEnabled", c.ID, "apps should use the authorization code")
	}
	if o.flag("directAccessGrantsEnabled") {
		u.add("clients.directAccessGrantsEnabled", c.ID, "apps never see passwords here")
	}
}

// keycloakURIs reads the redirect URIs and the attributes of a client.
func keycloakURIs(o object, c *Client, u unmapped) {
	root := o.text("rootUrl")
	var redirectURIs []string
	o.take("redirectUris", &redirectURIs)
	for _, uri := range redirectURIs {
		if strings.HasPrefix(uri, "/") && root != "" {
			uri = strings.TrimSuffix(root, "/") + uri
		}
		if strings.Contains(uri, "*") {
			u.add("clients.redirectUris", c.ID, "wildcards are not allowed; name each URI: "+uri)
			continue
		}
		c.RedirectURIs = append(c.RedirectURIs, uri)
		if scheme, _, _ := strings.Cut(uri, ":"); strings.Contains(scheme, ".") {
			c.Type = idp.Native
		}
	}

	var attributes object
	o.take("attributes", &attributes)
	if attributes.text("oauth2.device.authorization.grant.enabled") == "true" {
		c.Grants = append(c.Grants, idp.GrantDevice)
	}

	for uri := range strings.SplitSeq(attributes.text("post.logout.redirect.uris"), "##") {
		switch {
		case uri == "", uri == "-":
		case uri == "+":
			c.LogoutURIs = append(c.LogoutURIs, c.RedirectURIs...)
		case strings.Contains(uri, "*"):
			u.add("clients.attributes.post.logout.redirect.uris", c.ID, "wildcards are not allowed: "+uri)
		default:
			c.LogoutURIs = append(c.LogoutURIs, uri)
		}
	}

	c.BackchannelLogoutURI = attributes.text("backchannel.logout.url")
	c.BackchannelLogoutSession = attributes.text("backchannel.logout.session.required") == "true" &&
		c.BackchannelLogoutURI != ""
	frontchannelURI := attributes.text("frontchannel.logout.url")
	if o.flag("frontchannelLogout") {
		c.FrontchannelLogoutURI = frontchannelURI
	}

	c.JWKSURI = attributes.text("jwks.url")
	if alg := attributes.text("id.token.signed.response.alg"); alg != "" && alg != "any" {
		c.IDTokenAlg = alg
	}
	if c.AuthMethod != idp.AuthNone && attributes.text("pkce.code.challenge.method") == "" {
		c.PKCEOptional = true
	}
	reportAttributes(attributes, c.ID, u)
}

// restricting lists the prefixes of the attributes that affect the permissions of a client.
var restricting = []string{
	"access.token.lifespan",
	"saml",
	"tls.client",
	"x509.",
	"dpop.bound",
	"request.object",
	"client.session",
	"client.offline",
	"acr.loa",
	"default.acr",
}

// reportAttributes reports the attributes that affect the permissions of a client.
func reportAttributes(attributes object, id string, u unmapped) {
	for name, raw := range attributes {
		var value string
		if json.Unmarshal(raw, &value) != nil || value == "" || value == "false" {
			continue
		}
		for _, prefix := range restricting {
			if strings.HasPrefix(name, prefix) {
				u.add("clients.attributes."+name, id, "")
			}
		}
	}
}
