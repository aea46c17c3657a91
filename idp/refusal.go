package idp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
)

// Why a login is refused, for operators alone: who tries to log in is told none of it.
const (
	refusedUnknown  = "unknown account"
	refusedPassword = "wrong password"
	refusedDisabled = "disabled"
	refusedChanged  = "changed meanwhile"
)

// refused notes that a login did not succeed, and why, and gives the answer to who tried.
// Where it cannot be noted, the answer is that error: what is not noted is not decided. A subscriber is named by its id. An
// e-mail that is nobody's may be a typing error, or a password in the wrong field: it is
// noted so that the same one is found again, and its owner would know it.
//
// What is done takes as long for accounts that exist as for those that do not.
func (p *Provider) refused(ctx context.Context, projectID, email string, sub fabric.Subscriber, reason string) error {
	email = fabric.NormalizeEmail(email)
	target := audit.Target{Kind: "account", ID: p.accountDigest(projectID, email)}
	if sub.ID != "" {
		target = audit.Target{Kind: "subscriber", ID: sub.ID}
	}
	err := p.Store.Record(ctx, audit.Of("login", projectID, target.Kind, target.ID).Refuse(reason).With("account", masked(email)))
	if err != nil {
		return fmt.Errorf("noting that a login is refused: %w", err)
	}
	p.Observe("login_refused")
	return errWrong
}

// accountDigest gives the name of an account that does not say what it is called.
func (p *Provider) accountDigest(projectID, email string) string {
	key := p.Ring.Derive("audit accounts")
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte(projectID + "\x00" + email))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// masked gives the first character of an e-mail and its domain.
func masked(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at <= 0 {
		return "***"
	}
	_, size := utf8.DecodeRuneInString(email)
	return email[:size] + "***" + email[at:]
}
