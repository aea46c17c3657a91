package idp

import (
	"errors"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
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

// atMost reports a list that is too long. It returns the first values of the list, so that only
// these are checked.
func atMost(bad func(param, format string, args ...any), param string, list []string) []string {
	if len(list) <= maxListed {
		return list
	}
	bad(param, "a client may have at most %d", maxListed)
	return list[:maxListed]
}

// Registered returns the metadata with which the client could register again.
func (c Client) Registered() ClientMetadata {
	m := ClientMetadata{
		RedirectURIs: c.RedirectURIs, LogoutURIs: c.LogoutURIs, Name: c.Name, ApplicationType: applicationWeb,
		AuthMethod: c.AuthMethod, GrantTypes: slices.Clone(c.Grants), Scope: strings.Join(c.Scopes, " "),
		IDTokenAlg: c.IDTokenAlg, Profile: c.Profile, Metadata: c.Metadata,
	}
	if c.Type == Native {
		m.ApplicationType = applicationNative
	}
	if c.isImplicit() {
		m.GrantTypes = append(m.GrantTypes, GrantImplicit)
	}
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

// describe replaces the settings of c with the settings that m states. It leaves the settings of
// the operator unchanged. The error lists the settings that a self-registered client may not have.
func (m ClientMetadata) describe(c *Client) error {
	var errs []error
	bad := func(param, format string, args ...any) { errs = append(errs, problem.BadParam(param, format, args...)) }

	c.Type, c.AuthMethod = Web, m.AuthMethod
	if c.AuthMethod == "" {
		c.AuthMethod = AuthBasic
	}
	oneOf(bad, "application_type", m.ApplicationType, "", applicationWeb, applicationNative)
	switch {
	case m.ApplicationType == applicationNative:
		c.Type = Native
	case c.AuthMethod == AuthNone:
		c.Type = SPA
	}
	c.PKCEOptional = c.PKCEOptional && c.AuthMethod != AuthNone

	m.RedirectURIs = atMost(bad, "redirect_uri", m.RedirectURIs)
	m.LogoutURIs = atMost(bad, "post_logout_redirect_uri", m.LogoutURIs)
	m.GrantTypes = atMost(bad, "grant", m.GrantTypes)
	m.ResponseTypes = atMost(bad, "response_type", m.ResponseTypes)

	if err := fabric.CheckPersonName("name", m.Name); err != nil { // strangers read the name on the consent page
		errs = append(errs, err)
	}
	m.keepForOperator(c.Metadata)
	m.tighten(c, bad)
	if m.SubjectType == "" && m.SectorURI != "" {
		m.SubjectType = Pairwise
	}
	c.Grants = m.grants(c.Grants, bad)
	c.Name, c.Metadata = m.Name, m.Metadata
	c.RedirectURIs, c.LogoutURIs = m.RedirectURIs, m.LogoutURIs
	c.Scopes = m.scopes(c.Scopes, bad)
	c.IDTokenAlg = m.IDTokenAlg
	if c.IDTokenAlg == "" {
		c.IDTokenAlg = c.Profile.idTokenAlg()
	}
	return errors.Join(errs...)
}

// tighten sets the profile that m requests. A client may choose the profile FAPI2 for itself. Only
// the operator can choose another profile, which may have fewer rules than the client's current
// one.
func (m ClientMetadata) tighten(c *Client, bad func(param, format string, args ...any)) {
	switch m.Profile {
	case "", c.Profile:
	case FAPI2:
		c.Profile = FAPI2
	default:
		bad("profile", "a client may choose only %s", FAPI2)
	}
	c.PKCEOptional = c.PKCEOptional && c.Profile != FAPI2
}

// grants returns the grants that m requests. Without grant_types, these are the grants that its
// response types need. had lists the grants that the client already has, which may include grants
// from an operator.
func (m ClientMetadata) grants(had []string, bad func(param, format string, args ...any)) []string {
	implicit := slices.ContainsFunc(m.ResponseTypes, func(t string) bool {
		return canonicalResponseType(t) != ResponseCode
	})
	if len(m.GrantTypes) == 0 {
		if len(m.ResponseTypes) > 0 && !slices.ContainsFunc(m.ResponseTypes, containsCode) {
			return []string{GrantImplicit}
		}
		return []string{GrantCode}
	}

	grants := slices.Clone(m.GrantTypes)
	slices.Sort(grants)
	grants = slices.Compact(grants)
	if implicit && !slices.Contains(grants, GrantImplicit) {
		bad("grant", "a response type with id_token or token needs the grant type implicit")
	}
	if slices.Contains(grants, GrantClientCredentials) && !slices.Contains(had, GrantClientCredentials) {
		bad("grant", "client_credentials is only for clients that the operator registers")
	}
	return grants
}

func containsCode(responseType string) bool {
	return AuthRequest{ResponseType: canonicalResponseType(responseType)}.Returns(ResponseCode)
}

// scopes returns the scopes that m requests, except scopes that the client may not have yet.
// Requesting such scopes is not an error (RFC 7591, section 3.2.1).
func (m ClientMetadata) scopes(had []string, bad func(param, format string, args ...any)) []string {
	asked := strings.Fields(m.Scope)
	if len(asked) == 0 {
		return had
	}

	known, _ := canonicalScopes(asked)
	allowed := slices.DeleteFunc(known, func(s string) bool { return !slices.Contains(had, s) })
	if len(allowed) == 0 {
		bad("scope", "a client may register for %s", strings.Join(had, ", "))
	}
	return allowed
}

// These are the limits of the metadata with which a client registers itself.
const (
	maxTexts = 10
	maxText  = 255 // maximum number of bytes in a text that is not a URI
)

// checkDescription reports invalid settings that describe the client, or are defaults for its
// requests.
func (c *Client) checkDescription(bad func(param, format string, args ...any)) {
	if uri := c.InitiateLoginURI; uri != "" && !strings.HasPrefix(uri, "https://") {
		bad("initiate_login_uri", "%q must be https (OpenID Connect Core, section 4)", uri)
	} else if uri != "" {
		c.checkURI(bad, "initiate_login_uri", uri)
	}
	if fabric.CheckLink("client_uri", c.ClientURI) != nil {
		bad("client_uri", "client_uri must be an http or https URL")
	}
	if fabric.CheckLink("logo_uri", c.LogoURI) != nil {
		bad("logo_uri", "logo_uri must be an http or https URL")
	}

	if age := c.DefaultMaxAge; age != nil && (*age < 0 || *age > maxMaxAge) {
		bad("default_max_age", "default_max_age must be a number of seconds from 0 to %d", maxMaxAge)
	}
	if c.AssertionAlg != "" {
		oneOf(bad, "token_endpoint_auth_signing_alg", c.AssertionAlg, AssertionAlgorithms()...)
	}

	checkTexts(bad, "contacts", c.Contacts...)
	checkTexts(bad, "default_acr_values", c.DefaultACR...)
	checkTexts(bad, "software_id", c.SoftwareID)
	checkTexts(bad, "software_version", c.SoftwareVersion)
}

// checkTexts reports too many or too long texts, and control characters in them.
func checkTexts(bad func(param, format string, args ...any), param string, texts ...string) {
	invalid := func(s string) bool { return len(s) > maxText || strings.ContainsFunc(s, isControl) }
	if len(texts) > maxTexts || slices.ContainsFunc(texts, invalid) {
		bad(param, "%s may have at most %d texts of at most %d bytes, without control characters",
			param, maxTexts, maxText)
	}
}
