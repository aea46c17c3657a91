package idp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/keys"
)

// ClientMetadata holds what a client states about itself when it registers (RFC 7591, section 2;
// OpenID Connect Dynamic Client Registration, section 2). Empty members get the defaults of these
// standards.
type ClientMetadata struct {
	RedirectURIs    []string   `json:"redirect_uris,omitempty"`
	LogoutURIs      []string   `json:"post_logout_redirect_uris,omitempty"`
	Name            string     `json:"client_name,omitempty"`
	ApplicationType string     `json:"application_type,omitempty"` // web or native
	AuthMethod      AuthMethod `json:"token_endpoint_auth_method,omitempty"`
	GrantTypes      []string   `json:"grant_types,omitempty"`
	Scope           string     `json:"scope,omitempty"` // scopes, separated by spaces
	IDTokenAlg      keys.Use   `json:"id_token_signed_response_alg,omitempty"`
	Profile         Profile    `json:"profile,omitempty"` // an extension of selvage
	Metadata
}

// These are the values of application_type.
const (
	applicationWeb    = "web"
	applicationNative = "native"
)

// maxListed is the maximum number of values in a list in the metadata.
const maxListed = 50

// firstListed returns the first maxListed values of a list, so that only these are checked. If the
// list is longer, it adds a problem to found.
func firstListed(found *problems, param string, list []string) []string {
	if len(list) <= maxListed {
		return list
	}
	found.add(param, "a client may have at most %d", maxListed)
	return list[:maxListed]
}

// Registered returns the metadata with which the client could register again.
func (c Client) Registered() ClientMetadata {
	m := ClientMetadata{
		RedirectURIs:    c.RedirectURIs,
		LogoutURIs:      c.LogoutURIs,
		Name:            c.Name,
		ApplicationType: applicationWeb,
		AuthMethod:      c.AuthMethod,
		GrantTypes:      slices.Clone(c.Grants),
		Scope:           strings.Join(c.Scopes, " "),
		IDTokenAlg:      c.IDTokenAlg,
		Profile:         c.Profile,
		Metadata:        c.Metadata,
	}
	if c.Type == Native {
		m.ApplicationType = applicationNative
	}
	if c.isImplicit() {
		m.GrantTypes = append(m.GrantTypes, GrantImplicit)
	}

	// A client without response types has the standard's default.
	if len(m.ResponseTypes) == 0 && c.May(GrantCode) {
		m.ResponseTypes = []string{ResponseCode}
	}
	m.keepForOperator(Metadata{})
	return m
}

// keepForOperator replaces the members that only the operator may set with the members of kept.
func (m *Metadata) keepForOperator(kept Metadata) {
	m.Resources, m.RequireACR, m.BrandColor = kept.Resources, kept.RequireACR, kept.BrandColor
}

// applyTo replaces the settings of c with those that m states, except the settings that only the
// operator may set. The error lists the settings that a self-registered client may not have.
func (m ClientMetadata) applyTo(c *Client) error {
	var found problems

	oneOf(&found, "application_type", m.ApplicationType, "", applicationWeb, applicationNative)
	c.AuthMethod = cmp.Or(m.AuthMethod, AuthBasic)
	c.Type = m.clientType()
	c.PKCEOptional = c.PKCEOptional && c.AuthMethod != AuthNone

	m.RedirectURIs = firstListed(&found, "redirect_uri", m.RedirectURIs)
	m.LogoutURIs = firstListed(&found, "post_logout_redirect_uri", m.LogoutURIs)
	m.GrantTypes = firstListed(&found, "grant", m.GrantTypes)
	m.ResponseTypes = firstListed(&found, "response_type", m.ResponseTypes)

	// People see the name on the consent page, so it must not deceive them.
	if err := fabric.CheckPersonName("name", m.Name); err != nil {
		found = append(found, err)
	}

	m.keepForOperator(c.Metadata)
	m.applyProfile(c, &found)
	if m.SubjectType == "" && m.SectorURI != "" {
		m.SubjectType = Pairwise
	}

	c.Name = m.Name
	c.RedirectURIs = m.RedirectURIs
	c.LogoutURIs = m.LogoutURIs
	m.checkImplicitRedirects(c.Type, &found)
	c.Grants = m.grants(c.Grants, &found)
	c.Scopes = m.scopes(c.Scopes, &found)
	c.Metadata = m.Metadata
	c.IDTokenAlg = cmp.Or(m.IDTokenAlg, c.Profile.idTokenAlg())
	return found.err()
}

// checkImplicitRedirects reports the redirect URIs that a web client may not have if its authorization
// responses contain tokens: they must be https, and not localhost (OpenID Connect Dynamic Client
// Registration, section 2, application_type).
func (m ClientMetadata) checkImplicitRedirects(kind ClientType, found *problems) {
	if kind == Native || !slices.ContainsFunc(m.ResponseTypes, containsTokens) {
		return
	}
	for _, uri := range m.RedirectURIs {
		if !strings.HasPrefix(strings.ToLower(uri), "https:") || strings.EqualFold(hostOf(uri), "localhost") {
			found.add("redirect_uri", "%q must be https, and not localhost, because the responses contain tokens", uri)
		}
	}
}

// clientType returns the type of client that m describes. A client without authentication counts as
// an app in a browser, unless it says that it is native.
func (m ClientMetadata) clientType() ClientType {
	switch {
	case m.ApplicationType == applicationNative:
		return Native
	case m.AuthMethod == AuthNone:
		return SPA
	default:
		return Web
	}
}

// applyProfile sets the profile that m requests. A client may choose the profile FAPI2 for itself. Only
// the operator can choose another profile, which may be less strict than the client's current one.
func (m ClientMetadata) applyProfile(c *Client, found *problems) {
	switch m.Profile {
	case "", c.Profile:
	case FAPI2:
		c.Profile = FAPI2
	default:
		found.add("profile", "a client may choose only %s", FAPI2)
	}
	c.PKCEOptional = c.PKCEOptional && c.Profile != FAPI2
}

// grants returns the grants that m requests. If m has no grant_types, these are the grants that the
// response types of m need. had lists the grants that the client already has, which may include
// grants from an operator.
func (m ClientMetadata) grants(had []string, found *problems) []string {
	if len(m.GrantTypes) == 0 {
		if len(m.ResponseTypes) > 0 && !slices.ContainsFunc(m.ResponseTypes, containsCode) {
			return []string{GrantImplicit}
		}
		return []string{GrantCode}
	}

	grants := slices.Clone(m.GrantTypes)
	slices.Sort(grants)
	grants = slices.Compact(grants)

	implicit := slices.ContainsFunc(m.ResponseTypes, containsTokens)
	if implicit && !slices.Contains(grants, GrantImplicit) {
		found.add("grant", "a response type with id_token or token needs the grant type implicit")
	}
	if slices.Contains(grants, GrantClientCredentials) && !slices.Contains(had, GrantClientCredentials) {
		found.add("grant", "client_credentials is only for clients that the operator registers")
	}
	return grants
}

// containsTokens reports whether responses of the type contain an ID token or an access token.
func containsTokens(responseType string) bool {
	return canonicalResponseType(responseType) != ResponseCode
}

// containsCode reports whether responses of the type contain a code.
func containsCode(responseType string) bool {
	return AuthRequest{ResponseType: canonicalResponseType(responseType)}.Returns(ResponseCode)
}

// scopes returns the scopes in had that m requests, or all of had if m requests none. Requesting
// other scopes as well is not an error (RFC 7591, section 3.2.1).
func (m ClientMetadata) scopes(had []string, found *problems) []string {
	asked := strings.Fields(m.Scope)
	if len(asked) == 0 {
		return had
	}

	known, _ := canonicalScopes(asked)
	var allowed []string
	for _, scope := range known {
		if slices.Contains(had, scope) {
			allowed = append(allowed, scope)
		}
	}
	if len(allowed) == 0 {
		found.add("scope", "a client may register for %s", strings.Join(had, ", "))
	}
	return allowed
}

// These are the limits of the texts that checkTexts checks.
const (
	maxTexts = 10  // maximum number of texts in a list
	maxText  = 255 // maximum number of bytes in a text
)

// checkDescription reports invalid values of settings that describe the client, its requests or its
// assertions.
func (c *Client) checkDescription(found *problems) {
	switch uri := c.InitiateLoginURI; {
	case uri == "":
	case !strings.HasPrefix(uri, "https://"):
		found.add("initiate_login_uri", "%q must be https (OpenID Connect Core, section 4)", uri)
	default:
		c.checkURI(found, "initiate_login_uri", uri)
	}
	if fabric.CheckLink("client_uri", c.ClientURI) != nil {
		found.add("client_uri", "client_uri must be an http or https URL")
	}
	if fabric.CheckLink("logo_uri", c.LogoURI) != nil {
		found.add("logo_uri", "logo_uri must be an http or https URL")
	}

	if age := c.DefaultMaxAge; age != nil && (*age < 0 || *age > maxMaxAge) {
		found.add("default_max_age", "default_max_age must be a number of seconds from 0 to %d", maxMaxAge)
	}
	if c.AssertionAlg != "" {
		oneOf(found, "token_endpoint_auth_signing_alg", c.AssertionAlg, AssertionAlgorithms()...)
	}

	checkTexts(found, "contacts", c.Contacts...)
	checkTexts(found, "default_acr_values", c.DefaultACR...)
	checkTexts(found, "software_id", c.SoftwareID)
	checkTexts(found, "software_version", c.SoftwareVersion)
}

// checkTexts reports a list with too many texts, or with a text that is too long or contains
// control characters.
func checkTexts(found *problems, param string, texts ...string) {
	valid := len(texts) <= maxTexts
	for _, text := range texts {
		if len(text) > maxText || strings.ContainsFunc(text, isControl) {
			valid = false
		}
	}

	if !valid {
		found.add(param, "%s may have at most %d texts of at most %d bytes, without control characters",
			param, maxTexts, maxText)
	}
}
