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

// Attempts counts login attempts and records refused ones.
type Attempts struct {
	*core
	store LoginStore
	marks *DeviceMarks
}

// A CountedAttempt is an attempt with a password or a passkey, which is counted before it is
// checked. The limit therefore also applies to concurrent attempts.
type CountedAttempt struct {
	limits *limit.Limiter
	counts []limit.Count
}

// count counts an attempt against the limits of the network and of the email address, whether or
// not the address has an account. A device that signed in to the account before is counted
// separately, so that strangers' guesses do not lock it out. After too many attempts, the error is
// problem.RateLimited for every address.
func (at *Attempts) count(ctx context.Context, projectID, email string, sub fabric.Subscriber,
	from Visitor) (CountedAttempt, error) {
	counts := at.deviceCounts(sub, from)
	if counts == nil {
		account := limit.Count{Name: limit.LoginPerAccount, Who: accountOf(projectID, email)}
		counts = append([]limit.Count{account}, networkCounts(from)...)
	}

	exceeded, err := at.Limits.TakeAll(ctx, counts)
	if errors.Is(err, problem.RateLimited) {
		at.Observe("login_throttled")
		if err := at.recordThrottled(ctx, projectID, email, sub, exceeded); err != nil {
			return CountedAttempt{}, err
		}
	}
	if err != nil {
		return CountedAttempt{}, err
	}
	return CountedAttempt{limits: at.Limits, counts: counts}, nil
}

// deviceCounts returns the counter of an attempt on a device that signed in to the account before. On
// other devices, it returns nil.
func (at *Attempts) deviceCounts(sub fabric.Subscriber, from Visitor) []limit.Count {
	device := at.marks.find(from.Device, sub)
	if device == "" {
		return nil
	}
	return []limit.Count{{Name: limit.LoginPerDevice, Who: device + " " + sub.ID}}
}

// networkCounts returns the counters of an attempt for the visitor's network.
func networkCounts(from Visitor) []limit.Count {
	return []limit.Count{
		{Name: limit.LoginPerNetwork, Who: from.Network},
		{Name: limit.LoginPerRange, Who: limit.Range(from.Network)},
	}
}

// Undo undoes the count. Callers use it if the password or passkey was correct or was not checked.
func (ca CountedAttempt) Undo(ctx context.Context) { ca.limits.ReturnAll(ctx, ca.counts) }

// accountOf returns the name under which attempts for an email address are counted. It does not
// depend on the spelling of the address.
func accountOf(projectID, email string) string {
	return projectID + " " + fabric.NormalizeEmail(email)
}

// Unlock resets the count of wrong passwords for a subscriber.
func (at *Attempts) Unlock(ctx context.Context, sub fabric.Subscriber) error {
	return at.Limits.Reset(ctx, limit.LoginPerAccount, accountOf(sub.ProjectID, sub.Email))
}

// These are the reasons to refuse a login. Only operators see them, never the person who tries to
// sign in.
const (
	refusedUnknown    = "unknown account"
	refusedPassword   = "wrong password"
	refusedNoPassword = "no password"
	refusedDisabled   = "disabled"
	refusedChanged    = "changed meanwhile"
	refusedTooMany    = "too many tries"
)

// refuse records a failed login with its reason, and returns the error for the person who tried. If
// the failure cannot be recorded, refuse returns the error of the store instead, so that no
// decision goes unrecorded.
//
// A known subscriber is recorded by ID. An unknown email address may be a typing error or even a
// password in the wrong field, so only a digest is recorded. Operators can find the attempts by the
// digest. Recording takes the same time for existing and unknown accounts.
func (at *Attempts) refuse(ctx context.Context, projectID, email string, sub fabric.Subscriber, reason string) error {
	if err := at.record(ctx, projectID, email, sub, reason); err != nil {
		return err
	}
	at.Observe("login_refused")
	return errWrong
}

// record writes the audit event of a refused login. facts are names and values of more details.
func (at *Attempts) record(ctx context.Context, projectID, email string, sub fabric.Subscriber,
	reason string, facts ...string) error {
	email = fabric.NormalizeEmail(email)
	target, account := audit.Target{Kind: "account", ID: at.accountDigest(projectID, email)}, "***"
	if sub.ID != "" {
		target, account = audit.Target{Kind: "subscriber", ID: sub.ID}, masked(email)
	}
	event := audit.Of("login", projectID, target.Kind, target.ID).Refuse(reason).With("account", account)
	if err := at.store.Record(ctx, event.With(facts...)); err != nil {
		return fmt.Errorf("recording a refused login: %w", err)
	}
	return nil
}

// throttledEvery is the minimum time between two records of the same limit. It prevents a flood of
// passwords from filling the disk.
const throttledEvery = time.Minute

// recordThrottled records that a limit has stopped a login, unless the same limit was recorded
// recently.
func (at *Attempts) recordThrottled(ctx context.Context, projectID, email string,
	sub fabric.Subscriber, exceeded limit.Count) error {
	isRecorded, err := at.recordedRecently(ctx, string(exceeded.Name)+" "+exceeded.Who)
	if err != nil {
		return err
	}
	if isRecorded {
		return nil
	}
	return at.record(ctx, projectID, email, sub, refusedTooMany, "limit", string(exceeded.Name))
}

// recordedRecently reports whether a reached limit was recorded recently. If it was not,
// recordedRecently stores that the caller is recording it now.
func (at *Attempts) recordedRecently(ctx context.Context, count string) (bool, error) {
	err := at.Sessions.Add(ctx, session.Key{Kind: "throttled", ID: session.Digest(count)}, nil, throttledEvery)
	if errors.Is(err, problem.Conflict) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("recording a refused login: %w", err)
	}
	return false, nil
}

// accountDigest returns a name for an account that does not reveal its email address.
func (at *Attempts) accountDigest(projectID, email string) string {
	key := at.Ring.Derive("audit accounts")
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(projectID + "\x00" + email))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// AuditAccount returns the id under which the audit trail records an email address: the id of its
// subscriber, or the digest of an unknown address.
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

// masked returns an email address of which only the first character and the domain can be read. For
// other text it returns "***".
func masked(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at <= 0 {
		return "***"
	}
	_, size := utf8.DecodeRuneInString(email)
	return email[:size] + "***" + email[at:]
}
