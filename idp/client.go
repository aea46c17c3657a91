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

// The types: an app in a browser, on a device, on a server with a browser in
// front, on a server alone.
const (
	SPA     ClientType = "spa"
	Native  ClientType = "native"
	Web     ClientType = "web"
	Service ClientType = "service"
)

// A Profile is how strictly a client's requests are read. Default is OAuth 2.1;
// MobileLegacy accepts what native fabric clients in the field send; FAPI2 is the FAPI 2.0 Security
// Profile.
type Profile string

// The profiles.
const (
	Default      Profile = "default"
	MobileLegacy Profile = "mobile-legacy"
	FAPI2        Profile = "fapi2"
)

// An AuthMethod is how a client authenticates at the token endpoint (OpenID Connect Core,
// section 9).
type AuthMethod string

// The methods. A client uses the one it is registered for.
const (
	AuthNone  AuthMethod = "none"
	AuthBasic AuthMethod = "client_secret_basic"
	AuthPost  AuthMethod = "client_secret_post"
	// AuthPrivateKeyJWT signs an assertion for each request (RFC 7523, section 2.2).
	AuthPrivateKeyJWT AuthMethod = "private_key_jwt"
)

// bySecret reports whether clients with the method have a secret.
func (m AuthMethod) bySecret() bool { return m == AuthBasic || m == AuthPost }

// A TokenFormat is the format of a client's access tokens: sealed fabric tokens (SATs) or
// JWTs of RFC 9068.
type TokenFormat string

// The formats.
const (
	FabricToken TokenFormat = "fabric"
	JWTToken    TokenFormat = "jwt"
)

// The grants a client may be registered for.
const (
	GrantCode              = "authorization_code"
	GrantRefresh           = "refresh_token"
	GrantClientCredentials = "client_credentials"
	GrantDevice            = "urn:ietf:params:oauth:grant-type:device_code"
	// GrantImplicit is what RFC 7591, section 2.1 calls the right to the response types that
	// ResponseIDToken is one of. Clients are not stored with it: their response types imply it.
	GrantImplicit = "implicit"
)

// ShortDevice stands for the URN of GrantDevice where people name grants.
const ShortDevice = "device_code"

// GrantNames returns the grants by the names that people use.
func GrantNames() []string {
	return []string{GrantCode, GrantRefresh, GrantClientCredentials, ShortDevice, GrantImplicit}
}

// NormalizeGrants replaces the short name of a grant and drops an implicit that the response
// types imply.
func (c *Client) NormalizeGrants() {
	c.Grants = slices.Clone(c.Grants)
	for i, g := range c.Grants {
		if g == ShortDevice {
			c.Grants[i] = GrantDevice
		}
	}
	if c.Answers(ResponseIDToken) {
		c.Grants = slices.DeleteFunc(c.Grants, func(g string) bool { return g == GrantImplicit })
	}
}

// A Client is an app that asks for tokens.
type Client struct {
	ID, ProjectID string
	Name          string // shown at sign-in
	Type          ClientType
	Profile       Profile
	AuthMethod    AuthMethod
	SecretHash    string    // SHA-256 in hex; "" if the AuthMethod has no secret
	SecretMade    time.Time // when the current secret was made; zero if it is the first
	Old           OldSecret
	Logo          string // name of the picture shown at sign-in; "" means the project's
	FirstParty    bool   // the operator's own: people are not asked for consent
	PKCEOptional  bool   // a confidential client may leave PKCE out
	RedirectURIs  []string
	LogoutURIs    []string // where a logout may redirect to
	Grants        []string
	Scopes        []string // those it may ask for
	AccessToken   TokenFormat
	IDTokenAlg    keys.Use
	Metadata
	Created time.Time
	Updated time.Time
}

// adopt copies the settings that differ between was and now.
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

// tokenLength is the length of what randomToken returns.
const tokenLength = 52

// randomToken returns 260 random bits in base32.
func randomToken() string { return rand.Text() + rand.Text() }

// AllowsRedirect reports whether an authorization response may be sent to uri: one of the
// registered URIs, by simple string comparison (RFC 9700, section 2.1). A native client's
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

// withoutLoopbackPort returns an http URI on a loopback address without its port. ok is
// false if it is not one, or is not written in its plainest form.
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

// isPort reports whether text is a colon and a port to connect to, without leading zeros.
func isPort(text string) bool {
	digits, ok := strings.CutPrefix(text, ":")
	n, err := strconv.ParseUint(digits, 10, 16)
	return ok && err == nil && n > 0 && digits == strconv.FormatUint(n, 10)
}

// AllowsLogoutTo reports whether a logout may redirect to uri.
func (c Client) AllowsLogoutTo(uri string) bool { return slices.Contains(c.LogoutURIs, uri) }

// Host returns the name by which people know an app: the host of its redirect URI, or the
// scheme of a native app's.
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
	u, err := url.Parse(a.RedirectURI)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Metadata holds the settings that only some clients have, by the names of client
// registration (RFC 7591, section 2; OpenID Connect Dynamic Client Registration, section
// 2). Every field may be left out.
type Metadata struct {
	ResponseTypes []string        `json:"response_types,omitempty"` // empty means only code
	JWKS          json.RawMessage `json:"jwks,omitempty"`           // public keys by value (RFC 7517, section 5), or
	JWKSURI       string          `json:"jwks_uri,omitempty"`       // where they are

	// How it sends authorization requests (RFC 9126, section 6; RFC 9101, section 10.5).
	RequirePushed    bool     `json:"require_pushed_authorization_requests,omitempty"`
	RequireObject    bool     `json:"require_signed_request_object,omitempty"`
	RequestObjectAlg string   `json:"request_object_signing_alg,omitempty"`        // "" means any
	RequestURIs      []string `json:"request_uris,omitempty"`                      // where its request objects are
	ResponseAlg      keys.Use `json:"authorization_signed_response_alg,omitempty"` // "" means that of ID tokens

	DPoPBound   bool        `json:"dpop_bound_access_tokens,omitempty"` // RFC 9449, section 5.2
	SubjectType SubjectType `json:"subject_type,omitempty"`             // "" means public
	SectorURI   string      `json:"sector_identifier_uri,omitempty"`
	UserinfoAlg keys.Use    `json:"userinfo_signed_response_alg,omitempty"` // "" means plain JSON
	Resources   []string    `json:"resources,omitempty"`                    // possible audiences (RFC 8707)
	RequireACR  string      `json:"require_acr,omitempty"`                  // of its logins; "" means any

	BrandColor string `json:"brand_color,omitempty"` // at sign-in, "#rrggbb"; "" means the project's
	TermsURI   string `json:"tos_uri,omitempty"`     // of its terms, shown at sign-in
	PolicyURI  string `json:"policy_uri,omitempty"`  // of its privacy policy, shown at sign-in

	BackchannelLogoutURI     string `json:"backchannel_logout_uri,omitempty"`
	BackchannelLogoutSession bool   `json:"backchannel_logout_session_required,omitempty"` // tokens name the login
}

// A SubjectType is public if all clients know a subscriber by the same subject, or
// pairwise (OpenID Connect Core, section 8).
type SubjectType string

// The types. A pairwise subject differs from sector to sector.
const (
	Public   SubjectType = "public"
	Pairwise SubjectType = "pairwise"
)
