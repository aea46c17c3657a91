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

// Attempts counts attempts to log in and records those that are refused.
type Attempts struct {
	*core
	store LoginStore
	marks *DeviceMarks
}

// A try is a password that may be checked. It was counted before that, so that of
// many at once no more are checked than there may be.
type try struct {
	limits *limit.Limiter
	counts []limit.Count
}

// count counts a password for an e-mail as it was typed, whether or not there is such an
// account, and for the network that it comes from. A device that signed in to the
// account before is counted by itself alone: strangers' guesses do not keep it out.
// Where there were too many it gives problem.RateLimited, the same for any e-mail.
func (at *Attempts) count(ctx context.Context, projectID, email string, sub fabric.Subscriber, from Visitor) (try, error) {
	t := try{limits: at.Limits}
	if device := at.marks.find(from.Device, sub); device != "" {
		t.counts = []limit.Count{{Name: limit.LoginPerDevice, Who: device + " " + sub.ID}}
	} else {
		t.counts = append([]limit.Count{{Name: limit.LoginPerAccount, Who: accountOf(projectID, email)}},
			networkCounts(from)...)
	}
	over, err := at.Limits.TakeAll(ctx, t.counts)
	if errors.Is(err, problem.RateLimited) {
		at.Observe("login_throttled")
		if unsaid := at.recordThrottled(ctx, projectID, email, sub, over); unsaid != nil {
			err = unsaid
		}
	}
	return t, err
}

// networkCounts are what a guess counts for the place that it comes from.
func networkCounts(from Visitor) []limit.Count {
	return []limit.Count{{Name: limit.LoginPerNetwork, Who: from.Network},
		{Name: limit.LoginPerRange, Who: limit.Range(from.Network)}}
}

// back has the try not count: the password was right, or was not checked.
func (t try) back(ctx context.Context) { t.limits.ReturnAll(ctx, t.counts) }

// accountOf names an account for counting by the e-mail that was typed, however it was
// spelled.
func accountOf(projectID, email string) string {
	return projectID + " " + fabric.NormalizeEmail(email)
}

// Unlock has passwords tried again at a subscriber's account: those that were wrong
// count no more.
func (at *Attempts) Unlock(ctx context.Context, sub fabric.Subscriber) error {
	return at.Limits.Reset(ctx, limit.LoginPerAccount, accountOf(sub.ProjectID, sub.Email))
}

// Why a login is refused, for operators alone: who tries to log in is told none of it.
const (
	refusedUnknown  = "unknown account"
	refusedPassword = "wrong password"
	refusedDisabled = "disabled"
	refusedChanged  = "changed meanwhile"
	refusedTooMany  = "too many tries"
)

// refuse notes that a login did not succeed, and why, and gives the answer to who tried.
// Where it cannot be noted, the answer is that error: what is not noted is not decided. A subscriber is named by its id. An
// e-mail that is nobody's may be a typing error, or a password in the wrong field, with an @
// in it, too: nothing of it is noted, but a digest by which the same one is found again.
//
// What is done takes as long for accounts that exist as for those that do not.
func (at *Attempts) refuse(ctx context.Context, projectID, email string, sub fabric.Subscriber, reason string) error {
	if err := at.record(ctx, projectID, email, sub, reason); err != nil {
		return err
	}
	at.Observe("login_refused")
	return errWrong
}

func (at *Attempts) record(ctx context.Context, projectID, email string, sub fabric.Subscriber, reason string, facts ...string) error {
	email = fabric.NormalizeEmail(email)
	target, account := audit.Target{Kind: "account", ID: at.accountDigest(projectID, email)}, "***"
	if sub.ID != "" {
		target, account = audit.Target{Kind: "subscriber", ID: sub.ID}, masked(email)
	}
	e := audit.Of("login", projectID, target.Kind, target.ID).Refuse(reason).With("account", account)
	if err := at.store.Record(ctx, e.With(facts...)); err != nil {
		return fmt.Errorf("noting that a login is refused: %w", err)
	}
	return nil
}

// throttledEvery is how often it is noted that somebody may not try again yet: who floods us
// with passwords must not fill the disk.
const throttledEvery = time.Minute

// recordThrottled notes that a count has stopped a login, unless it has just been noted of that
// one.
func (at *Attempts) recordThrottled(ctx context.Context, projectID, email string, sub fabric.Subscriber, over limit.Count) error {
	said, err := at.recordedRecently(ctx, string(over.Name)+" "+over.Who)
	if said || err != nil {
		return err
	}
	return at.record(ctx, projectID, email, sub, refusedTooMany, "limit", string(over.Name))
}

// recordedRecently reports whether it was noted lately that a count has stopped somebody, and takes
// it for noted from now on.
func (at *Attempts) recordedRecently(ctx context.Context, count string) (bool, error) {
	err := at.Sessions.Add(ctx, session.Key{Kind: "throttled", ID: session.Digest(count)}, nil, throttledEvery)
	if errors.Is(err, problem.Conflict) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("noting that a login is refused: %w", err)
	}
	return false, nil
}

// accountDigest returns the name of an account that does not say what it is called.
func (at *Attempts) accountDigest(projectID, email string) string {
	key := at.Ring.Derive("audit accounts")
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte(projectID + "\x00" + email))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// AuditAccount returns the id by which the audit trail knows the account of an e-mail: that
// of its subscriber or, where the e-mail is nobody's, the digest that stands for it.
func (at *Attempts) AuditAccount(ctx context.Context, projectID, email string) (string, error) {
	email = fabric.NormalizeEmail(email)
	sub, err := at.Subscribers.FindSubscriberByEmail(ctx, projectID, email)
	if errors.Is(err, problem.NotFound) {
		return at.accountDigest(projectID, email), nil
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
