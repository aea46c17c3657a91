package idp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// Why a login is refused, for operators alone: who tries to log in is told none of it.
const (
	refusedUnknown  = "unknown account"
	refusedPassword = "wrong password"
	refusedDisabled = "disabled"
	refusedChanged  = "changed meanwhile"
	refusedTooMany  = "too many tries"
)

// refused notes that a login did not succeed, and why, and gives the answer to who tried.
// Where it cannot be noted, the answer is that error: what is not noted is not decided. A subscriber is named by its id. An
// e-mail that is nobody's may be a typing error, or a password in the wrong field, with an @
// in it, too: nothing of it is noted, but a digest by which the same one is found again.
//
// What is done takes as long for accounts that exist as for those that do not.
func (p *Provider) refused(ctx context.Context, projectID, email string, sub fabric.Subscriber, reason string) error {
	if err := p.recordRefusal(ctx, projectID, email, sub, reason); err != nil {
		return err
	}
	p.Observe("login_refused")
	return errWrong
}

func (p *Provider) recordRefusal(ctx context.Context, projectID, email string, sub fabric.Subscriber, reason string, facts ...string) error {
	email = fabric.NormalizeEmail(email)
	target, account := audit.Target{Kind: "account", ID: p.accountDigest(projectID, email)}, "***"
	if sub.ID != "" {
		target, account = audit.Target{Kind: "subscriber", ID: sub.ID}, masked(email)
	}
	e := audit.Of("login", projectID, target.Kind, target.ID).Refuse(reason).With("account", account)
	if err := p.Store.Record(ctx, e.With(facts...)); err != nil {
		return fmt.Errorf("noting that a login is refused: %w", err)
	}
	return nil
}

// throttledEvery is how often it is noted that somebody may not try again yet: who floods us
// with passwords must not fill the disk.
const throttledEvery = time.Minute

// throttled notes that a count has stopped a login, unless it has just been noted of that
// one.
func (p *Provider) throttled(ctx context.Context, projectID, email string, sub fabric.Subscriber, over limit.Count) error {
	said, err := p.justSaid(ctx, string(over.Name)+" "+over.Who)
	if said || err != nil {
		return err
	}
	return p.recordRefusal(ctx, projectID, email, sub, refusedTooMany, "limit", string(over.Name))
}

// justSaid reports whether it was noted lately that a count has stopped somebody, and takes
// it for noted from now on.
func (p *Provider) justSaid(ctx context.Context, count string) (bool, error) {
	err := p.Sessions.Add(ctx, session.Key{Kind: "throttled", ID: session.Digest(count)}, nil, throttledEvery)
	if errors.Is(err, problem.Conflict) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("noting that a login is refused: %w", err)
	}
	return false, nil
}

// accountDigest returns the name of an account that does not say what it is called.
func (p *Provider) accountDigest(projectID, email string) string {
	key := p.Ring.Derive("audit accounts")
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte(projectID + "\x00" + email))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// AuditAccount returns the id by which the audit trail knows the account of an e-mail: that
// of its subscriber or, where the e-mail is nobody's, the digest that stands for it.
func (p *Provider) AuditAccount(ctx context.Context, projectID, email string) (string, error) {
	email = fabric.NormalizeEmail(email)
	sub, err := p.Subscribers.FindSubscriberByEmail(ctx, projectID, email)
	if errors.Is(err, problem.NotFound) {
		return p.accountDigest(projectID, email), nil
	}
	if err != nil {
		return "", fmt.Errorf("finding subscriber: %w", err)
	}
	return sub.ID, nil
}

// masked returns the first character of an e-mail and its domain.
func masked(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at <= 0 {
		return "***"
	}
	_, size := utf8.DecodeRuneInString(email)
	return email[:size] + "***" + email[at:]
}
