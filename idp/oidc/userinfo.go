package oidc

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/zitadel/oidc/v3/pkg/oidc"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// userinfo serves the userinfo endpoint.
type userinfo struct{ *core }

// errScope is the error for a valid token that has no subscriber or lacks the scope openid.
var errScope = &problem.Error{
	Kind:    problem.Forbidden,
	Code:    "insufficient_scope",
	Message: "the access token does not have the scope openid",
}

// serve handles GET and POST /oauth/userinfo (OpenID Connect Core, section 5.3).
func (u *userinfo) serve(w http.ResponseWriter, r *http.Request) error {
	web.NoStore(w)
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		return web.JSON(w, http.StatusMethodNotAllowed, oidc.ErrInvalidRequest().WithDescription("use GET or POST"))
	}

	raw, err := bearer(w, r)
	if err != nil {
		return err
	}
	t, err := u.Tokens.OpenForUserinfo(r.Context(), raw)
	if err != nil {
		return err
	}
	if err := u.proofs.Confirm(r, raw, t.Binding); err != nil {
		return err
	}
	if t.SubscriberID == "" || !slices.Contains(t.Scope, "openid") {
		return errScope
	}

	sub, err := u.Tokens.Subscriber(r.Context(), t)
	if errors.Is(err, problem.NotFound) {
		return problem.NoCredentials().Because("the subscriber was deleted")
	}
	if err != nil {
		return err
	}

	c, err := u.Tokens.Client(r.Context(), t)
	if err != nil {
		return err
	}

	requested := slices.Concat(idp.ClaimsOf(t.Scope...), t.Claims)
	claims := userClaims{Subject: u.Subjects.SubjectFor(c, sub.ID), Person: idp.PersonOf(sub, requested)}
	if c.UserinfoAlg != "" {
		return u.serveSigned(w, c, claims)
	}
	return web.JSON(w, http.StatusOK, claims)
}

// serveSigned sends the claims as a JWT (OpenID Connect Core, section 5.3.2). The JWT has no exp.
// It therefore cannot be used as an ID token, although the same keys sign both.
func (u *userinfo) serveSigned(w http.ResponseWriter, c idp.Client, claims userClaims) error {
	token, err := u.Ring.Sign(c.UserinfoAlg, "JWT", struct {
		Issuer   string `json:"iss"`
		Audience string `json:"aud"`
		userClaims
	}{Issuer: u.Issuer, Audience: c.ID, userClaims: claims})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jwt")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, token) // the client may have disconnected
	return nil
}

// bearer returns the token in the header or in a form (RFC 6750, sections 2.1 and 2.2). It ignores
// tokens in the query.
func bearer(w http.ResponseWriter, r *http.Request) (string, error) {
	if raw, ok := web.AccessToken(r); ok {
		return raw, nil
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if r.Method != http.MethodPost || len(r.Header.Values("Authorization")) > 0 || kind != formType {
		return "", problem.NoCredentials().Telling("no token was sent")
	}
	form, err := postForm(w, r)
	if err != nil || form.Get("access_token") == "" {
		return "", problem.NoCredentials().Telling("no token was sent")
	}
	return form.Get("access_token"), nil
}

// userClaims are the claims in a userinfo response.
type userClaims struct {
	Subject string `json:"sub"`
	idp.Person
}

// writeError writes an error response. If the token was refused, the response has a Bearer challenge
// (RFC 6750, section 3).
func (u *userinfo) writeError(w http.ResponseWriter, r *http.Request, err error) {
	web.Refuse(r.Context(), err)
	p := problem.First(err)
	status := http.StatusInternalServerError
	body := oidc.ErrServerError().WithDescription("internal error")

	switch {
	case p == nil:
		web.LogInternal(r, u.log, err)
	case p.Kind == problem.Unavailable:
		web.LogInternal(r, u.log, err)
		status = http.StatusServiceUnavailable
		body = &oidc.Error{ErrorType: "temporarily_unavailable", Description: p.Message}
		web.RetryAfter(w, p)
	case p.Kind == problem.Forbidden:
		w.Header().Set("WWW-Authenticate", `Bearer realm="selvage", error="insufficient_scope", scope="openid"`)
		status = http.StatusForbidden
		body = &oidc.Error{ErrorType: "insufficient_scope", Description: p.Message}
	default:
		challenge := `Bearer realm="selvage"`
		if len(r.Header.Values("Authorization")) > 0 || r.PostForm.Get("access_token") != "" {
			challenge = web.Describe(challenge+`, error="invalid_token"`, err)
		}
		w.Header().Set("WWW-Authenticate", dpop.Challenge(r, err, challenge))
		status = http.StatusUnauthorized
		body = &oidc.Error{
			ErrorType:   "invalid_token",
			Description: "the access token is missing, wrong, expired or revoked",
		}
	}

	if err := web.JSON(w, status, body); err != nil {
		web.LogInternal(r, u.log, err)
	}
}
