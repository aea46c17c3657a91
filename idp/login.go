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

// A Login is one login of a person. Its ID is the sid of the tokens issued for it. The
// row is the truth; an entry in the session store lets every service check it cheaply.
type Login struct {
	ID           string    `json:"sid"`
	ProjectID    string    `json:"project_id"`
	SubscriberID string    `json:"subscriber_id"`
	AuthTime     time.Time `json:"auth_time"`
	AMR          []string  `json:"amr"` // how it was proven (RFC 8176), such as "pwd"
	UserAgent    string    `json:"user_agent"`
	Address      string    `json:"address"`
	Expires      time.Time `json:"expires"` // when the browser's cookie ends; tokens live on
	Ended        time.Time `json:"ended"`   // zero while it has not been ended

	// Mark is the digest of the mark of the browser that it was made in, or "" if it was
	// not made in a browser. It stays the same when the browser's cookie is renewed.
	Mark string `json:"mark,omitempty"`

	// Seen is when its browser was last here, or AuthTime if it never came back. Only
	// Logins.List sets it.
	Seen time.Time `json:"-"`
}

// A LoginStore keeps the rows of logins, and the audit events of refused ones.
type LoginStore interface {
	// Record writes the audit event of a decision that changes no row.
	Record(ctx context.Context, e audit.Event) error

	// RehashPassword replaces the hash of a subscriber's password by another hash of the
	// same password. If the hash is no longer old, it returns problem.NotFound. No login
	// ends because of it.
	RehashPassword(ctx context.Context, projectID, subscriberID, old, new string) error
	// CreateLogin writes a login. If the subscriber's password hash is no longer the one
	// that was checked, or the subscriber is disabled, it returns problem.Conflict.
	// Notices are queued with it, except for the first login of all.
	CreateLogin(ctx context.Context, l Login, passwordHash string, notices ...mail.Letter) error
	FindLogin(ctx context.Context, id string) (Login, error)
	// RaiseLogin writes the AMR of a login that has not been ended.
	RaiseLogin(ctx context.Context, l Login) error
	// LoginsMadeIn returns the logins, not ended, made in the browser with a mark.
	LoginsMadeIn(ctx context.Context, mark string) ([]Login, error)
	// LiveLogins returns a subscriber's logins that were not ended and whose cookie or a
	// grant is still valid, newest first.
	LiveLogins(ctx context.Context, projectID, subscriberID string, now time.Time) ([]Login, error)
	// EndLogins ends logins and their grants, revokes their tokens and queues their
	// logouts, in one transaction. Ending a login again changes nothing.
	EndLogins(ctx context.Context, now time.Time, all ...revocation.Revocation) error

	// SweepLogins deletes redeemed codes and used assertions that have expired, grants
	// that began before one moment and expired before the other, and logins that began
	// before it and have no grants left.
	SweepLogins(ctx context.Context, began, expired time.Time) error
}

// Logins are the logins of people.
type Logins struct {
	*core
	store    LoginStore
	attempts *Attempts
	marks    *DeviceMarks
	recent   *cache.Cache[Login]
}

// A Visitor is the browser that a login comes from, as its subscriber sees it in the list
// of logins, with the digest of its mark.
type Visitor struct {
	UserAgent, Address, Mark string
	Network                  string // counted as one place
	Device                   string // see [DeviceMarks.Mark]

	known bool // the account knows the device, whatever Device says
}

// errWrong is the answer to every failed login. Neither its text nor its timing tells
// whether the email is known.
var errWrong = problem.New(problem.Unauthenticated, "wrong_credentials", "Email or password is wrong.")

// LogIn checks an email and password against a project's subscribers and makes a new
// Login.
//
// The attempt is counted before the password is checked and returned if the password was
// right; too many wrong ones are problem.RateLimited, whether or not the email is known.
// If the subscriber has a second factor, LogIn returns [Unfinished].
func (ls *Logins) LogIn(ctx context.Context, projectID, email, password string, from Visitor) (Login, error) {
	// Revocations from now on, while the password is being checked, must also end this login.
	began := ls.Now()
	sub, err := ls.Subscribers.FindSubscriberByEmail(ctx, projectID, fabric.NormalizeEmail(email))
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Login{}, fmt.Errorf("finding subscriber: %w", err)
	}

	// Count first, so that the limit also holds for concurrent attempts.
	tried, err := ls.attempts.count(ctx, projectID, email, sub, from)
	if err != nil {
		return Login{}, err
	}

	attempt, err := ls.Passwords.Try(ctx, sub.PasswordHash, password) // takes as long for an unknown email
	if err != nil {
		tried.back(ctx)
		return Login{}, fmt.Errorf("checking password: %w", err)
	}
	if attempt.OK && !sub.Disabled {
		tried.back(ctx)
	}

	s, err := ls.decide(ctx, projectID, email, password, sub, attempt.OK, began, from)
	if errors.Is(err, problem.Unauthenticated) {
		attempt.Wait(ctx) // the time of a refusal does not depend on the kind of hash
	}
	return s, err
}

// decide makes the login of a subscriber whose password was checked, or refuses it.
func (ls *Logins) decide(ctx context.Context, projectID, email, password string, sub fabric.Subscriber, ok bool,
	began time.Time, from Visitor) (Login, error) {
	var err error
	if ok && !sub.Disabled {
		if sub, ok, err = ls.rehash(ctx, sub, password); err != nil {
			return Login{}, err
		}
	}

	if reason := whyNot(sub, ok); reason != "" {
		return Login{}, ls.attempts.refuse(ctx, projectID, email, sub, reason)
	}

	s, err := ls.begin(ctx, sub, began, from)
	if errors.Is(err, problem.Conflict) { // password changed or subscriber disabled since it was read
		return Login{}, ls.attempts.refuse(ctx, projectID, email, sub, refusedChanged)
	}
	if err != nil {
		return Login{}, err
	}
	ls.Observe("login")
	return s, nil
}

// whyNot returns why a login is refused, or "" if it is not.
func whyNot(sub fabric.Subscriber, password bool) string {
	switch {
	case sub.ID == "":
		return refusedUnknown
	case !password:
		return refusedPassword
	case sub.Disabled:
		return refusedDisabled
	}
	return ""
}

func (ls *Logins) create(ctx context.Context, sub fabric.Subscriber, began time.Time, amr []string,
	from Visitor) (Login, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Login{}, fmt.Errorf("creating session id: %w", err)
	}

	s := Login{
		ID: id.String(), ProjectID: sub.ProjectID, SubscriberID: sub.ID, AuthTime: began, AMR: amr,
		UserAgent: cut(from.UserAgent, 256), Address: cut(from.Address, 64),
		Expires: began.Add(ls.Lifetimes().BrowserAbsolute),
		Mark:    from.Mark,
	}

	notices, err := ls.newDeviceLetters(sub, s, from)
	if err == nil {
		err = ls.store.CreateLogin(ctx, s, sub.PasswordHash, notices...)
	}
	if err != nil {
		return Login{}, err
	}
	return s, ls.cache(ctx, s, ls.Sessions.Put)
}

func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

// End ends logins in one transaction: their cookies, grants and tokens are dead in every
// service, here at once and on other nodes within a second.
func (ls *Logins) End(ctx context.Context, sids ...string) error {
	if len(sids) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // finish even if the caller is gone

	all := make([]revocation.Revocation, len(sids))
	for i, sid := range sids {
		all[i] = ls.revocationOf(revocation.Session, sid)
	}
	if err := ls.store.EndLogins(ctx, ls.Now(), all...); err != nil {
		return fmt.Errorf("ending session: %w", err)
	}

	// The session store only makes it known faster. The revocation, written with the row, holds
	// without it.
	errs := []error{ls.Revocations.Sync(ctx)}
	for _, sid := range sids {
		ls.recent.Drop(sid)
		s, err := ls.store.FindLogin(ctx, sid)
		if err == nil {
			err = ls.cache(ctx, s, ls.Sessions.Put)
		}
		errs = append(errs, problem.IgnoreNotFound(err))
	}
	return errors.Join(errs...)
}

// MadeIn returns the logins, not ended, that were made in the browser with a mark (a
// digest). They include logins that another has replaced in the browser, and those whose
// cookie has expired, since their tokens live on.
func (ls *Logins) MadeIn(ctx context.Context, mark string) ([]Login, error) {
	if mark == "" {
		return nil, nil
	}
	return ls.store.LoginsMadeIn(ctx, mark)
}

// rehash replaces the hash of a password that was just found right if the hash was
// imported or made with other parameters. It returns the subscriber with the new hash. If
// the hash was changed concurrently, the password must be right for that one, too; ok
// reports whether it is.
func (ls *Logins) rehash(ctx context.Context, sub fabric.Subscriber, password string) (fabric.Subscriber, bool, error) {
	if !ls.Passwords.Stale(sub.PasswordHash) {
		return sub, true, nil
	}

	hash, err := ls.Passwords.Hash(ctx, password)
	if err == nil {
		err = ls.store.RehashPassword(ctx, sub.ProjectID, sub.ID, sub.PasswordHash, hash)
	}
	if err == nil {
		sub.PasswordHash = hash
		return sub, true, nil
	}
	if !errors.Is(err, problem.NotFound) {
		return sub, false, fmt.Errorf("rehashing password: %w", err)
	}

	// Another request changed the hash meanwhile: the password must be right for the new one.
	now, err := ls.Subscribers.FindSubscriber(ctx, sub.ProjectID, sub.ID)
	if errors.Is(err, problem.NotFound) {
		return sub, false, nil
	}
	if err != nil {
		return sub, false, fmt.Errorf("finding subscriber: %w", err)
	}

	ok, err := ls.Passwords.Verify(ctx, now.PasswordHash, password)
	if err != nil {
		return sub, false, fmt.Errorf("checking password: %w", err)
	}
	return now, ok, nil
}

// List returns the live logins of a subscriber, newest first.
func (ls *Logins) List(ctx context.Context, projectID, subscriberID string) ([]Login, error) {
	return ls.store.LiveLogins(ctx, projectID, subscriberID, ls.Now())
}
