package idp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

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

// IssueCode returns the authorization code of a request that a login answered.
func (p *Provider) IssueCode(ctx context.Context, a AuthRequest, s Session) (string, error) {
	life := p.Lifetimes().Code
	code := codeOf(a.redeemable(), s)
	sealed, err := p.codes.Seal(sealedCode{ID: rand.Text(), Expires: p.Now().Add(life), Code: code})
	if err == nil && len(sealed) > maxSealed {
		sealed, err = p.keepCode(ctx, code, life)
	}
	if err != nil {
		return "", fmt.Errorf("writing code: %w", err)
	}
	p.Observe("code")
	return sealed, nil
}

// keepCode keeps what a code stands for in the session store.
func (p *Provider) keepCode(ctx context.Context, c Code, life time.Duration) (code string, err error) {
	value, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	code = randomToken()
	return code, p.Sessions.Put(ctx, codeKey(code), value, life)
}

// redeemable is what of a request the redemption of its code asks for.
func (a AuthRequest) redeemable() AuthRequest {
	return AuthRequest{
		ClientID: a.ClientID, RedirectURI: a.RedirectURI, Nonce: a.Nonce, Challenge: a.Challenge,
		Scope: a.Scope, Claims: a.Claims, Resources: a.Resources,
	}
}

// findCode reads a code of this client, and gives the hash by which it is redeemed once.
// One that is over may be a replay, which ends what it gave.
func (p *Provider) findCode(ctx context.Context, c Client, r Redemption) (code Code, hash string, err error) {
	var sealed sealedCode
	switch {
	case !strings.Contains(r.Code, ".."):
		hash = session.Digest(r.Code)
		code, err = p.keptCode(ctx, r.Code)
	case !p.codes.Open(r.Code, &sealed):
		return code, "", invalidGrant("the code is not valid or has expired")
	default:
		code, hash = sealed.Code, session.Digest(sealed.ID)
		if !p.Now().Before(sealed.Expires) {
			err = problem.NoSuch("code")
		}
	}
	if errors.Is(err, problem.NotFound) {
		return code, hash, p.replayed(ctx, c, hash)
	}
	if err == nil && code.Request.ClientID != c.ID {
		err = invalidGrant("the code is not valid")
	}
	return code, hash, err
}

// keptCode reads what keepCode kept.
func (p *Provider) keptCode(ctx context.Context, code string) (c Code, err error) {
	if len(code) > 128 {
		return c, invalidGrant("the code is not valid")
	}
	value, err := p.Sessions.Get(ctx, codeKey(code))
	if err != nil {
		return c, fmt.Errorf("reading code: %w", err)
	}
	if err := json.Unmarshal(value, &c); err != nil {
		return c, fmt.Errorf("reading code: %w", err)
	}
	return c, nil
}
