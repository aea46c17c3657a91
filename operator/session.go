package operator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// Freshness is how long ago an operator may have proved who it is for what would hurt
// most: changes of operators and of keys.
const Freshness = 15 * time.Minute

// seeEvery bounds how often the use of a session is written.
const seeEvery = time.Minute

// A Session is one sign-in of an operator in a browser.
type Session struct {
	ID         string
	OperatorID string
	Browser    string // digest of the cookie
	Proven     bool   // false while a second factor is wanted: until then it may do nothing
	AMR        []string
	Began      time.Time
	Fresh      time.Time // when the operator last proved who it is
	Seen       time.Time
	Expires    time.Time
	Ended      time.Time // zero while it has not been ended
	UserAgent  string
	Address    string
	Unseen     bool // it begins where the operator has not signed in before, and is to be told of it; in no row
}

// A Visitor is the browser that a sign-in comes from.
type Visitor struct {
	UserAgent, Address string
	Network            string // what is counted as one place
}

// errWrong is the one answer to every sign-in that does not succeed.
var errWrong = problem.New(problem.Unauthenticated, "wrong_credentials", "Email or password is wrong.")

// SignIn checks an e-mail and a password, and begins a session. Where wantsFactor says
// so it is not proven yet. It gives the cookie of the session.
func (a *Operators) SignIn(ctx context.Context, email, secret string, from Visitor, wantsFactor func(Operator) (bool, error)) (s Session, cookie string, err error) {
	o, err := a.byEmail(ctx, email)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Session{}, "", fmt.Errorf("finding operator: %w", err)
	}
	counts, err := a.try(ctx, email, o, from)
	if err != nil {
		return Session{}, "", err
	}
	ok, err := a.c.Passwords.Verify(ctx, o.PasswordHash, secret) // takes its time for nobody, too
	if ok || err != nil {
		a.c.Limits.ReturnAll(ctx, counts)
	}
	switch {
	case err != nil:
		return Session{}, "", fmt.Errorf("checking password: %w", err)
	case !ok:
		return Session{}, "", errors.Join(errWrong, a.refused(ctx, o, "wrong e-mail or password"))
	case o.Disabled:
		return Session{}, "", errors.Join(errWrong, a.refused(ctx, o, "disabled"))
	}
	wants := false
	if wantsFactor != nil {
		if wants, err = wantsFactor(o); err != nil {
			return Session{}, "", err
		}
	}
	s, cookie, err = a.begin(ctx, o, from, !wants, a.unseen(ctx, o, from), "pwd")
	if errors.Is(err, problem.Conflict) { // a new password, or disabled, since it was read
		return Session{}, "", errWrong
	}
	return s, cookie, err
}

func (a *Operators) byEmail(ctx context.Context, email string) (Operator, error) {
	if fabric.CheckEmail("email", email) != nil {
		return Operator{}, problem.NoSuch("operator")
	}
	return a.c.Store.FindOperatorByEmail(ctx, fabric.NormalizeEmail(email))
}

// SignInByPasskey begins a session of the operator whose passkey was just checked, by
// these methods (RFC 8176): its device has verified who uses it, so nothing else is asked.
// Who is not there, or is disabled, is problem.Unauthenticated. [Operators.CountPasskey]
// came before.
func (a *Operators) SignInByPasskey(ctx context.Context, id string, methods []string, from Visitor) (Session, string, error) {
	o, err := a.c.Store.FindOperator(ctx, id)
	if errors.Is(err, problem.NotFound) || err == nil && o.Disabled {
		return Session{}, "", problem.NoCredentials()
	}
	if err != nil {
		return Session{}, "", fmt.Errorf("finding operator: %w", err)
	}
	s, cookie, err := a.begin(ctx, o, from, true, a.unseen(ctx, o, from), methods...)
	if errors.Is(err, problem.Conflict) { // a new password, or disabled, since it was read
		return Session{}, "", problem.NoCredentials()
	}
	if err == nil {
		a.ReturnPasskey(ctx, from)
	}
	return s, cookie, err
}

// Begin begins a session of an operator whose password was just proven.
func (a *Operators) Begin(ctx context.Context, o Operator, from Visitor, proven bool) (Session, string, error) {
	return a.begin(ctx, o, from, proven, false, "pwd")
}

func (a *Operators) begin(ctx context.Context, o Operator, from Visitor, proven, unseen bool, methods ...string) (Session, string, error) {
	now, cookie := a.now(), newCookie()
	s := Session{
		ID: newID(), OperatorID: o.ID, Browser: session.Digest(cookie), Proven: proven, AMR: methods,
		Began: now, Fresh: now, Seen: now, Expires: now.Add(a.c.Absolute),
		UserAgent: cut(from.UserAgent, 256), Address: cut(from.Address, 64), Unseen: unseen,
	}
	if err := a.c.Store.CreateOperatorSession(ctx, s, o.PasswordHash); err != nil {
		return Session{}, "", fmt.Errorf("creating operator's session: %w", err)
	}
	if proven {
		a.knowPlace(ctx, o, from, s)
	}
	return s, cookie, nil
}

func newCookie() string { return rand.Text() + rand.Text() }

func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return strings.ReplaceAll(s, "\x00", "")
}

// Open returns the session of a cookie with its operator, proven or not, and notes that
// it was used. One that ended, by anything, is problem.Unauthenticated.
func (a *Operators) Open(ctx context.Context, cookie string) (Session, Operator, error) {
	s, o, err := a.Peek(ctx, cookie)
	if now := a.now(); err == nil && now.Sub(s.Seen) >= seeEvery {
		_ = a.c.Store.SeeOperatorSession(ctx, s.ID, now) // a push that is missed is made up by the next
	}
	return s, o, err
}

// Peek is Open that is no use of the session: one that is only looked at ends in time.
func (a *Operators) Peek(ctx context.Context, cookie string) (Session, Operator, error) {
	if len(cookie) != len(newCookie()) {
		return Session{}, Operator{}, problem.NoCredentials()
	}
	s, o, err := a.c.Store.FindOperatorSession(ctx, session.Digest(cookie))
	if errors.Is(err, problem.NotFound) {
		return Session{}, Operator{}, problem.NoCredentials()
	}
	if err != nil {
		return Session{}, Operator{}, fmt.Errorf("reading operator's session: %w", err)
	}
	now := a.now()
	if o.Disabled || !s.Ended.IsZero() || !now.Before(s.Expires) || now.Sub(s.Seen) >= a.c.Idle {
		return Session{}, Operator{}, problem.NoCredentials()
	}
	return s, o, nil
}

// Raise notes that the operator of a session has proven who it is once more, by these
// methods (RFC 8176), and gives the session a new cookie: one that was seen or planted
// before is worthless.
func (a *Operators) Raise(ctx context.Context, o Operator, s Session, from Visitor, methods ...string) (Session, string, error) {
	old, cookie := s.Browser, newCookie()
	for _, m := range methods {
		if !slices.Contains(s.AMR, m) {
			s.AMR = append(slices.Clone(s.AMR), m)
		}
	}
	s.Browser, s.Proven, s.Fresh = session.Digest(cookie), true, a.now()
	s.Seen = s.Fresh
	if err := a.c.Store.RaiseOperatorSession(ctx, s, old); err != nil {
		if errors.Is(err, problem.Conflict) {
			err = problem.NoCredentials()
		}
		return Session{}, "", err
	}
	a.knowPlace(ctx, o, from, s)
	return s, cookie, nil
}

// TwoFactors reports whether more than a password was shown for the session.
func (s Session) TwoFactors() bool {
	return slices.ContainsFunc(s.AMR, func(method string) bool { return method != "pwd" })
}

// IsFresh reports whether the operator proved who it is lately enough for what would
// hurt most.
func (a *Operators) IsFresh(s Session) bool { return s.Proven && a.now().Sub(s.Fresh) < Freshness }

// Sessions returns an operator's sessions that have not ended, newest first.
func (a *Operators) Sessions(ctx context.Context, operatorID string) ([]Session, error) {
	now := a.now()
	all, err := a.c.Store.ListOperatorSessions(ctx, operatorID, now)
	return slices.DeleteFunc(all, func(s Session) bool { return now.Sub(s.Seen) >= a.c.Idle }), err
}

// EndSession ends one of an operator's sessions, at every node with the commit.
func (a *Operators) EndSession(ctx context.Context, operatorID, id string) error {
	return a.c.Store.EndOperatorSession(ctx, operatorID, id, "", a.now())
}

// EndOthers ends all sessions of an operator but one.
func (a *Operators) EndOthers(ctx context.Context, operatorID, keep string) error {
	return a.c.Store.EndOperatorSession(ctx, operatorID, "", keep, a.now())
}
