package idp

import (
	"crypto/rand"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/keys"
)

// A ClientType selects the defaults of a client.
type ClientType string

// These are the client types: an app in a browser, an app on a device, a server-rendered web app,
// and a server that acts for itself.
const (
	SPA     ClientType = "spa"
	Native  ClientType = "native"
	Web     ClientType = "web"
	Service ClientType = "service"
)

// A Profile is a set of rules for a client's requests. Default follows OAuth 2.1, MobileLegacy
// accepts what existing native fabric clients send, and FAPI2 is the FAPI 2.0 Security Profile.
type Profile string

// These are the client profiles.
const (
	Default      Profile = "default"
	MobileLegacy Profile = "mobile-legacy"
	FAPI2        Profile = "fapi2"
)

// An AuthMethod is a way in which clients authenticate at the token endpoint (OpenID Connect Core,
// section 9).
type AuthMethod string

// These are the authentication methods. A client may use only the method for which it is
// registered.
const (
	AuthNone  AuthMethod = "none"
	AuthBasic AuthMethod = "client_secret_basic"
	AuthPost  AuthMethod = "client_secret_post"
	// AuthPrivateKeyJWT means that the client signs an assertion for each request (RFC 7523,
	// section 2.2).
	AuthPrivateKeyJWT AuthMethod = "private_key_jwt"
	// AuthTLS means that the client has a certificate from a trusted authority for a registered
	// subject (RFC 8705, section 2.1). AuthSelfSignedTLS means that the client has a registered
	// certificate (section 2.2).
	AuthTLS           AuthMethod = "tls_client_auth"
	AuthSelfSignedTLS AuthMethod = "self_signed_tls_client_auth"
)

// AuthMethods returns all authentication methods.
func AuthMethods() []AuthMethod {
	return []AuthMethod{AuthNone, AuthBasic, AuthPost, AuthPrivateKeyJWT, AuthTLS, AuthSelfSignedTLS}
}

// bySecret reports whether clients that use the method have a secret.
func (m AuthMethod) bySecret() bool { return m == AuthBasic || m == AuthPost }

// A TokenFormat is the format of a client's access tokens: sealed fabric tokens (SATs), or JWTs
// according to RFC 9068.
type TokenFormat string

// These are the formats of access tokens.
const (
	FabricToken TokenFormat = "fabric"
	JWTToken    TokenFormat = "jwt"
)

// These are the grants for which a client may be registered.
const (
	GrantCode              = "authorization_code"
	GrantRefresh           = "refresh_token"
	GrantClientCredentials = "client_credentials"
	GrantDevice            = "urn:ietf:params:oauth:grant-type:device_code"
	// GrantImplicit is the grant type that RFC 7591, section 2.1 requires for ResponseIDToken. It
	// is not stored with clients, because their response types imply it.
	GrantImplicit = "implicit"
)

// ShortDevice is the short name of GrantDevice in commands and settings. GrantDevice itself is a
// URN.
const ShortDevice = "device_code"

// GrantNames returns the names of the grants in commands and settings.
func GrantNames() []string {
	return []string{GrantCode, GrantRefresh, GrantClientCredentials, ShortDevice, GrantImplicit}
}

// NormalizeGrants replaces ShortDevice with GrantDevice. It drops GrantImplicit if the response
// types imply it.
func (c *Client) NormalizeGrants() {
	c.Grants = slices.Clone(c.Grants)
	for i, g := range c.Grants {
		if g == ShortDevice {
			c.Grants[i] = GrantDevice
		}
	}
	if c.isImplicit() {
		c.Grants = slices.DeleteFunc(c.Grants, func(g string) bool { return g == GrantImplicit })
	}
}

// A Client is an app that asks for tokens.
type Client struct {
	ID, ProjectID string
	Name          string // name shown at sign-in
	Type          ClientType
	Profile       Profile
	AuthMethod    AuthMethod
	SecretHash    string    // SHA-256 in hex; "" if the AuthMethod has no secret
	SecretMade    time.Time // time at which the current secret replaced another one; zero if it is the first
	Old           OldSecret
	Logo          string // name of the picture shown at sign-in; "" means the project's logo
	DarkLogo      string // name of the picture for dark pages; "" if Logo is for all pages
	FirstParty    bool   // whether it is the operator's own app, for which people are not asked for consent
	PKCEOptional  bool   // whether a confidential client may omit PKCE
	RedirectURIs  []string
	LogoutURIs    []string // URIs to which a logout may redirect
	Grants        []string
	Scopes        []string // scopes that the client may request
	AccessToken   TokenFormat
	IDTokenAlg    keys.Use
	Metadata

	// RegisteredBy describes how the client registered itself. It is RegisteredOpenly, or the ID of
	// its initial access token. It is "" for a client that an operator created.
	RegisteredBy     string
	RegistrationHash string // SHA-256 of its registration access token in hex; may be ""

	Created time.Time
	Updated time.Time
}

// adopt sets the settings of c that differ between was and now to those of now.
func (c *Client) adopt(was, now Client) {
	adopt(reflect.ValueOf(c).Elem(), reflect.ValueOf(was), reflect.ValueOf(now))
}

func adopt(to, was, now reflect.Value) {
	for i := range to.NumField() {
		switch from, is := was.Field(i), now.Field(i); {
		case to.Type().Field(i).Anonymous:
			adopt(to.Field(i), from, is)
		case !reflect.DeepEqual(from.Interface(), is.Interface()):
			to.Field(i).Set(is)
		}
	}
}

// May reports whether the client is registered for a grant.
func (c Client) May(grant string) bool { return slices.Contains(c.Grants, grant) }

// tokenLength is the length of the strings that randomToken returns.
const tokenLength = 52

// randomToken returns 260 random bits in base32.
func randomToken() string { return rand.Text() + rand.Text() }

// AllowsRedirect reports whether an authorization response may be sent to uri. The URI must equal
// one of the registered URIs (RFC 9700, section 2.1). There is one exception: a native client's
// loopback address may have any port (RFC 8252, section 7.3).
func (c Client) AllowsRedirect(uri string) bool {
	if slices.Contains(c.RedirectURIs, uri) {
		return true
	}
	if c.Type != Native {
		return false
	}
	bare, ok := withoutLoopbackPort(uri)
	return ok && slices.ContainsFunc(c.RedirectURIs, func(registered string) bool {
		other, ok := withoutLoopbackPort(registered)
		return ok && other == bare
	})
}

// withoutLoopbackPort removes the port from an http URI on a loopback address. It returns false for
// any other URI, and for a URI with user information, a fragment, a backslash or an unusual
// spelling of the port.
func withoutLoopbackPort(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, "http://")
	if !ok || strings.ContainsAny(uri, "@#\\") {
		return "", false
	}

	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]

	for _, host := range []string{"127.0.0.1", "[::1]"} {
		port, ok := strings.CutPrefix(authority, host)
		if ok && (port == "" || isPort(port)) {
			return host + tail, true
		}
	}
	return "", false
}

// isPort reports whether text is a colon and a nonzero port without leading zeros.
func isPort(text string) bool {
	digits, ok := strings.CutPrefix(text, ":")
	n, err := strconv.ParseUint(digits, 10, 16)
	return ok && err == nil && n > 0 && digits == strconv.FormatUint(n, 10)
}

// AllowsLogoutTo reports whether a logout may redirect to uri.
func (c Client) AllowsLogoutTo(uri string) bool { return slices.Contains(c.LogoutURIs, uri) }

// Host returns the name by which people recognize an app. This is the host of its redirect URI or,
// for a native app, the URI's scheme.
func (a AuthRequest) Host() string {
	u, err := url.Parse(a.RedirectURI)
	if err != nil {
		return ""
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		return u.Host
	}
	return u.Scheme
}

// Origin returns the origin of an http or https redirect URI, or "".
func (a AuthRequest) Origin() string {
	return originOf(a.RedirectURI)
}

// Metadata holds the settings that only some clients have. They have the JSON names of client
// registration (RFC 7591, section 2; OpenID Connect Dynamic Client Registration, section 2). Every
// field is optional.
type Metadata struct {
	ResponseTypes []string        `json:"response_types,omitempty"` // empty means only code
	JWKS          json.RawMessage `json:"jwks,omitempty"`           // public keys by value (RFC 7517, section 5)
	JWKSURI       string          `json:"jwks_uri,omitempty"`       // URL of its public keys

	// These fields control how the client sends authorization requests (RFC 9126, section 6; RFC
	// 9101, section 10.5).
	RequirePushed    bool     `json:"require_pushed_authorization_requests,omitempty"`
	RequireObject    bool     `json:"require_signed_request_object,omitempty"`
	RequestObjectAlg string   `json:"request_object_signing_alg,omitempty"`        // "" means any
	RequestURIs      []string `json:"request_uris,omitempty"`                      // URLs of its request objects
	ResponseAlg      keys.Use `json:"authorization_signed_response_alg,omitempty"` // "" means the same as for ID tokens

	// These fields describe the client's certificate, and the key or certificate to which its
	// tokens are bound (RFC 8705, section 3.4; RFC 9449, section 5.2).
	CertificateSubject
	CertificateBound bool `json:"tls_client_certificate_bound_access_tokens,omitempty"`
	DPoPBound        bool `json:"dpop_bound_access_tokens,omitempty"`

	SubjectType SubjectType `json:"subject_type,omitempty"` // "" means public
	SectorURI   string      `json:"sector_identifier_uri,omitempty"`
	UserinfoAlg keys.Use    `json:"userinfo_signed_response_alg,omitempty"` // "" means plain JSON
	Resources   []string    `json:"resources,omitempty"`                    // possible audiences (RFC 8707)
	RequireACR  string      `json:"require_acr,omitempty"`                  // acr that its logins need; "" means any

	// These are the defaults for authorization requests without these parameters, and for the requests
	// of devices, which cannot have them.
	DefaultMaxAge   *int64   `json:"default_max_age,omitempty"` // in seconds
	DefaultACR      []string `json:"default_acr_values,omitempty"`
	RequireAuthTime bool     `json:"require_auth_time,omitempty"` // whether every ID token contains auth_time

	AssertionAlg string `json:"token_endpoint_auth_signing_alg,omitempty"` // "" means any

	// InitiateLoginURI is the client's URI to which other sites send people to start a login
	// (OpenID Connect Core, section 4).
	InitiateLoginURI string `json:"initiate_login_uri,omitempty"`

	ClientURI       string   `json:"client_uri,omitempty"` // its home page
	LogoURI         string   `json:"logo_uri,omitempty"`   // URL from which its logo was read
	Contacts        []string `json:"contacts,omitempty"`   // email addresses
	SoftwareID      string   `json:"software_id,omitempty"`
	SoftwareVersion string   `json:"software_version,omitempty"`

	BrandColor string `json:"brand_color,omitempty"` // color at sign-in, "#rrggbb"; "" means the project's color
	TermsURI   string `json:"tos_uri,omitempty"`     // its terms, shown at sign-in
	PolicyURI  string `json:"policy_uri,omitempty"`  // its privacy policy, shown at sign-in

	BackchannelLogoutURI     string `json:"backchannel_logout_uri,omitempty"`
	BackchannelLogoutSession bool   `json:"backchannel_logout_session_required,omitempty"` // whether it requires sid

	FrontchannelLogoutURI     string `json:"frontchannel_logout_uri,omitempty"`
	FrontchannelLogoutSession bool   `json:"frontchannel_logout_session_required,omitempty"` // whether it needs sid
}

// A SubjectType determines whether all clients get the same subject for a subscriber (Public) or
// not (Pairwise); see OpenID Connect Core, section 8.
type SubjectType string

// These are the subject types. A subscriber's pairwise subject is different in each sector.
const (
	Public   SubjectType = "public"
	Pairwise SubjectType = "pairwise"
)
