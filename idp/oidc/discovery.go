package oidc

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/keys"
)

// cacheFor is how long clients may keep discovery without asking.
const cacheFor = 5 * time.Minute

// metadata is the discovery document (OpenID Connect Discovery, section 3; RFC
// 8414, section 2) as bytes ready to serve. It names what is there, nothing else.
type metadata keys.Document

func (a *API) newMetadata() (metadata, error) {
	secretMethods := []oidc.AuthMethod{oidc.AuthMethodBasic, oidc.AuthMethodPost}
	allMethods := append(secretMethods, oidc.AuthMethodNone)
	doc := struct {
		oidc.DiscoveryConfiguration
		ResponseIss bool `json:"authorization_response_iss_parameter_supported"` // RFC 9207, section 3
	}{
		ResponseIss: true,
		DiscoveryConfiguration: oidc.DiscoveryConfiguration{
			Issuer:                                    a.Issuer,
			AuthorizationEndpoint:                     a.authURL + "/login/oauth/authorize",
			TokenEndpoint:                             a.authURL + tokenPath,
			IntrospectionEndpoint:                     a.authURL + introspectPath,
			UserinfoEndpoint:                          a.authURL + "/oauth/userinfo",
			RevocationEndpoint:                        a.authURL + revokePath,
			EndSessionEndpoint:                        a.authURL + "/oauth/logout",
			JwksURI:                                   a.authURL + "/oauth/jwks",
			ScopesSupported:                           idp.Scopes(),
			ResponseTypesSupported:                    []string{"code"},
			ResponseModesSupported:                    []string{"query"},
			GrantTypesSupported:                       []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeClientCredentials},
			SubjectTypesSupported:                     []string{"public"},
			IDTokenSigningAlgValuesSupported:          algorithms(),
			TokenEndpointAuthMethodsSupported:         allMethods,
			RevocationEndpointAuthMethodsSupported:    allMethods,
			IntrospectionEndpointAuthMethodsSupported: secretMethods,
			ClaimTypesSupported:                       []string{"normal"},
			ClaimsSupported: []string{
				"sub", "iss", "aud", "azp", "exp", "iat", "auth_time", "nonce", "amr", "sid", "at_hash",
				"name", "given_name", "family_name", "zoneinfo", "updated_at", "email",
			},
			CodeChallengeMethodsSupported: []oidc.CodeChallengeMethod{oidc.CodeChallengeMethodS256},
		},
	}
	body, err := json.Marshal(doc)
	if err != nil {
		return metadata{}, fmt.Errorf("writing discovery document: %w", err)
	}
	sum := sha256.Sum256(body)
	return metadata{Body: body, ETag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, MaxAge: cacheFor}, nil
}

func algorithms() (names []string) {
	for _, alg := range keys.Algorithms() {
		names = append(names, string(alg))
	}
	return names
}

func (m metadata) serve(w http.ResponseWriter, r *http.Request) {
	serveDocument(w, r, keys.Document(m), "application/json")
}

// serveJWKS serves GET /oauth/jwks (RFC 7517, section 8.5).
func (a *API) serveJWKS(w http.ResponseWriter, r *http.Request) {
	serveDocument(w, r, a.Ring.JWKS(), "application/jwk-set+json")
}

// serveDocument answers with ready bytes, or 304.
func serveDocument(w http.ResponseWriter, r *http.Request, d keys.Document, kind string) {
	h := w.Header()
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(d.MaxAge.Seconds())))
	h.Set("ETag", d.ETag)
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Header.Get("If-None-Match") == d.ETag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", kind)
	_, _ = w.Write(d.Body) // the client may have gone
}

// document makes a handler of a document, for GET and HEAD alone.
func (a *API) document(serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			a.writeOAuth(w, r, http.StatusMethodNotAllowed, "invalid_request", "use GET")
			return
		}
		serve(w, r)
	})
}
