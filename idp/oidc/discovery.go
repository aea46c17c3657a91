package oidc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/keys"
)

// cacheFor is how long clients may cache the discovery document.
const cacheFor = 5 * time.Minute

// discovery serves the discovery document and the key set.
type discovery struct {
	*core
	documents map[openTo]keys.Document // discovery documents, one for each value of openTo
}

// openTo records who may register in at least one project. The discovery document depends on this.
type openTo struct{ people, clients bool }

func newDiscovery(c *core) (*discovery, error) {
	d := &discovery{core: c, documents: make(map[openTo]keys.Document)}
	for _, open := range []openTo{{}, {people: true}, {clients: true}, {people: true, clients: true}} {
		doc, err := d.encodeMetadata(open)
		if err != nil {
			return nil, err
		}
		d.documents[open] = doc
	}
	return d, nil
}

// metadata is the content of the discovery document (OpenID Connect Discovery, section 3; RFC 8414,
// section 2). It lists only what is supported.
type metadata struct {
	oidc.DiscoveryConfiguration
	ResponseIss bool `json:"authorization_response_iss_parameter_supported"` // RFC 9207, section 3
	// Initiating User Registration via OpenID Connect 1.0, section 4.
	Prompts []string `json:"prompt_values_supported"`
	// RFC 9126, section 5; JARM, section 4.
	PushedEndpoint string   `json:"pushed_authorization_request_endpoint"`
	ResponseAlgs   []string `json:"authorization_signing_alg_values_supported"`
	IntrospectAlgs []string `json:"introspection_signing_alg_values_supported"` // RFC 9701, section 7
	ProofAlgs      []string `json:"dpop_signing_alg_values_supported"`          // RFC 9449, section 5.1
	// RFC 8705, sections 3.3 and 5.
	CertificateBound bool              `json:"tls_client_certificate_bound_access_tokens,omitempty"`
	Aliases          map[string]string `json:"mtls_endpoint_aliases,omitempty"`
	// OpenID Connect Front-Channel Logout 1.0, section 3.
	FrontLogout        bool `json:"frontchannel_logout_supported"`
	FrontLogoutSession bool `json:"frontchannel_logout_session_supported"`
}

// encodeMetadata returns the discovery document for open.
func (d *discovery) encodeMetadata(open openTo) (keys.Document, error) {
	m := metadata{
		DiscoveryConfiguration: d.configuration(),
		ResponseIss:            true,
		Prompts:                idp.Prompts(open.people),
		PushedEndpoint:         d.authURL + parPath,
		ResponseAlgs:           algorithms(),
		IntrospectAlgs:         algorithms(),
		ProofAlgs:              dpop.Algorithms(),
		CertificateBound:       d.certificates,
		Aliases:                d.aliases(),
		FrontLogout:            true,
		FrontLogoutSession:     true,
	}
	if open.clients {
		m.RegistrationEndpoint = d.authURL + registerPath
	}

	body, err := json.Marshal(m)
	if err != nil {
		return keys.Document{}, fmt.Errorf("writing discovery document: %w", err)
	}
	return keys.Document{Body: body, ETag: web.ETag(body), MaxAge: cacheFor}, nil
}

// configuration returns the metadata that the library's package oidc defines, except the fields
// that depend on openTo.
func (d *discovery) configuration() oidc.DiscoveryConfiguration {
	provenMethods := d.authMethods()
	allMethods := append(slices.Clone(provenMethods), oidc.AuthMethodNone)

	return oidc.DiscoveryConfiguration{
		Issuer:                      d.Issuer,
		AuthorizationEndpoint:       d.authURL + authorizePath,
		TokenEndpoint:               d.authURL + tokenPath,
		IntrospectionEndpoint:       d.authURL + introspectPath,
		UserinfoEndpoint:            d.authURL + "/oauth/userinfo",
		RevocationEndpoint:          d.authURL + revokePath,
		DeviceAuthorizationEndpoint: d.authURL + devicePath,
		EndSessionEndpoint:          d.authURL + "/oauth/logout",
		CheckSessionIframe:          d.authURL + sessionPath,
		JwksURI:                     d.authURL + "/oauth/jwks",

		ScopesSupported:        idp.Scopes(),
		ResponseTypesSupported: idp.ResponseTypes(),
		ResponseModesSupported: idp.ResponseModes(),
		GrantTypesSupported: []oidc.GrantType{
			oidc.GrantTypeCode,
			oidc.GrantTypeRefreshToken,
			oidc.GrantTypeClientCredentials,
			oidc.GrantTypeImplicit,
			oidc.GrantTypeDeviceCode,
		},
		CodeChallengeMethodsSupported: []oidc.CodeChallengeMethod{oidc.CodeChallengeMethodS256},
		ACRValuesSupported:            idp.ACRValues(),
		DisplayValuesSupported:        []oidc.Display{oidc.DisplayPage},
		UILocalesSupported:            words.Tags(), // languages of the pages
		ClaimsParameterSupported:      true,

		RequestParameterSupported:              true,
		RequestURIParameterSupported:           true,
		RequireRequestURIRegistration:          true,
		RequestObjectSigningAlgValuesSupported: idp.AssertionAlgorithms(),

		TokenEndpointAuthMethodsSupported:                  allMethods,
		TokenEndpointAuthSigningAlgValuesSupported:         idp.AssertionAlgorithms(),
		RevocationEndpointAuthMethodsSupported:             allMethods,
		RevocationEndpointAuthSigningAlgValuesSupported:    idp.AssertionAlgorithms(),
		IntrospectionEndpointAuthMethodsSupported:          provenMethods,
		IntrospectionEndpointAuthSigningAlgValuesSupported: idp.AssertionAlgorithms(),

		SubjectTypesSupported:             []string{string(idp.Public), string(idp.Pairwise)},
		IDTokenSigningAlgValuesSupported:  algorithms(),
		UserinfoSigningAlgValuesSupported: algorithms(),
		ClaimTypesSupported:               []string{"normal"},
		ClaimsSupported: append([]string{
			"sub", "iss", "aud", "azp", "exp", "iat", "auth_time", "nonce", "acr", "amr", "sid", "at_hash",
		}, idp.ClaimsOf("profile", "email", "address", "phone")...),

		BackChannelLogoutSupported:        true,
		BackChannelLogoutSessionSupported: true,
	}
}

// authMethods returns the methods with which clients can authenticate, except none.
func (d *discovery) authMethods() []oidc.AuthMethod {
	methods := []oidc.AuthMethod{oidc.AuthMethodBasic, oidc.AuthMethodPost, oidc.AuthMethodPrivateKeyJWT}
	if d.certificates && d.ClientCAs != nil {
		methods = append(methods, oidc.AuthMethod(idp.AuthTLS))
	}
	if d.certificates {
		methods = append(methods, oidc.AuthMethod(idp.AuthSelfSignedTLS))
	}
	return methods
}

// aliases returns the URLs of the endpoints for clients with certificates, by name, or nil if these
// clients use the same URLs as all others.
func (d *discovery) aliases() map[string]string {
	if d.mtlsURL == "" {
		return nil
	}
	return map[string]string{
		"token_endpoint":                        d.mtlsURL + tokenPath,
		"revocation_endpoint":                   d.mtlsURL + revokePath,
		"introspection_endpoint":                d.mtlsURL + introspectPath,
		"device_authorization_endpoint":         d.mtlsURL + devicePath,
		"pushed_authorization_request_endpoint": d.mtlsURL + parPath,
		"userinfo_endpoint":                     d.mtlsURL + "/oauth/userinfo",
	}
}

// algorithms returns the names of the algorithms with which this server signs.
func algorithms() (names []string) {
	for _, alg := range keys.Algorithms() {
		names = append(names, string(alg))
	}
	return names
}

// serveMetadata serves the discovery document. If people may create their own accounts in at least
// one project, the document lists prompt=create. If clients may register themselves, it contains
// the registration endpoint. If the database cannot be read, the document contains neither.
func (d *discovery) serveMetadata(w http.ResponseWriter, r *http.Request) {
	var open openTo
	if may, err := d.MayRegisterSomewhere(r.Context()); err == nil {
		open.people = may
	}
	if may, err := d.MayClientsRegister(r.Context()); err == nil {
		open.clients = may
	}
	serveDocument(w, r, d.documents[open], "application/json")
}

// serveJWKS serves GET /oauth/jwks (RFC 7517, section 8.5).
func (d *discovery) serveJWKS(w http.ResponseWriter, r *http.Request) {
	serveDocument(w, r, d.Ring.JWKS(), "application/jwk-set+json")
}

// serveDocument serves an encoded document, or answers with 304 if the browser already has it.
func serveDocument(w http.ResponseWriter, r *http.Request, doc keys.Document, contentType string) {
	w.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(doc.MaxAge.Seconds())))
	web.ServeDocument(w, r, contentType, doc.ETag, doc.Body)
}

// document returns a handler that calls serve for GET and HEAD, and refuses other methods.
func (d *discovery) document(serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			web.Refuse(r.Context(), errMethod)
			d.writeOAuth(w, r, http.StatusMethodNotAllowed, "invalid_request", "use GET")
			return
		}
		serve(w, r)
	})
}
