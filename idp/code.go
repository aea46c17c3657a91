package idp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/keys"
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

// Codes are authorization codes, from their issue to their redemption.
type Codes struct {
	*core
	store  GrantStore
	grants *Grants
	tokens *Tokens
	sealer *keys.Sealer
}

// A RedeemedCode is the row that decides that a code is redeemed once, kept until
// the code would have expired and a replay could still harm.
type RedeemedCode struct {
	Hash, GrantID, ClientID string
	Rights                  []string // not kept: what the subscriber must agree to, now; nil where nobody is asked
	Expires                 time.Time
}

func invalidGrant(why string) error      { return oauth("invalid_grant", "%s", why) }
func challengeOf(verifier string) string { return base64.RawURLEncoding.EncodeToString(sum(verifier)) }

func sum(s string) []byte {
	h := sha256.Sum256([]byte(s))
	return h[:]
}

func codeOf(a AuthRequest, s Login) Code {
	return Code{Request: a, ProjectID: s.ProjectID, SessionID: s.ID, SubjectID: s.SubscriberID,
		AuthTime: s.AuthTime, AMR: s.AMR}
}

// An authorization code says what it stands for, to us alone: it is sealed, as tokens of
// the fabric are, under a key that nothing else has. So nothing is written where it is
// issued, and nothing read where it is redeemed, but the row that decides that this
// happens once. It goes by the id in the code, not by how the code is written: one that
// is written in another way, such as with a line end that decoders pass over, is the same.
//
// Codes are parts of URLs. What would make a long one lies in the session store instead,
// under the digest of a random code.

// maxSealed bounds codes that are sealed.
const maxSealed = 2 << 10

// A sealedCode is what is in a code.
type sealedCode struct {
	ID      string    `json:"id"`
	Expires time.Time `json:"exp"`
	Code
}

func codeKey(code string) session.Key { return session.Key{Kind: "code", ID: session.Digest(code)} }

// Issue returns the authorization code of a request that a login answered.
func (cs *Codes) Issue(ctx context.Context, a AuthRequest, s Login) (string, error) {
	life := cs.Lifetimes().Code
	code := codeOf(a.redeemable(), s)
	sealed, err := cs.sealer.Seal(sealedCode{ID: rand.Text(), Expires: cs.Now().Add(life), Code: code})
	if err == nil && len(sealed) > maxSealed {
		sealed, err = cs.keep(ctx, code, life)
	}
	if err != nil {
		return "", fmt.Errorf("writing code: %w", err)
	}
	cs.Observe("code")
	return sealed, nil
}

// keep keeps what a code stands for in the session store.
func (cs *Codes) keep(ctx context.Context, c Code, life time.Duration) (code string, err error) {
	value, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	code = randomToken()
	return code, cs.Sessions.Put(ctx, codeKey(code), value, life)
}

// redeemable is what of a request the redemption of its code asks for.
func (a AuthRequest) redeemable() AuthRequest {
	return AuthRequest{
		ClientID: a.ClientID, RedirectURI: a.RedirectURI, Nonce: a.Nonce, Challenge: a.Challenge,
		Scope: a.Scope, Claims: a.Claims, Resources: a.Resources,
	}
}

// find reads a code of this client, and gives the hash by which it is redeemed once.
// One that is over may be a replay, which ends what it gave.
func (cs *Codes) find(ctx context.Context, c Client, r Redemption) (code Code, hash string, err error) {
	var sealed sealedCode
	switch {
	case !strings.Contains(r.Code, ".."):
		hash = session.Digest(r.Code)
		code, err = cs.load(ctx, r.Code)
	case !cs.sealer.Open(r.Code, &sealed):
		return code, "", invalidGrant("the code is not valid or has expired")
	default:
		code, hash = sealed.Code, session.Digest(sealed.ID)
		if !cs.Now().Before(sealed.Expires) {
			err = problem.NoSuch("code")
		}
	}
	if errors.Is(err, problem.NotFound) {
		return code, hash, cs.revokeReplayed(ctx, c, hash)
	}
	if err == nil && code.Request.ClientID != c.ID {
		err = invalidGrant("the code is not valid")
	}
	return code, hash, err
}

// load reads what keep kept.
func (cs *Codes) load(ctx context.Context, code string) (c Code, err error) {
	if len(code) > 128 {
		return c, invalidGrant("the code is not valid")
	}
	value, err := cs.Sessions.Get(ctx, codeKey(code))
	if err != nil {
		return c, fmt.Errorf("reading code: %w", err)
	}
	if err := json.Unmarshal(value, &c); err != nil {
		return c, fmt.Errorf("reading code: %w", err)
	}
	return c, nil
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
func (cs *Codes) Redeem(ctx context.Context, c Client, r Redemption) (TokenSet, error) {
	code, hash, err := cs.find(ctx, c, r)
	if err != nil {
		return TokenSet{}, err
	}
	audience, err := cs.grantedAudience(c, code.Request.Resources, r.Resources)
	if bad := checkRedemption(c, code, r); bad != nil {
		err = bad
	}
	if err != nil {
		return TokenSet{}, cs.refuse(ctx, c, hash, err)
	}
	set, err := cs.exchange(ctx, c, code, audience,
		RedeemedCode{Hash: hash, Expires: cs.Now().Add(cs.Lifetimes().Code + remembered)})
	if err == nil {
		cs.Observe("token_" + GrantCode)
	}
	return set, err
}

// exchange makes the tokens of a code, once, the access token for an audience.
func (cs *Codes) exchange(ctx context.Context, c Client, code Code, audience string, redeemed RedeemedCode) (TokenSet, error) {
	code.Request.Scope = c.only(code.Request.Scope)
	g, refresh, err := cs.grants.create(c, code)
	if err != nil {
		return TokenSet{}, err
	}
	sub, err := cs.grants.findHolder(ctx, g)
	if err != nil {
		return TokenSet{}, err
	}
	redeemed.GrantID, redeemed.ClientID, redeemed.Rights = g.ID, c.ID, c.needed(code.Request)
	if err := cs.store.RedeemCode(ctx, redeemed, g); errors.Is(err, problem.Conflict) {
		return TokenSet{}, cs.revokeReplayed(ctx, c, redeemed.Hash)
	} else if errors.Is(err, problem.NotFound) {
		return TokenSet{}, errDead
	} else if err != nil {
		return TokenSet{}, err
	}
	return cs.tokens.mint(c, g, sub, minting{scope: g.Scope, audience: audience, nonce: code.Request.Nonce,
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

// refuse answers a redemption that is not right: one of a code that was redeemed before
// ends what that gave all the same.
func (cs *Codes) refuse(ctx context.Context, c Client, hash string, why error) error {
	switch _, err := cs.store.FindRedeemedCode(ctx, hash); {
	case errors.Is(err, problem.NotFound):
		return why
	case err != nil:
		return fmt.Errorf("reading redeemed code: %w", err)
	}
	return cs.revokeReplayed(ctx, c, hash)
}

// revokeReplayed answers a code that was redeemed before: what it gave is revoked, in a
// transaction of its own, so that the error does not undo it (RFC 9700, section
// 4.5; RFC 6749, section 4.1.2).
func (cs *Codes) revokeReplayed(ctx context.Context, c Client, hash string) error {
	first, err := cs.store.FindRedeemedCode(ctx, hash)
	if errors.Is(err, problem.NotFound) {
		return invalidGrant("the code is not valid or has expired")
	}
	if err != nil {
		return fmt.Errorf("reading redeemed code: %w", err)
	}
	if first.ClientID == c.ID {
		if err := cs.grants.Revoke(ctx, first.GrantID); err != nil {
			return err
		}
	}
	return invalidGrant("the code was redeemed before; what it gave is revoked")
}
