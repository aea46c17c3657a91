package idp

import (
	"crypto/rand"
	"encoding/json"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/keys"
)

// A ClientType sets a client's defaults.
type ClientType string

// The types: an app in a browser, on a device, on a server with a browser in
// front, on a server alone.
const (
	SPA     ClientType = "spa"
	Native  ClientType = "native"
	Web     ClientType = "web"
	Service ClientType = "service"
)

// A Profile says how strictly a client's requests are read. Default is OAuth 2.1;
// MobileLegacy understands what native fabric clients in the field send.
type Profile string

// The profiles.
const (
	Default      Profile = "default"
	MobileLegacy Profile = "mobile-legacy"
)

// An AuthMethod is how a client proves itself at the token endpoint (OpenID
// Connect Core, section 9).
type AuthMethod string

// The methods. A client uses the one it is registered for.
const (
	AuthNone  AuthMethod = "none"
	AuthBasic AuthMethod = "client_secret_basic"
	AuthPost  AuthMethod = "client_secret_post"
	// AuthPrivateKeyJWT signs an assertion for each request (RFC 7523, section 2.2).
	AuthPrivateKeyJWT AuthMethod = "private_key_jwt"
)

// bySecret reports whether a client with the method has a secret.
func (m AuthMethod) bySecret() bool { return m == AuthBasic || m == AuthPost }

// A TokenFormat is what a client's access tokens are: sealed fabric tokens
// (SATs), or JWTs of RFC 9068.
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
)

// A Client is an application that asks for tokens.
type Client struct {
	ID, ProjectID string
	Name          string // shown at sign-in
	Type          ClientType
	Profile       Profile
	AuthMethod    AuthMethod
	SecretHash    string    // SHA-256 in hex; "" where the AuthMethod has no secret
	SecretMade    time.Time // when it got its present secret; zero if that is its first
	Old           OldSecret
	Logo          string // name of the picture that is shown where people sign in to it; "" is the project's
	FirstParty    bool   // of the operator's own: no consent is asked
	PKCEOptional  bool   // a confidential client that may leave PKCE out
	RedirectURIs  []string
	LogoutURIs    []string // where a logout may redirect to
	Grants        []string
	Scopes        []string // what it may ask
	AccessToken   TokenFormat
	IDTokenAlg    keys.Use
	Metadata
	Created time.Time
	Updated time.Time
}

// adopt takes over what differs between a client as it was and as it is to be.
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

// randomToken returns 260 random bits in base32.
func randomToken() string { return rand.Text() + rand.Text() }

// AllowsRedirect reports whether an authorization response may be sent to uri:
// one of the registered, by simple string comparison (RFC 9700, section 2.1). A
// native client's loopback address may have any port (RFC 8252, section 7.3).
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

// withoutLoopbackPort returns an http URI on a loopback address without its port,
// if it is one and is written in the plainest way.
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
	if addr, err := netip.ParseAddrPort(authority); err == nil && isLoopback(addr.Addr()) &&
		authority == addr.String() {
		return addr.Addr().String() + tail, true
	}
	addr, err := netip.ParseAddr(strings.Trim(authority, "[]"))
	return addr.String() + tail, err == nil && isLoopback(addr)
}

func isLoopback(a netip.Addr) bool {
	return a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback()
}

// AllowsLogoutTo reports whether a logout may redirect to uri.
func (c Client) AllowsLogoutTo(uri string) bool { return slices.Contains(c.LogoutURIs, uri) }

// Host returns the place that people know an app by: the host of the redirect URI
// where it waits for them, or the scheme of a native app.
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

// Metadata is what only some clients have, under the names of their registration
// (RFC 7591, section 2; OpenID Connect Dynamic Client Registration, section 2).
// The zero value means none of it.
type Metadata struct {
	ResponseTypes []string        `json:"response_types,omitempty"` // none means code alone
	JWKS          json.RawMessage `json:"jwks,omitempty"`           // public keys by value (RFC 7517, section 5), or
	JWKSURI       string          `json:"jwks_uri,omitempty"`       // where they are
	SubjectType   SubjectType     `json:"subject_type,omitempty"`   // "" means public
	SectorURI     string          `json:"sector_identifier_uri,omitempty"`
	UserinfoAlg   keys.Use        `json:"userinfo_signed_response_alg,omitempty"` // "" means plain JSON
	Resources     []string        `json:"resources,omitempty"`                    // that it may ask tokens for (RFC 8707)
	RequireACR    string          `json:"require_acr,omitempty"`                  // the class that each login for it must have; "" means any

	BrandColor string `json:"brand_color,omitempty"` // of buttons and links where it is signed in to, "#rrggbb"; "" is the project's
	TermsURI   string `json:"tos_uri,omitempty"`     // shown there
	PolicyURI  string `json:"policy_uri,omitempty"`  // of its privacy policy, likewise

	BackchannelLogoutURI     string `json:"backchannel_logout_uri,omitempty"`
	BackchannelLogoutSession bool   `json:"backchannel_logout_session_required,omitempty"` // logout tokens must name the login
}

// A SubjectType says whether a subscriber is the same to all clients (OpenID
// Connect Core, section 8).
type SubjectType string

// The types. A pairwise subject differs from sector to sector.
const (
	Public   SubjectType = "public"
	Pairwise SubjectType = "pairwise"
)
