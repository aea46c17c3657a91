package oidc

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// A server handles the requests that zitadel/oidc's Server has parsed, and requests to the token,
// introspection and pushed-request endpoints. The embedded op.UnimplementedServer rejects grants
// that are not among the server's granters.
type server struct {
	op.UnimplementedServer
	*core
}

var _ op.Server = (*server)(nil)

// refuseClient returns the error for a client that is not authenticated. Only the log shows cause.
func refuseClient(cause string) *problem.Error {
	return problem.New(problem.Unauthenticated, "invalid_client",
		"the client is unknown, or did not authenticate in the way it is registered for").Because(cause)
}

// VerifyClient authenticates a client with the method for which it is registered.
func (s *server) VerifyClient(ctx context.Context, r *op.Request[op.ClientCredentials]) (op.Client, error) {
	c, err := s.verifyClient(ctx, r.Header, certificatesIn(ctx), r.Data)
	if err != nil {
		return nil, s.status(ctx, err)
	}
	audit.As(ctx, audit.Client, c.ID)
	return client{c}, nil
}

// verifyClient authenticates a client by its credentials and by the certificates of its connection.
func (s *server) verifyClient(ctx context.Context, h http.Header, chain []*x509.Certificate,
	cc *op.ClientCredentials) (idp.Client, error) {
	uses := s.Assertions.Uses()
	c, err := s.authenticate(ctx, h, chain, cc, uses)
	if err != nil {
		return c, err
	}
	return c, uses.Store(ctx)
}

// authenticate is like verifyClient, but adds the use of an assertion to uses. The caller must
// store the uses before or together with anything that the request changes. It must store them even
// if it refuses the request.
func (s *server) authenticate(ctx context.Context, h http.Header, chain []*x509.Certificate,
	cc *op.ClientCredentials, uses *idp.Uses) (idp.Client, error) {
	if cc.ClientAssertion != "" {
		return s.Assertions.Verify(ctx, idp.Assertion{
			JWT:       cc.ClientAssertion,
			ClientID:  cc.ClientID,
			Audiences: s.audiences(),
		}, uses)
	}

	c, err := s.Clients.Find(ctx, cc.ClientID)
	if errors.Is(err, problem.NotFound) {
		return c, refuseClient("the client is unknown")
	}
	if err != nil {
		return c, err
	}

	used := idp.AuthNone
	switch {
	case len(h.Values("Authorization")) > 0:
		used = idp.AuthBasic
	case cc.ClientSecret != "":
		used = idp.AuthPost
	}

	if used == idp.AuthNone && c.ByCertificate() {
		return c, s.Assertions.VerifyCertificate(ctx, c, chain)
	}
	if used != c.AuthMethod {
		return c, refuseClient(fmt.Sprintf("the client used the method %s instead of %s", used, c.AuthMethod))
	}
	if used != idp.AuthNone && !s.Clients.VerifySecret(ctx, c, cc.ClientSecret) {
		return c, refuseClient("the client secret is wrong")
	}
	return c, nil
}

// certificatesKey is the key of the client's certificates in the context of a request that the
// library serves. The library passes only the header of the request to VerifyClient.
type certificatesKey struct{}

func withCertificates(r *http.Request) *http.Request {
	chain := web.Certificates(r)
	if chain == nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), certificatesKey{}, chain))
}

func certificatesIn(ctx context.Context) []*x509.Certificate {
	chain, _ := ctx.Value(certificatesKey{}).([]*x509.Certificate)
	return chain
}

// audiences returns the audiences that an assertion may name. These are the issuer, which RFC 7523
// (section 3) and its revision prefer, and the endpoints, including their URLs for clients with
// certificates (RFC 8705, section 5).
func (s *server) audiences() []string {
	all := []string{s.Issuer}
	for _, base := range []string{s.authURL, s.mtlsURL} {
		if base != "" {
			all = append(all, base+tokenPath, base+devicePath, base+introspectPath, base+revokePath, base+parPath)
		}
	}
	return all
}

// Revocation implements RFC 7009. Invalid tokens and tokens of other clients get the same response
// as valid tokens. If a revocation cannot be written, Revocation returns an error.
func (s *server) Revocation(ctx context.Context, r *op.ClientRequest[oidc.RevocationRequest]) (*op.Response, error) {
	err := s.Grants.RevokeToken(ctx, registered(r.Client), r.Data.Token)
	if err == nil {
		return op.NewResponse(nil), nil
	}
	if problem.First(err) == nil && !web.HasClientLeft(ctx, err) {
		s.log.ErrorContext(ctx, "writing revocation", "request_id", web.RequestID(ctx), "error", err)
		err = &problem.Error{
			Kind:    problem.Unavailable,
			Code:    "temporarily_unavailable",
			Message: "the revocation could not be written; try again",
		}
	}
	return nil, s.status(ctx, err)
}

// status returns err as an error defined in RFC 6749, section 5.2, with its HTTP status.
func (s *server) status(ctx context.Context, err error) error {
	web.Refuse(ctx, err)
	p := problem.First(err)
	switch {
	case web.HasClientLeft(ctx, err):
		// Nobody receives this response. The library would log a server_error.
		return op.NewStatusError(oauthError("temporarily_unavailable", "the client has left"),
			http.StatusServiceUnavailable)
	case p == nil:
		s.log.ErrorContext(ctx, "internal error", "request_id", web.RequestID(ctx), "error", err)
		return op.NewStatusError(oauthError("server_error", "internal error"),
			http.StatusInternalServerError)
	case p.Kind == problem.Unavailable:
		if error(p) != err { // otherwise there is nothing more to log
			s.log.ErrorContext(ctx, "unavailable", "request_id", web.RequestID(ctx), "error", err)
		}
		return op.NewStatusError(oauthError("temporarily_unavailable", p.Message), http.StatusServiceUnavailable)
	case p.Kind == problem.RateLimited:
		return op.NewStatusError(oauthError("slow_down", p.Message), http.StatusTooManyRequests)
	case p.Kind == problem.Unauthenticated:
		return op.NewStatusError(oauthError("invalid_client", p.Message), http.StatusUnauthorized)
	}

	return op.NewStatusError(oauthError(p.Code, p.Message), http.StatusBadRequest)
}

func oauthError(code, text string) *oidc.Error {
	e := &oidc.Error{Description: description(text)}
	assign(&e.ErrorType, code)
	return e
}

// description returns text with the characters that an error_description may have: printable ASCII
// without quotes and backslashes (RFC 6749, sections 4.1.2.1 and 5.2). text may quote what a client
// has sent.
func description(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '"', c == '\\':
			return '\''
		case c < ' ' || c > '~':
			return '?'
		}
		return c
	}, text)
}

// assign assigns a string to a variable whose type the library does not export.
func assign[T ~string](to *T, s string) { *to = T(s) }

// A client is a registered client in the form that the library needs. The library uses only three
// of the methods.
type client struct{ idp.Client }

var _ op.Client = client{}

func registered(c op.Client) idp.Client {
	own, _ := c.(client)
	return own.Client
}

func (c client) GetID() string                    { return c.ID }
func (c client) AuthMethod() oidc.AuthMethod      { return oidc.AuthMethod(c.Client.AuthMethod) }
func (c client) RedirectURIs() []string           { return c.Client.RedirectURIs }
func (c client) PostLogoutRedirectURIs() []string { return c.LogoutURIs }
func (c client) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}
func (c client) ApplicationType() op.ApplicationType  { return op.ApplicationTypeWeb }
func (c client) LoginURL(string) string               { return "/login" }
func (c client) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeBearer }
func (c client) IDTokenLifetime() time.Duration       { return 0 }
func (c client) DevMode() bool                        { return false }
func (c client) IsScopeAllowed(scope string) bool     { return slices.Contains(c.Scopes, scope) }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return false }
func (c client) ClockSkew() time.Duration             { return 0 }

//lint:ignore ST1003 the name is the library's
func (c client) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return func(scopes []string) []string { return scopes }
}
func (c client) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return func(scopes []string) []string { return scopes }
}

func (c client) GrantTypes() []oidc.GrantType {
	types := make([]oidc.GrantType, len(c.Grants))
	for i, g := range c.Grants {
		types[i] = oidc.GrantType(g)
	}
	return types
}
