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

// A Code is the content of an authorization code. It is also the content of a device code whose
// device was signed in.
type Code struct {
	Request   AuthRequest `json:"request"`
	ProjectID string      `json:"project_id"`
	SessionID string      `json:"sid"`
	SubjectID string      `json:"sub"`
	AuthTime  time.Time   `json:"auth_time"`
	AMR       []string    `json:"amr"`
}

// Codes issues and redeems authorization codes.
type Codes struct {
	*core
	store  GrantStore
	grants *Grants
	tokens *Tokens
	sealer *keys.Sealer
}

// A RedeemedCode records that a code was redeemed, so that it cannot be redeemed again. It is kept
// until the code would have expired and a replay can no longer do harm.
type RedeemedCode struct {
	Hash, GrantID, ClientID string
	Expires                 time.Time
	Rights                  []string // rights that need consent, or nil; they are not stored
	Uses                    []Use    // uses to store in the same transaction, before the code
}

func invalidGrant(why string) error { return oauth("invalid_grant", "%s", why) }

func challengeOf(verifier string) string {
	return base64.RawURLEncoding.EncodeToString(digest(verifier))
}

func digest(s string) []byte {
	h := sha256.Sum256([]byte(s))
	return h[:]
}

func codeOf(a AuthRequest, s Login) Code {
	return Code{
		Request:   a,
		ProjectID: s.ProjectID,
		SessionID: s.ID,
		SubjectID: s.SubscriberID,
		AuthTime:  s.AuthTime,
		AMR:       s.AMR,
	}
}

// An authorization code contains its data, sealed like a fabric token, with a key for this purpose
// alone. Issuing a code therefore writes nothing. Redeeming a code writes one row, so that it can
// be redeemed only once. The ID in the code is the key of the row. Decoders may accept several
// spellings of a code, for example with a line break, but all of them lead to the same row.
//
// Codes are parts of URLs. If the sealed code would be too long, the session store holds the data
// instead, under the digest of a random code.

// maxSealed is the maximum length of a sealed code.
const maxSealed = 2 << 10

// A sealedCode is the content of a sealed code.
type sealedCode struct {
	ID      string    `json:"id"`
	Expires time.Time `json:"exp"`
	Code
}

func codeKey(code string) session.Key { return session.Key{Kind: "code", ID: session.Digest(code)} }

// Issue returns an authorization code for a request that the login s answers.
func (cs *Codes) Issue(ctx context.Context, c Client, a AuthRequest, s Login) (string, error) {
	life := cs.Lifetimes().Code
	if c.Profile == FAPI2 {
		life = min(life, maxFAPICode)
	}
	code, err := cs.write(ctx, codeOf(a.redeemable(), s), life)
	if err != nil {
		return "", fmt.Errorf("writing code: %w", err)
	}
	cs.Observe("code")
	return code, nil
}

// write returns a code with this content: a sealed one, or a random one if the sealed code would be
// too long.
func (cs *Codes) write(ctx context.Context, content Code, life time.Duration) (string, error) {
	sealed, err := cs.sealer.Seal(&sealedCode{ID: rand.Text(), Expires: cs.Now().Add(life), Code: content})
	if err != nil {
		return "", err
	}
	if len(sealed) > maxSealed {
		return cs.keep(ctx, content, life)
	}
	return sealed, nil
}

// keep stores the content of a code in the session store, and returns a random code for it.
func (cs *Codes) keep(ctx context.Context, c Code, life time.Duration) (code string, err error) {
	value, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	code = randomToken()
	return code, cs.Sessions.Put(ctx, codeKey(code), value, life)
}

// redeemable returns a copy of a with only the fields that are needed to redeem its code.
func (a AuthRequest) redeemable() AuthRequest {
	return AuthRequest{
		ClientID:    a.ClientID,
		RedirectURI: a.RedirectURI,
		Nonce:       a.Nonce,
		Challenge:   a.Challenge,
		JKT:         a.JKT,
		Scope:       a.Scope,
		Claims:      a.Claims,
		Resources:   a.Resources,
	}
}

// find reads a code issued to this client. It returns the hash that identifies the code's row. An
// expired code may be a replay, in which case find revokes the grant of the first redemption.
func (cs *Codes) find(ctx context.Context, c Client, r Redemption) (code Code, hash string, err error) {
	var sealed sealedCode
	switch {
	case !strings.Contains(r.Code, ".."):
		hash = session.Digest(r.Code)
		code, err = cs.load(ctx, r.Code)
	case !cs.sealer.Open(r.Code, &sealed):
		return code, "", unknown("the code is not valid or has expired")
	default:
		code, hash = sealed.Code, session.Digest(sealed.ID)
		if !cs.Now().Before(sealed.Expires) {
			err = problem.NoSuch("code")
		}
	}

	if errors.Is(err, problem.NotFound) {
		return Code{}, hash, cs.revokeReplayed(ctx, c, hash, r.Uses)
	}
	if err != nil {
		return Code{}, hash, err
	}
	if code.Request.ClientID != c.ID {
		return Code{}, hash, invalidGrant("the code is not valid")
	}
	return code, hash, nil
}

// load reads a code's content from the session store, where keep has stored it.
func (cs *Codes) load(ctx context.Context, code string) (c Code, err error) {
	if len(code) > 128 {
		return c, unknown("the code is not valid")
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

// A Redemption is a request to exchange a code for tokens (RFC 6749, section 4.1.3).
type Redemption struct {
	Code        string
	RedirectURI string   // "" if the request omits it
	Verifier    string   // RFC 7636, section 4.5
	Resources   []string // RFC 8707, section 2.2
	Binding     string   // what the client proved to have; see package cnf
	Uses        *Uses    // uses to store with the grant, or before another grant is revoked
}

// Redeem exchanges a code for tokens. For an invalid code, redirect URI or verifier it returns
// invalid_grant. For a resource that was not granted it returns invalid_target, and for a
// missing key or certificate invalid_dpop_proof or invalid_request. If the code was redeemed before, Redeem
// also revokes the grant of the first redemption.
func (cs *Codes) Redeem(ctx context.Context, c Client, r Redemption) (TokenSet, error) {
	code, hash, err := cs.find(ctx, c, r)
	if err != nil {
		return TokenSet{}, err
	}

	if err := checkRedemption(c, code, r); err != nil {
		return TokenSet{}, cs.refuse(ctx, c, hash, r.Uses, err)
	}
	audience, err := cs.grantedAudience(c, code.Request.Resources, r.Resources)
	if err != nil {
		return TokenSet{}, cs.refuse(ctx, c, hash, r.Uses, err)
	}
	if err := c.checkBinding(r.Binding); err != nil {
		return TokenSet{}, cs.refuse(ctx, c, hash, r.Uses, err)
	}

	expires := cs.Now().Add(cs.Lifetimes().Code + remembered)
	set, err := cs.exchange(ctx, c, code, audience, r, RedeemedCode{Hash: hash, Expires: expires})
	if err != nil {
		return TokenSet{}, err
	}
	cs.Observe("token_" + GrantCode)
	return set, nil
}

// exchange returns the tokens for a code or a device code. It succeeds only once. The access token is
// for audience. exchange reads only the Binding and the Uses of r.
func (cs *Codes) exchange(ctx context.Context, c Client, code Code, audience string, r Redemption,
	redeemed RedeemedCode) (TokenSet, error) {
	code.Request.Scope = c.only(code.Request.Scope)
	g, refresh, err := cs.grants.create(c, code)
	if err != nil {
		return TokenSet{}, err
	}

	g.Binding = r.Binding

	sub, err := cs.grants.findHolder(ctx, g)
	if err != nil {
		return TokenSet{}, err
	}

	// Writing the row fails if the code was redeemed before. It also fails if the login, the
	// consent, the client or the subscriber no longer exists.
	redeemed.GrantID, redeemed.ClientID, redeemed.Rights = g.ID, c.ID, c.rightsToConsent(code.Request)
	err = r.Uses.storeWith(func(due []Use) error {
		redeemed.Uses = due
		return cs.store.RedeemCode(ctx, redeemed, g)
	})
	if errors.Is(err, problem.Conflict) {
		return TokenSet{}, cs.revokeReplayed(ctx, c, redeemed.Hash, r.Uses)
	} else if errors.Is(err, problem.NotFound) {
		return TokenSet{}, errDead
	} else if err != nil {
		return TokenSet{}, err
	}

	return cs.tokens.mint(c, g, sub, minting{
		scope:    g.Scope,
		audience: audience,
		nonce:    code.Request.Nonce,
		refresh:  refresh,
		idToken:  true,
		binding:  r.Binding,
	})
}

// checkRedemption applies the rules of the client's profile for redirect_uri and code_verifier.
func checkRedemption(c Client, code Code, r Redemption) error {
	a := code.Request
	if r.RedirectURI == "" && (a.Challenge == "" || c.PKCEOptional) {
		return invalidGrant("redirect_uri is missing")
	}
	if r.RedirectURI != "" && r.RedirectURI != a.RedirectURI {
		return invalidGrant("redirect_uri is not the one of the authorization request")
	}

	switch {
	case a.JKT != "" && a.JKT != r.Binding:
		return invalidGrant("the code is bound to another DPoP key")
	case a.Challenge == "" && r.Verifier != "":
		return invalidGrant("a code_verifier was sent, but the authorization request had no code_challenge")
	case a.Challenge == "":
		return nil
	case !isVerifier(r.Verifier):
		return invalidGrant("code_verifier is missing or not 43 to 128 unreserved characters")
	case subtle.ConstantTimeCompare([]byte(challengeOf(r.Verifier)), []byte(a.Challenge)) != 1:
		return invalidGrant("code_verifier does not match the code_challenge")
	}
	return nil
}

// refuse returns why, the error for an invalid redemption. If the code was redeemed before, refuse
// also revokes the grant of the first redemption.
func (cs *Codes) refuse(ctx context.Context, c Client, hash string, uses *Uses, why error) error {
	switch _, err := cs.store.FindRedeemedCode(ctx, hash); {
	case errors.Is(err, problem.NotFound):
		return why
	case err != nil:
		return fmt.Errorf("reading redeemed code: %w", err)
	}
	return cs.revokeReplayed(ctx, c, hash, uses)
}

// revokeReplayed returns the error for a code that was redeemed before, or that is unknown. If this
// client has redeemed the code, revokeReplayed revokes the grant of that redemption in its own
// transaction, so that the error does not roll back the revocation (RFC 9700, section 4.5; RFC
// 6749, section 4.1.2). Before that, it stores the uses of the request. This fails if the request's
// assertion or proof was used before. A thief who repeats the whole request of a client therefore
// revokes nothing.
func (cs *Codes) revokeReplayed(ctx context.Context, c Client, hash string, uses *Uses) error {
	first, err := cs.store.FindRedeemedCode(ctx, hash)
	if errors.Is(err, problem.NotFound) {
		return unknown("the code is not valid or has expired")
	}
	if err != nil {
		return fmt.Errorf("reading redeemed code: %w", err)
	}

	if err := uses.Store(ctx); err != nil {
		return err
	}
	if first.ClientID == c.ID {
		if err := cs.grants.Revoke(ctx, first.GrantID); err != nil {
			return err
		}
	}
	return invalidGrant("the code was redeemed before; its tokens are revoked")
}
