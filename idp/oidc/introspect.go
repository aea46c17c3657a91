package oidc

import (
	"errors"
	"net/http"
	"strings"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// introspect serves POST /oauth/introspect (RFC 7662). Resource servers may call it for
// every request they get, and the library's path there costs more than the answer.
func (s *server) introspect(w http.ResponseWriter, r *http.Request, cc *op.ClientCredentials) {
	answer, err := s.about(r, cc)
	if err != nil {
		op.WriteError(w, r, s.status(r.Context(), err), nil)
		return
	}
	if err := web.JSON(w, http.StatusOK, answer); err != nil {
		web.LogInternal(r, s.log, err)
	}
}

// about returns what a client may know about a token: everything about its own, nothing
// about others.
func (s *server) about(r *http.Request, cc *op.ClientCredentials) (introspection, error) {
	ctx := r.Context()
	if cc.ClientSecret == "" && cc.ClientAssertion == "" {
		return introspection{}, errClient
	}
	c, err := s.verifyClient(ctx, r.Header, cc)
	if err != nil {
		return introspection{}, err
	}

	token := r.Form.Get("token")
	if token == "" {
		return introspection{}, &problem.Error{Kind: problem.Invalid, Code: "invalid_request",
			Message: "token is missing"}
	}

	t, audience, err := s.Tokens.Inspect(ctx, token)
	if err == nil && t.SubscriberID != "" {
		_, err = s.Tokens.Subscriber(ctx, t)
	}
	switch {
	case errors.Is(err, problem.Unauthenticated), errors.Is(err, problem.NotFound), err == nil && t.ClientID != c.ID:
		return introspection{}, nil
	case err != nil:
		return introspection{}, err
	}

	t.SessionID = s.Subjects.SessionFor(c, t.SessionID)
	return introspected(t, s.Subjects.SubjectFor(c, t.SubscriberID), audience), nil
}

// introspection is the answer of RFC 7662, section 2.2.
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

	Confirmation *idp.Confirmation `json:"cnf,omitempty"`
}

func introspected(t fabric.Token, subject, audience string) introspection {
	in := introspection{
		Active: true, Scope: strings.Join(t.Scope, " "), ClientID: t.ClientID, TokenType: oidc.BearerToken,
		Expires:  t.ExpiresAt.Unix(),
		IssuedAt: t.IssuedAt.Unix(), Subject: subject, Audience: audience, Issuer: t.Issuer, ID: t.ID,
		SessionID: t.SessionID,
	}
	if t.Fingerprint != "" {
		in.TokenType, in.Confirmation = dpopType, &idp.Confirmation{JKT: t.Fingerprint}
	}
	if in.Subject == "" {
		in.Subject = t.ClientID
	}
	return in
}
