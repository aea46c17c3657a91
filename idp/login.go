package idp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// A Login is one login of a person. Its ID is the sid in the tokens issued for it, except in tokens
// for clients with pairwise subjects; see [Subjects.SessionOf]. The database row is authoritative.
// A copy in the session store allows every service to check the login cheaply.
type Login struct {
	ID           string    `json:"sid"`
	ProjectID    string    `json:"project_id"`
	SubscriberID string    `json:"subscriber_id"`
	AuthTime     time.Time `json:"auth_time"`
	AMR          []string  `json:"amr"` // authentication methods (RFC 8176), such as "pwd"
	UserAgent    string    `json:"user_agent"`
	Address      string    `json:"address"`
	Expires      time.Time `json:"expires"` // expiry of the browser's cookie; tokens may outlive it
	Ended        time.Time `json:"ended"`   // zero until the login ends

	// Mark is the digest of the browser's mark at the time of the login, or "" if there was no
	// browser. It does not change when the browser's cookie is renewed.
	Mark string `json:"mark,omitempty"`

	// Silent means that the person may not have authenticated for this login, because an upstream
	// provider may only have recognized the browser. Changes to the account need another login, or a
	// second factor.
	Silent bool `json:"silent,omitempty"`

	// SignedIn is when the person signed in to the upstream provider before a silent login. It is zero if
	// the provider did not report it, or if an older version made the login.
	SignedIn time.Time `json:"signed_in,omitzero"`

	// Seen is the time of the browser's last visit, or AuthTime if it has never returned. Only
	// Logins.List sets it.
	Seen time.Time `json:"-"`
}

// A LoginClient is a login together with a client that has had a grant from it.
type LoginClient struct {
	LoginID, ClientID string
}

// A LoginStore stores logins, and audit events of refused logins.
type LoginStore interface {
	// Record writes an audit event for a decision that changes no row.
	Record(ctx context.Context, e audit.Event) error

	// RehashPassword replaces old, the hash of a subscriber's password, with new, another hash of
	// the same password. If the stored hash differs from old, it returns problem.NotFound.
	// RehashPassword does not end logins.
	RehashPassword(ctx context.Context, projectID, subscriberID, old, new string) error
	// CreateLogin writes a login. passwordHash is the hash that was checked. If it is no longer the
	// subscriber's hash, or if the subscriber is disabled, CreateLogin returns problem.Conflict.
	// CreateLogin also queues notices, unless this is the subscriber's first login.
	CreateLogin(ctx context.Context, l Login, passwordHash string, notices ...mail.Letter) error
	FindLogin(ctx context.Context, id string) (Login, error)
	// RaiseLogin replaces the AMR of a login that has not ended. The login is then not silent.
	RaiseLogin(ctx context.Context, l Login) error
	// LoginsMadeIn returns the logins made in the browser with this mark that have not ended.
	LoginsMadeIn(ctx context.Context, mark string) ([]Login, error)
	// LiveLogins returns a subscriber's logins, newest first, that have not ended and still have a
	// valid cookie or grant.
	LiveLogins(ctx context.Context, projectID, subscriberID string, now time.Time) ([]Login, error)
	// LoginClients returns the clients that have had grants from the logins, newest login first.
	LoginClients(ctx context.Context, ids []string) ([]LoginClient, error)
	// EndLogins ends logins and their grants, revokes their tokens and queues their logouts, in one
	// transaction. It has no effect on logins that have already ended.
	EndLogins(ctx context.Context, now time.Time, all ...revocation.Revocation) error

	// SweepLogins deletes the records of redeemed codes and the uses (see [Use]) that have expired.
	// It also deletes grants that were created before startedBefore and expired before
	// expiredBefore. Finally it deletes logins that were created before startedBefore and have no
	// grants left.
	SweepLogins(ctx context.Context, startedBefore, expiredBefore time.Time) error
}

// Logins manages the logins of people.
type Logins struct {
	*core
	store    LoginStore
	attempts *Attempts
	marks    *DeviceMarks
	recent   *cache.Cache[Login]
}

// A Visitor describes the browser that a login comes from. UserAgent and Address are shown to the
// subscriber in the list of logins. Mark is the digest of the browser's mark.
type Visitor struct {
	UserAgent, Address, Mark string
	Network                  string // attempts from one network are counted together
	Device                   string // mark of the device; see [DeviceMarks.Mark]

	known    bool      // whether the account knows the device, even if Device does not name it
	silent   bool      // see [Login.Silent]
	signedIn time.Time // see [Login.SignedIn]
}

// errWrong is the response if the email address is unknown, the password is wrong, or the
// subscriber is disabled. Neither its text nor its timing reveals whether the email address is
// known.
var errWrong = problem.New(problem.Unauthenticated, "wrong_credentials", "Email or password is wrong.")

// LogIn checks an email address and password against a project's subscribers, and creates a login.
//
// It counts the attempt before it checks the password. It undoes the count if the password could not
// be checked, or is accepted, even if a second factor is still missing. After too many wrong
// passwords it returns problem.RateLimited, whether or not the address is known. If the subscriber
// has a second factor, LogIn returns [Unfinished].
func (ls *Logins) LogIn(ctx context.Context, projectID, email, password string, from Visitor) (Login, error) {
	// Revocations after this moment must also end the new login, even while the password is being
	// checked.
	began := ls.Now()
	sub, err := ls.Subscribers.FindSubscriberByEmail(ctx, projectID, fabric.NormalizeEmail(email))
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Login{}, fmt.Errorf("finding subscriber: %w", err)
	}

	// Count first, so that the limit also applies to concurrent attempts.
	counted, err := ls.attempts.count(ctx, projectID, email, sub, from)
	if err != nil {
		return Login{}, err
	}

	attempt, err := ls.Passwords.Try(ctx, sub.PasswordHash, password) // takes the same time for an unknown address
	if err != nil {
		counted.Undo(ctx)
		return Login{}, fmt.Errorf("checking password: %w", err)
	}
	if attempt.OK && !sub.Disabled {
		counted.Undo(ctx)
	}

	s, err := ls.decide(ctx, projectID, email, password, sub, attempt.OK, began, from)
	if errors.Is(err, problem.Unauthenticated) {
		attempt.Wait(ctx) // so that timing does not reveal the kind of hash
	}
	return s, err
}

// decide creates the login of a subscriber whose password was checked, or refuses it.
func (ls *Logins) decide(ctx context.Context, projectID, email, password string, sub fabric.Subscriber, ok bool,
	began time.Time, from Visitor) (Login, error) {
	var err error
	if ok && !sub.Disabled {
		if sub, ok, err = ls.rehash(ctx, sub, password); err != nil {
			return Login{}, err
		}
	}

	if reason := refusalOf(sub, ok); reason != "" {
		return Login{}, ls.attempts.refuse(ctx, projectID, email, sub, reason)
	}

	s, err := ls.begin(ctx, sub, began, from)
	if errors.Is(err, problem.Conflict) { // the password or the subscriber was changed after it was read
		return Login{}, ls.attempts.refuse(ctx, projectID, email, sub, refusedChanged)
	}
	if err != nil {
		return Login{}, err
	}
	ls.Observe("login")
	return s, nil
}

// refusalOf returns the reason to refuse a login, or "" to accept it. ok says whether the password is
// correct.
func refusalOf(sub fabric.Subscriber, ok bool) string {
	switch {
	case sub.ID == "":
		return refusedUnknown
	case !ok && sub.PasswordHash == "":
		return refusedNoPassword
	case !ok:
		return refusedPassword
	case sub.Disabled:
		return refusedDisabled
	}
	return ""
}

// create writes a login of sub that began at the given time.
func (ls *Logins) create(ctx context.Context, sub fabric.Subscriber, began time.Time, amr []string,
	from Visitor) (Login, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Login{}, fmt.Errorf("creating session id: %w", err)
	}

	s := Login{
		ID:           id.String(),
		ProjectID:    sub.ProjectID,
		SubscriberID: sub.ID,
		AuthTime:     began,
		AMR:          amr,
		UserAgent:    truncate(from.UserAgent, 256),
		Address:      truncate(from.Address, 64),
		Expires:      began.Add(ls.Lifetimes().BrowserAbsolute),
		Mark:         from.Mark,
		Silent:       from.silent,
		SignedIn:     from.signedIn,
	}

	notices, err := ls.newDeviceLetters(sub, s, from)
	if err != nil {
		return Login{}, err
	}
	if err := ls.store.CreateLogin(ctx, s, sub.PasswordHash, notices...); err != nil {
		return Login{}, err
	}
	return s, ls.cache(ctx, s, ls.Sessions.Put)
}

// truncate returns at most the first n bytes of s, as valid UTF-8.
func truncate(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

// End ends logins in one transaction, together with their cookies, grants and tokens. All services on
// this node reject these immediately. Services on other nodes reject them within a second.
func (ls *Logins) End(ctx context.Context, sids ...string) error {
	if len(sids) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // finish even if the caller has disconnected

	revocations := make([]revocation.Revocation, len(sids))
	for i, sid := range sids {
		revocations[i] = ls.revocationOf(revocation.Session, sid)
	}
	if err := ls.store.EndLogins(ctx, ls.Now(), revocations...); err != nil {
		return fmt.Errorf("ending session: %w", err)
	}

	// The copy in the session store only informs other nodes sooner. The revocation was written with
	// the row, and is effective without the copy.
	errs := []error{ls.Revocations.Sync(ctx)}
	for _, sid := range sids {
		ls.recent.Drop(sid)
		errs = append(errs, problem.IgnoreNotFound(ls.copyRow(ctx, sid)))
	}
	return errors.Join(errs...)
}

// copyRow writes the row of a login to the session store.
func (ls *Logins) copyRow(ctx context.Context, sid string) error {
	s, err := ls.store.FindLogin(ctx, sid)
	if err != nil {
		return err
	}
	return ls.cache(ctx, s, ls.Sessions.Put)
}

// MadeIn returns the logins made in the browser with this mark (a digest) that have not ended. They
// include logins that another login has replaced in the browser. They also include logins whose
// cookie has expired, because their tokens may still be valid.
func (ls *Logins) MadeIn(ctx context.Context, mark string) ([]Login, error) {
	if mark == "" {
		return nil, nil
	}
	return ls.store.LoginsMadeIn(ctx, mark)
}

// rehash replaces the hash of a correct password if that hash was imported or created with other
// parameters. It returns the subscriber with the new hash. If the hash was changed concurrently,
// rehash reports whether the password is also correct for the changed hash.
func (ls *Logins) rehash(ctx context.Context, sub fabric.Subscriber, password string) (fabric.Subscriber, bool, error) {
	if !ls.Passwords.Stale(sub.PasswordHash) {
		return sub, true, nil
	}

	hash, err := ls.Passwords.Hash(ctx, password)
	if err != nil {
		return sub, false, fmt.Errorf("rehashing password: %w", err)
	}
	err = ls.store.RehashPassword(ctx, sub.ProjectID, sub.ID, sub.PasswordHash, hash)
	if err == nil {
		sub.PasswordHash = hash
		return sub, true, nil
	}
	if !errors.Is(err, problem.NotFound) {
		return sub, false, fmt.Errorf("rehashing password: %w", err)
	}

	// Another request changed the hash in the meantime. Check the password against the new hash.
	changed, err := ls.Subscribers.FindSubscriber(ctx, sub.ProjectID, sub.ID)
	if errors.Is(err, problem.NotFound) {
		return sub, false, nil
	}
	if err != nil {
		return sub, false, fmt.Errorf("finding subscriber: %w", err)
	}

	ok, err := ls.Passwords.Verify(ctx, changed.PasswordHash, password)
	if err != nil {
		return sub, false, fmt.Errorf("checking password: %w", err)
	}
	return changed, ok, nil
}

// List returns the live logins of a subscriber, newest first.
func (ls *Logins) List(ctx context.Context, projectID, subscriberID string) ([]Login, error) {
	return ls.store.LiveLogins(ctx, projectID, subscriberID, ls.Now())
}
