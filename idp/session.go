package idp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
)

// A Session is one login. Its ID is the sid of the tokens born of it. The row is
// the truth; an entry in the session store lets every service see it cheaply.
type Session struct {
	ID           string    `json:"sid"`
	ProjectID    string    `json:"project_id"`
	SubscriberID string    `json:"subscriber_id"`
	AuthTime     time.Time `json:"auth_time"`
	AMR          []string  `json:"amr"` // how it was proven (RFC 8176): "pwd"
	UserAgent    string    `json:"user_agent"`
	Address      string    `json:"address"`
	Expires      time.Time `json:"expires"` // when the browser's cookie ends; tokens live on
	Ended        time.Time `json:"ended"`   // zero while it has not been ended

	// Mark is the digest of the mark of the browser that it was made in. It stays as it
	// is while the browser's cookie is renewed; "" is no browser.
	Mark string `json:"mark,omitempty"`
}

// A Visitor is the browser that a login comes from, as the subscriber will see
// it in the list of sessions, and the digest of its mark.
type Visitor struct {
	UserAgent, Address, Mark string
	Network                  string // what is counted as one place
	Device                   string // see [Provider.DeviceMark]

	known bool // it is the account's, whatever its Device says
}

// errWrong is the one answer to every login that does not succeed. Nothing in it,
// nor the time it takes, says whether the e-mail is known.
var errWrong = problem.New(problem.Unauthenticated, "wrong_credentials", "Email or password is wrong.")

// LogIn checks an e-mail and password against a project's subscribers and makes
// a new Session. Too many wrong ones are problem.RateLimited, whether or not the
// e-mail is known.
func (p *Provider) LogIn(ctx context.Context, projectID, email, password string, from Visitor) (Session, error) {
	began := p.Now() // whatever ends the subscriber's logins meanwhile concerns this one too
	sub, err := p.Subscribers.FindSubscriberByEmail(ctx, projectID, fabric.NormalizeEmail(email))
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Session{}, fmt.Errorf("finding subscriber: %w", err)
	}
	tried, err := p.try(ctx, projectID, email, sub, from)
	if err != nil {
		return Session{}, err
	}
	ok, err := p.Passwords.Verify(ctx, sub.PasswordHash, password) // takes its time for nobody, too
	if err != nil {
		tried.back(ctx)
		return Session{}, fmt.Errorf("checking password: %w", err)
	}
	if ok && !sub.Disabled {
		tried.back(ctx)
		if sub, ok, err = p.rehash(ctx, sub, password); err != nil {
			return Session{}, err
		}
	}
	if reason := whyNot(sub, ok); reason != "" {
		return Session{}, p.refused(ctx, projectID, email, sub, reason)
	}
	s, err := p.begin(ctx, sub, began, from)
	if errors.Is(err, problem.Conflict) { // a new password, or disabled, since it was read
		return Session{}, p.refused(ctx, projectID, email, sub, refusedChanged)
	}
	if err != nil {
		return Session{}, err
	}
	p.Observe("login")
	return s, nil
}

// whyNot tells why a login is refused, "" if it is not.
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

func (p *Provider) newSession(ctx context.Context, sub fabric.Subscriber, began time.Time, amr []string, from Visitor) (Session, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Session{}, fmt.Errorf("making session id: %w", err)
	}
	s := Session{
		ID: id.String(), ProjectID: sub.ProjectID, SubscriberID: sub.ID, AuthTime: began, AMR: amr,
		UserAgent: cut(from.UserAgent, 256), Address: cut(from.Address, 64),
		Expires: began.Add(p.Lifetimes().BrowserAbsolute),
		Mark:    from.Mark,
	}
	notices, err := p.unseen(sub, s, from)
	if err == nil {
		err = p.Store.CreateSession(ctx, s, sub.PasswordHash, notices...)
	}
	if err != nil {
		return Session{}, err
	}
	return s, p.remember(ctx, s, p.Sessions.Put)
}

func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

// rememberFor is how long the entry of a session outlives its last look at the row.
const rememberFor = 12 * time.Hour

func sessionKey(sid string) session.Key { return session.Key{Kind: "login", ID: sid} }

// remember writes the session's entry by Put (the row has just changed) or Add
// (the row was only read, and must not overwrite what was written meanwhile).
func (p *Provider) remember(ctx context.Context, s Session, write func(context.Context, session.Key, []byte, time.Duration) error) error {
	value, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing session: %w", err)
	}
	if err := write(ctx, sessionKey(s.ID), value, rememberFor); err != nil && !errors.Is(err, problem.Conflict) {
		return fmt.Errorf("writing session: %w", err)
	}
	return nil
}

// FindSession returns a login that has not been ended: from this node's memory if
// it was looked at within 300 ms, else from the session store, else from the row.
// An ended or unknown one is problem.Unauthenticated.
func (p *Provider) FindSession(ctx context.Context, sid string) (Session, error) {
	s, err := p.seen.Load(sid, func() (Session, error) { return p.readSession(ctx, sid) })
	if err != nil {
		return Session{}, err
	}
	if !s.Ended.IsZero() {
		return Session{}, problem.NoCredentials()
	}
	err = p.Revocations.Check(s.AuthTime,
		revocation.Subject{Kind: revocation.Session, ID: sid},
		revocation.Subject{Kind: revocation.Subscriber, ID: s.SubscriberID},
		revocation.Subject{Kind: revocation.Project, ID: s.ProjectID})
	return s, err
}

// Live reports whether a login has not been ended, as an error. It is how the
// other services ask about the sid of a token.
func (p *Provider) Live(ctx context.Context, sid string) error {
	_, err := p.FindSession(ctx, sid)
	return err
}

func (p *Provider) readSession(ctx context.Context, sid string) (s Session, err error) {
	value, err := p.Sessions.Get(ctx, sessionKey(sid))
	if err == nil && json.Unmarshal(value, &s) == nil && s.ID == sid {
		return s, nil
	}
	// Absent, or the store is away: the row decides.
	s, err = p.Store.FindSession(ctx, sid)
	if errors.Is(err, problem.NotFound) {
		return Session{}, problem.NoCredentials()
	}
	if err != nil {
		return Session{}, fmt.Errorf("reading session: %w", err)
	}
	_ = p.remember(ctx, s, p.Sessions.Add) // only saves the next reader the row
	return s, nil
}

// BrowserSession returns a login whose cookie still counts: not ended, not expired,
// its subscriber not disabled.
func (p *Provider) BrowserSession(ctx context.Context, sid, projectID string) (Session, error) {
	s, err := p.FindSession(ctx, sid)
	if err != nil {
		return Session{}, err
	}
	if s.ProjectID != projectID || !p.Now().Before(s.Expires) {
		return Session{}, problem.NoCredentials()
	}
	return s, nil
}

// EndSession ends a login: its cookie, its grants and its tokens are dead in
// every service, here at once and on other nodes within a second.
func (p *Provider) EndSession(ctx context.Context, sid string) error {
	return p.EndSessions(ctx, sid)
}

// EndSessions ends several logins in one transaction.
func (p *Provider) EndSessions(ctx context.Context, sids ...string) error {
	if len(sids) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // who asked for it may be gone; it is done all the same
	all := make([]revocation.Revocation, len(sids))
	for i, sid := range sids {
		all[i] = p.ending(revocation.Session, sid)
	}
	if err := p.Store.EndSessions(ctx, p.Now(), all...); err != nil {
		return fmt.Errorf("ending session: %w", err)
	}
	// The session store only makes it known faster: the revocation, written with
	// the row, holds without it.
	errs := []error{p.Revocations.Sync(ctx)}
	for _, sid := range sids {
		p.seen.Drop(sid)
		s, err := p.Store.FindSession(ctx, sid)
		if err == nil {
			err = p.remember(ctx, s, p.Sessions.Put)
		}
		errs = append(errs, ignoreNotFound(err))
	}
	return errors.Join(errs...)
}

// MadeIn returns the logins, not ended, that were made in the browser of a mark (its
// digest): also those whose place in it another has taken, and those whose cookie has
// expired, since their tokens live on.
func (p *Provider) MadeIn(ctx context.Context, mark string) ([]Session, error) {
	if mark == "" {
		return nil, nil
	}
	return p.Store.MarkedSessions(ctx, mark)
}

func ignoreNotFound(err error) error {
	if errors.Is(err, problem.NotFound) {
		return nil
	}
	return err
}

// Forget takes what the session store has of logins out of it, whose rows are deleted: who
// was there, from where.
func (p *Provider) Forget(ctx context.Context, sids ...string) error {
	var errs []error
	for _, sid := range sids {
		p.seen.Drop(sid)
		errs = append(errs, p.Sessions.Delete(ctx, sessionKey(sid)))
	}
	return errors.Join(errs...)
}
