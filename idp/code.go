package idp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A Code is what an authorization code stands for.
type Code struct {
	Request   AuthRequest `json:"request"`
	ProjectID string      `json:"project_id"`
	SessionID string      `json:"sid"`
	SubjectID string      `json:"sub"`
	AuthTime  time.Time   `json:"auth_time"`
	AMR       []string    `json:"amr"`
}

// A RedeemedCode is the row that decides that a code is redeemed once, kept until
// the code would have expired and a replay could still harm.
type RedeemedCode struct {
	Hash, GrantID, ClientID string
	Rights                  []string // not kept: what the subscriber must agree to, now; nil where nobody is asked
	Expires                 time.Time
}

func requestKey(id string) session.Key   { return session.Key{Kind: "request", ID: session.Digest(id)} }
func invalidGrant(why string) error      { return oauth("invalid_grant", "%s", why) }
func challengeOf(verifier string) string { return base64.RawURLEncoding.EncodeToString(sum(verifier)) }

func sum(s string) []byte {
	h := sha256.Sum256([]byte(s))
	return h[:]
}

// Suspend keeps a request until its login is done.
func (p *Provider) Suspend(ctx context.Context, a AuthRequest) error {
	value, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("writing authorization request: %w", err)
	}
	return p.Sessions.Put(ctx, requestKey(a.ID), value, p.Lifetimes().Request)
}

// Resume finds a suspended request, for the browser that began it alone: at another it
// is problem.Forbidden.
func (p *Provider) Resume(ctx context.Context, id, browser string) (a AuthRequest, c Client, err error) {
	if len(id) > 64 || browser == "" {
		return a, c, problem.NoSuch("authorization request")
	}
	value, err := p.Sessions.Get(ctx, requestKey(id))
	if err != nil {
		return a, c, err
	}
	if err := json.Unmarshal(value, &a); err != nil {
		return a, c, fmt.Errorf("reading authorization request: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(a.Browser), []byte(session.Digest(browser))) != 1 {
		return AuthRequest{}, c, problem.New(
			problem.Forbidden, "another_browser", "the authorization request was begun in another browser")
	}
	if a.Account != "" {
		return a, ownClient(a.Account), nil
	}
	if c, err = p.FindClient(ctx, a.ClientID); err != nil {
		return a, c, err
	}
	if !c.mayEnd(a) { // not any more
		return AuthRequest{}, c, problem.NoSuch("authorization request")
	}
	return a, c, nil
}

// Drop forgets a suspended request: of many callers one gets no error.
func (p *Provider) Drop(ctx context.Context, a AuthRequest) error {
	_, err := p.Sessions.Take(ctx, requestKey(a.ID))
	return err
}

// mayEnd reports whether a request of the client may still be answered: by a
// redirect, or by a device that asks for what came of it.
func (c Client) mayEnd(a AuthRequest) bool {
	if a.Device != "" {
		return c.May(GrantDevice)
	}
	return c.AllowsRedirect(a.RedirectURI)
}

func codeOf(a AuthRequest, s Session) Code {
	return Code{Request: a, ProjectID: s.ProjectID, SessionID: s.ID, SubjectID: s.SubscriberID,
		AuthTime: s.AuthTime, AMR: s.AMR}
}

// A Redemption is a request for the tokens of a code (RFC 6749, section 4.1.3).
type Redemption struct {
	Code        string
	RedirectURI string   // "" where it was left out
	Verifier    string   // RFC 7636, section 4.5
	Resources   []string // RFC 8707, section 2.2
}

// Redeem makes a code's tokens. Every failure is invalid_grant; presenting a code
// again also ends what it gave the first time.
func (p *Provider) Redeem(ctx context.Context, c Client, r Redemption) (TokenSet, error) {
	code, hash, err := p.findCode(ctx, c, r)
	if err != nil {
		return TokenSet{}, err
	}
	audience, err := p.audienceOf(c, code.Request.Resources, r.Resources)
	if bad := checkRedemption(c, code, r); bad != nil {
		err = bad
	}
	if err != nil {
		return TokenSet{}, p.misused(ctx, c, hash, err)
	}
	set, err := p.exchange(ctx, c, code, audience,
		RedeemedCode{Hash: hash, Expires: p.Now().Add(p.Lifetimes().Code + remembered)})
	if err == nil {
		p.Observe("token_" + GrantCode)
	}
	return set, err
}

// exchange makes the tokens of a code, once, the access token for an audience.
func (p *Provider) exchange(ctx context.Context, c Client, code Code, audience string, redeemed RedeemedCode) (TokenSet, error) {
	code.Request.Scope = c.only(code.Request.Scope)
	g, refresh, err := p.newGrant(c, code)
	if err != nil {
		return TokenSet{}, err
	}
	sub, err := p.holder(ctx, g)
	if err != nil {
		return TokenSet{}, err
	}
	redeemed.GrantID, redeemed.ClientID, redeemed.Rights = g.ID, c.ID, c.needed(code.Request)
	if err := p.Store.RedeemCode(ctx, redeemed, g); errors.Is(err, problem.Conflict) {
		return TokenSet{}, p.replayed(ctx, c, redeemed.Hash)
	} else if errors.Is(err, problem.NotFound) {
		return TokenSet{}, errDead
	} else if err != nil {
		return TokenSet{}, err
	}
	return p.mint(c, g, sub, minting{scope: g.Scope, audience: audience, nonce: code.Request.Nonce,
		refresh: refresh, idToken: true})
}

// checkRedemption applies the rows "redirect_uri" and "code_challenge" of the
// client profiles.
func checkRedemption(c Client, code Code, r Redemption) error {
	a := code.Request
	if r.RedirectURI == "" && (a.Challenge == "" || c.PKCEOptional) {
		return invalidGrant("redirect_uri is missing")
	}
	if r.RedirectURI != "" && r.RedirectURI != a.RedirectURI {
		return invalidGrant("redirect_uri is not the one of the authorization request")
	}
	switch {
	case a.Challenge == "" && r.Verifier != "":
		return invalidGrant("a code_verifier was sent, but no code_challenge before it")
	case a.Challenge == "":
		return nil
	case !verifierSyntax.MatchString(r.Verifier):
		return invalidGrant("code_verifier is missing or not 43 to 128 unreserved characters")
	case subtle.ConstantTimeCompare([]byte(challengeOf(r.Verifier)), []byte(a.Challenge)) != 1:
		return invalidGrant("code_verifier does not match the code_challenge")
	}
	return nil
}

// misused answers a redemption that is not right: one of a code that was redeemed before
// ends what that gave all the same.
func (p *Provider) misused(ctx context.Context, c Client, hash string, why error) error {
	switch _, err := p.Store.FindRedeemedCode(ctx, hash); {
	case errors.Is(err, problem.NotFound):
		return why
	case err != nil:
		return fmt.Errorf("reading redeemed code: %w", err)
	}
	return p.replayed(ctx, c, hash)
}

// replayed answers a code that was redeemed before: what it gave is revoked, in a
// transaction of its own, so that the error does not undo it (RFC 9700, section
// 4.5; RFC 6749, section 4.1.2).
func (p *Provider) replayed(ctx context.Context, c Client, hash string) error {
	first, err := p.Store.FindRedeemedCode(ctx, hash)
	if errors.Is(err, problem.NotFound) {
		return invalidGrant("the code is not valid or has expired")
	}
	if err != nil {
		return fmt.Errorf("reading redeemed code: %w", err)
	}
	if first.ClientID == c.ID {
		if err := p.RevokeGrant(ctx, first.GrantID); err != nil {
			return err
		}
	}
	return invalidGrant("the code was redeemed before; what it gave is revoked")
}
