package oidc

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/cnf"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// introspect serves POST /oauth/introspect (RFC 7662). It must be fast, because a client may
// introspect a token for each request that the client serves. introspect does not use the handler
// of zitadel/oidc, because that handler would take more time than the introspection itself.
func (s *server) introspect(w http.ResponseWriter, r *http.Request, cc *op.ClientCredentials) {
	answer, c, err := s.about(r, cc)
	if err != nil {
		op.WriteError(w, r, s.status(r.Context(), err), nil)
		return
	}
	if asksSigned(r) {
		s.introspectSigned(w, r, c, answer)
		return
	}
	if err := web.JSON(w, http.StatusOK, answer); err != nil {
		web.LogInternal(r, s.log, err)
	}
}

// introspectionType is the media type of signed introspection responses (RFC 9701, section 4).
const introspectionType = "application/token-introspection+jwt"

// asksSigned reports whether r accepts a signed response. The order of preference does not matter,
// because only clients that want a signed response name its type.
func asksSigned(r *http.Request) bool {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		kind, params, err := mime.ParseMediaType(accepted)
		if err == nil && kind == introspectionType && !isRefused(params["q"]) {
			return true
		}
	}
	return false
}

// isRefused reports whether the weight of a media type says that the client does not accept the type
// (RFC 9110, section 12.4.2). The weight is "" if the header omits it.
func isRefused(weight string) bool {
	n, err := strconv.ParseFloat(weight, 64)
	return err == nil && n == 0
}

// introspectSigned sends answer as a JWT for the client (RFC 9701, section 5).
func (s *server) introspectSigned(w http.ResponseWriter, r *http.Request, c idp.Client, answer introspection) {
	token, err := s.Ring.Sign(c.IDTokenAlg, "token-introspection+jwt", struct {
		Issuer   string        `json:"iss"`
		Audience string        `json:"aud"`
		IssuedAt int64         `json:"iat"`
		About    introspection `json:"token_introspection"`
	}{Issuer: s.Issuer, Audience: c.ID, IssuedAt: s.Now().Unix(), About: answer})
	if err != nil {
		op.WriteError(w, r, s.status(r.Context(), err), nil)
		return
	}
	w.Header().Set("Content-Type", introspectionType)
	_, _ = io.WriteString(w, token) // the client may have disconnected
}

// about authenticates the client and returns what it may know about the token in r. A client may know
// everything about its own tokens, and nothing about other tokens.
func (s *server) about(r *http.Request, cc *op.ClientCredentials) (introspection, idp.Client, error) {
	ctx := r.Context()
	c, err := s.verifyClient(ctx, r.Header, web.Certificates(r), cc)
	if err != nil {
		return introspection{}, c, err
	}
	if c.AuthMethod == idp.AuthNone {
		return introspection{}, c, refuseClient("clients without credentials may not introspect tokens")
	}

	token := r.Form.Get("token")
	if token == "" {
		return introspection{}, c, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "invalid_request",
			Message: "token is missing",
		}
	}

	t, audience, err := s.inspectLive(ctx, token)
	if errors.Is(err, problem.Unauthenticated) || errors.Is(err, problem.NotFound) {
		return introspection{}, c, nil
	}
	if err != nil {
		return introspection{}, c, err
	}
	if t.ClientID != c.ID {
		return introspection{}, c, nil
	}

	t.SessionID = s.Subjects.SessionFor(c, t.SessionID)
	return introspected(t, s.Subjects.SubjectFor(c, t.SubscriberID), audience), c, nil
}

// inspectLive returns the content and the audience of a token. If the token has a subscriber who no
// longer exists or is disabled, it returns an error.
func (s *server) inspectLive(ctx context.Context, token string) (fabric.Token, string, error) {
	t, audience, err := s.Tokens.Inspect(ctx, token)
	if err != nil {
		return fabric.Token{}, "", err
	}
	if t.SubscriberID != "" {
		if _, err := s.Tokens.Subscriber(ctx, t); err != nil {
			return fabric.Token{}, "", err
		}
	}
	return t, audience, nil
}

// introspection is the response defined in RFC 7662, section 2.2.
type introspection struct {
	Active    bool   `json:"active"`
	Scope     string `json:"scope,omitempty"`
	ClientID  string `json:"client_id,omitempty"`
	TokenType string `json:"token_type,omitempty"`
	Expires   int64  `json:"exp,omitempty"`
	IssuedAt  int64  `json:"iat,omitempty"`
	Subject   string `json:"sub,omitempty"`
	Audience  string `json:"aud,omitempty"`
	Issuer    string `json:"iss,omitempty"`
	ID        string `json:"jti,omitempty"`
	SessionID string `json:"sid,omitempty"`

	Confirmation *cnf.Claim `json:"cnf,omitempty"`
}

func introspected(t fabric.Token, subject, audience string) introspection {
	in := introspection{
		Active:       true,
		Scope:        strings.Join(t.Scope, " "),
		ClientID:     t.ClientID,
		TokenType:    oidc.BearerToken,
		Expires:      t.ExpiresAt.Unix(),
		IssuedAt:     t.IssuedAt.Unix(),
		Subject:      subject,
		Audience:     audience,
		Issuer:       t.Issuer,
		ID:           t.ID,
		SessionID:    t.SessionID,
		Confirmation: cnf.ClaimOf(t.Binding),
	}
	if cnf.IsKey(t.Binding) {
		in.TokenType = dpopType
	}
	if in.Subject == "" {
		in.Subject = t.ClientID
	}
	return in
}
