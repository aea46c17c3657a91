package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// credentials authenticates requests before their handlers are called.
type credentials struct {
	fabric *fabric.Fabric
	access func(ctx context.Context, raw string) (fabric.Token, error) // see Config
	admit  func(r *http.Request, who string) error                     // see Config

	confirm func(r *http.Request, raw string, t fabric.Token) error // see Config
}

// These are the challenges of a 401 response (RFC 9110, section 11.6.1).
const (
	basicChallenge  = `Basic realm="selvage"`
	bearerChallenge = `Bearer`
)

// anyScope lists the scopes for handlers under project, which require at least one of them.
// Handlers under manager require Management instead.
var anyScope = []fabric.Scope{fabric.Voice, fabric.Messaging, fabric.Fax, fabric.Video}

// project requires an API key or a service token with one of anyScope. API keys are sent over HTTP
// Basic.
func (c *credentials) project(h handler[fabric.Issuer]) web.Handler { return c.scoped(h, anyScope...) }

// manager requires the same credentials as project, but with the scope Management.
func (c *credentials) manager(h handler[fabric.Issuer]) web.Handler {
	return c.scoped(h, fabric.Management)
}

func (c *credentials) scoped(h handler[fabric.Issuer], scopes ...fabric.Scope) web.Handler {
	return challenging(basicChallenge, func(w http.ResponseWriter, r *http.Request) error {
		by, err := c.issuer(r, scopes)
		if err != nil {
			return err
		}
		if err := c.admit(r, cmp.Or(by.KeyID, by.ClientID)); err != nil {
			return err
		}
		return h(w, r, by)
	})
}

// challenging adds the challenge to every 401 response. This includes responses to valid
// credentials whose owner no longer exists.
func challenging(challenge string, h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := h(w, r)
		if errors.Is(err, problem.Unauthenticated) {
			w.Header().Set("WWW-Authenticate", dpop.Challenge(r, err, web.Describe(challenge, err)))
		}
		return err
	}
}

// issuer returns the sender of a request, who must have one of the scopes.
func (c *credentials) issuer(r *http.Request, scopes []fabric.Scope) (fabric.Issuer, error) {
	if projectID, secret, ok := web.Basic(r); ok {
		return c.keyIssuer(r, projectID, secret, scopes)
	}
	if raw, ok := web.AccessToken(r); ok {
		return c.serviceIssuer(r, raw, scopes)
	}
	return fabric.Issuer{}, problem.NoCredentials().Telling("neither an API key nor a token was sent")
}

// keyIssuer returns the issuer for an API key, which must have one of the scopes.
func (c *credentials) keyIssuer(
	r *http.Request, projectID, secret string, scopes []fabric.Scope,
) (fabric.Issuer, error) {
	k, err := c.fabric.APIKeys.Authenticate(r.Context(), projectID, secret)
	if err != nil {
		return fabric.Issuer{}, err
	}
	audit.As(r.Context(), audit.APIKey, k.ID)
	if err := c.allowed(r, k.ProjectID, k.ID, k.Has(scopes...), scopes); err != nil {
		return fabric.Issuer{}, err
	}
	return fabric.Issuer{ProjectID: k.ProjectID, KeyID: k.ID, Rights: k.Rights(secret)}, nil
}

// serviceIssuer returns the issuer for a service token, which must have one of the scopes. The token is
// either sealed or a JWT, and access opens both.
func (c *credentials) serviceIssuer(r *http.Request, raw string, scopes []fabric.Scope) (fabric.Issuer, error) {
	since := c.fabric.Tokens.Known()
	t, err := c.access(r.Context(), raw)
	if err != nil {
		return fabric.Issuer{}, err
	}
	if err := c.confirm(r, raw, t); err != nil {
		return fabric.Issuer{}, err
	}

	audit.As(r.Context(), audit.Client, t.ClientID)
	sender := cmp.Or(t.ClientID, t.SubscriberID)
	hasScope := t.Kind == fabric.Service && t.Has(scopes...)
	if err := c.allowed(r, t.ProjectID, sender, hasScope, scopes); err != nil {
		return fabric.Issuer{}, err
	}
	return fabric.Issuer{ProjectID: t.ProjectID, ClientID: t.ClientID, Rights: t.Rights(since)}, nil
}

// allowed returns problem.Unauthenticated unless ok is true. If the request attempted a change that
// requires Management, admit counts the attempt, and the audit trail records it.
func (c *credentials) allowed(r *http.Request, projectID, who string, ok bool, scopes []fabric.Scope) error {
	if ok {
		return nil
	}
	if slices.Contains(scopes, fabric.Management) && r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := c.admit(r, who); err != nil {
			return err
		}
		if err := c.fabric.Audit.RefuseManagement(r.Context(), projectID, who, r.Pattern); err != nil {
			return err
		}
	}
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return problem.NoCredentials().Telling("the credentials lack the scope " + strings.Join(names, " or "))
}

// refused handles an error from package fabric. If err refuses a change that requires Management,
// the attempt is counted and recorded; see allowed.
func (c *credentials) refused(r *http.Request, by fabric.Issuer, err error) error {
	if !errors.Is(err, problem.Unauthenticated) {
		return err
	}
	return c.allowed(r, by.ProjectID, cmp.Or(by.KeyID, by.ClientID), false, []fabric.Scope{fabric.Management})
}

// projectOrSAT accepts a SAT and the credentials that project accepts.
func (c *credentials) projectOrSAT(h handler[fabric.Issuer]) web.Handler {
	forProject := c.project(h)
	return challenging(basicChallenge, func(w http.ResponseWriter, r *http.Request) error {
		if raw, ok := web.AccessToken(r); ok {
			t, err := c.fabric.Tokens.Open(r.Context(), raw, fabric.SAT)
			if err == nil {
				if err := c.confirm(r, raw, t); err != nil {
					return err
				}
				audit.As(r.Context(), audit.Subscriber, t.SubscriberID)
				if err := c.admit(r, t.Caller()); err != nil {
					return err
				}
				return h(w, r, fabric.Issuer{ProjectID: t.ProjectID, SAT: &t})
			}
		}
		return forProject(w, r)
	})
}

// bearer requires a fabric token of one of the given kinds.
func (c *credentials) bearer(h handler[fabric.Token], kinds ...fabric.TokenKind) web.Handler {
	return challenging(bearerChallenge, func(w http.ResponseWriter, r *http.Request) error {
		raw, ok := web.AccessToken(r)
		if !ok {
			if _, _, isKey := web.Basic(r); isKey {
				return problem.NoCredentials().Telling("an API key was sent, but this operation needs a token")
			}
			return problem.NoCredentials().Telling("no token was sent")
		}

		t, err := c.fabric.Tokens.Open(r.Context(), raw, kinds...)
		if err == nil {
			err = c.confirm(r, raw, t)
		}
		if err != nil {
			return err
		}

		if err := c.admit(r, t.Caller()); err != nil {
			return err
		}
		audit.As(r.Context(), audit.Subscriber, t.SubscriberID)
		return h(w, r, t)
	})
}

// unknown serves all unknown paths. It responds with 404 to callers with valid credentials and with
// 401 to all others.
func (c *credentials) unknown(w http.ResponseWriter, r *http.Request) error {
	noSuch := problem.NoSuch("path")
	if raw, ok := web.AccessToken(r); ok {
		t, err := c.fabric.Tokens.Open(r.Context(), raw, fabric.SAT, fabric.Guest, fabric.Invite)
		if err == nil && c.confirm(r, raw, t) == nil {
			return noSuch
		}
	}
	return c.project(func(http.ResponseWriter, *http.Request, fabric.Issuer) error { return noSuch })(w, r)
}
