package oidc

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/zitadel/oidc/v3/pkg/oidc"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// errScope is the answer to a token that is good, but not for this.
var errScope = &problem.Error{Kind: problem.Forbidden, Code: "insufficient_scope", Message: "the access token does not have the scope openid"}

// userinfo serves GET and POST /oauth/userinfo (OpenID Connect Core, section 5.3).
func (a *API) userinfo(w http.ResponseWriter, r *http.Request) error {
	web.NoStore(w)
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		return web.JSON(w, http.StatusMethodNotAllowed, oidc.ErrInvalidRequest().WithDescription("use GET or POST"))
	}
	raw, err := bearer(w, r)
	if err != nil {
		return err
	}
	t, err := a.OpenAccessToken(r.Context(), raw)
	if err != nil {
		return err
	}
	if t.SubscriberID == "" || !slices.Contains(t.Scope, "openid") {
		return errScope
	}
	sub, err := a.Subscriber(r.Context(), t)
	if errors.Is(err, problem.NotFound) {
		return problem.NoCredentials()
	}
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, claimsOf(sub, t.Scope))
}

// bearer gives the token of the header, or of a form (RFC 6750, sections 2.1 and
// 2.2), never of the query.
func bearer(w http.ResponseWriter, r *http.Request) (string, error) {
	if raw, ok := web.Bearer(r); ok {
		return raw, nil
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if r.Method != http.MethodPost || len(r.Header.Values("Authorization")) > 0 || kind != "application/x-www-form-urlencoded" {
		return "", problem.NoCredentials()
	}
	form, err := postForm(w, r)
	if err != nil || form.Get("access_token") == "" {
		return "", problem.NoCredentials()
	}
	return form.Get("access_token"), nil
}

// claimsOf gives the claims of the scopes (OpenID Connect Core, section 5.4).
func claimsOf(s fabric.Subscriber, scopes []string) *oidc.UserInfo {
	info := &oidc.UserInfo{Subject: s.ID}
	if slices.Contains(scopes, "profile") {
		info.UserInfoProfile = oidc.UserInfoProfile{
			Name: s.DisplayName, GivenName: s.FirstName, FamilyName: s.LastName, Zoneinfo: s.TimeZone, UpdatedAt: oidc.FromTime(s.Updated),
		}
	}
	if slices.Contains(scopes, "email") {
		info.UserInfoEmail = oidc.UserInfoEmail{Email: s.Email}
	}
	return info
}

// writeBearerError tells an error of a resource that takes access tokens
// (RFC 6750, section 3).
func (a *API) writeBearerError(w http.ResponseWriter, r *http.Request, err error) {
	p := problem.First(err)
	body, status := oidc.ErrServerError().WithDescription("something went wrong here"), http.StatusInternalServerError
	switch {
	case p == nil:
		web.LogInternal(r, a.log, err)
	case p.Kind == problem.Unavailable:
		web.LogInternal(r, a.log, err)
		body, status = &oidc.Error{ErrorType: "temporarily_unavailable", Description: p.Message}, http.StatusServiceUnavailable
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(p.RetryAfter.Seconds()))))
	case p.Kind == problem.Forbidden:
		w.Header().Set("WWW-Authenticate", `Bearer realm="selvage", error="insufficient_scope", scope="openid"`)
		body, status = &oidc.Error{ErrorType: "insufficient_scope", Description: p.Message}, http.StatusForbidden
	default:
		challenge := `Bearer realm="selvage"`
		if len(r.Header.Values("Authorization")) > 0 {
			challenge += `, error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		body, status = &oidc.Error{ErrorType: "invalid_token", Description: "the access token is missing, wrong, expired or revoked"}, http.StatusUnauthorized
	}
	if err := web.JSON(w, status, body); err != nil {
		web.LogInternal(r, a.log, err)
	}
}
