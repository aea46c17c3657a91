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

// Freshness is how long a confirmed identity is sufficient for the most sensitive actions, such as
// changes to operators and keys.
const Freshness = 15 * time.Minute

// seeEvery is the minimum interval between two writes of a session's last use. It is shorter if sessions
// may be unused only for a short time; see [Operators.Open].
const seeEvery = time.Minute

// A Session is an operator's login in one browser.
type Session struct {
	ID         string
	OperatorID string
	Browser    string // digest of the cookie
	Proven     bool   // whether a required second factor was presented; until then the session permits nothing
	AMR        []string
	Began      time.Time
	Fresh      time.Time // when the operator last confirmed their identity
	Seen       time.Time
	Expires    time.Time
	Ended      time.Time // when the session was ended before it expired; zero if it was not
	UserAgent  string
	Address    string
	Unseen     bool // whether the login came from a new network, so that the operator is notified; not stored
}

// A Visitor describes the browser that signs in.
type Visitor struct {
	UserAgent, Address string
	Network            string // network from which the login comes, as in limits and known places
}

// errWrong is the error for every refused password. It does not reveal the reason.
var errWrong = problem.New(problem.Unauthenticated, "wrong_credentials", "Email or password is wrong.")

// SignIn checks an email and a password, and begins a session. It returns the session's cookie. If
// wantsFactor reports true for the operator, the session permits nothing until the operator
// presents a second factor.
func (a *Operators) SignIn(
	ctx context.Context, email, secret string, from Visitor, wantsFactor func(Operator) (bool, error),
) (s Session, cookie string, err error) {
	o, err := a.checkPasswordOf(ctx, email, secret, from)
	if err != nil {
		return Session{}, "", err
	}
	wants := false
	if wantsFactor != nil {
		wants, err = wantsFactor(o)
		if err != nil {
			return Session{}, "", err
		}
	}

	s, cookie, err = a.begin(ctx, o, from, !wants, a.isNewPlace(ctx, o, from), "pwd")
	if errors.Is(err, problem.Conflict) { // the password was changed or the operator was disabled in the meantime
		return Session{}, "", errWrong
	}
	return s, cookie, err
}

// checkPasswordOf returns the operator with this email if the password is right. It counts the
// attempt, and takes the same time for unknown operators.
func (a *Operators) checkPasswordOf(ctx context.Context, email, secret string, from Visitor) (Operator, error) {
	o, err := a.byEmail(ctx, email)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return o, fmt.Errorf("finding operator: %w", err)
	}
	counts, err := a.countAttempt(ctx, email, o, from)
	if err != nil {
		return o, err
	}

	attempt, err := a.c.Passwords.Try(ctx, o.PasswordHash, secret) // takes the same time without a hash
	if attempt.OK || err != nil {
		a.c.Limits.ReturnAll(ctx, counts)
	}

	switch {
	case err != nil:
		return o, fmt.Errorf("checking password: %w", err)
	case !attempt.OK:
		err = a.recordRefusal(ctx, o, "wrong email or password")
	case o.Disabled:
		err = a.recordRefusal(ctx, o, "disabled")
	default:
		return o, nil
	}
	attempt.Wait(ctx)
	return o, errors.Join(errWrong, err)
}

func (a *Operators) byEmail(ctx context.Context, email string) (Operator, error) {
	if fabric.CheckEmail("email", email) != nil {
		return Operator{}, problem.NoSuch("operator")
	}
	return a.c.Store.FindOperatorByEmail(ctx, fabric.NormalizeEmail(email))
}

// SignInByPasskey begins a session for the operator whose passkey was just verified. methods are
// the authentication methods (RFC 8176). The device has verified its user, so no other factor is
// needed. If the operator is missing or disabled, SignInByPasskey returns problem.Unauthenticated.
// The caller must have called [Operators.CountPasskey] first.
func (a *Operators) SignInByPasskey(
	ctx context.Context, id string, methods []string, from Visitor,
) (Session, string, error) {
	o, err := a.c.Store.FindOperator(ctx, id)
	if errors.Is(err, problem.NotFound) || err == nil && o.Disabled {
		return Session{}, "", problem.NoCredentials()
	}
	if err != nil {
		return Session{}, "", fmt.Errorf("finding operator: %w", err)
	}

	s, cookie, err := a.begin(ctx, o, from, true, a.isNewPlace(ctx, o, from), methods...)
	if errors.Is(err, problem.Conflict) { // the password was changed or the operator was disabled in the meantime
		return Session{}, "", problem.NoCredentials()
	}
	if err != nil {
		return s, cookie, err
	}
	a.ReturnPasskey(ctx, from)
	return s, cookie, nil
}

// Begin begins a session for an operator who has just set a password. proven is as in [Session].
func (a *Operators) Begin(ctx context.Context, o Operator, from Visitor, proven bool) (Session, string, error) {
	return a.begin(ctx, o, from, proven, false, "pwd")
}

// begin begins a session and returns its cookie. unseen reports whether to notify the operator of a
// login from a new network.
func (a *Operators) begin(
	ctx context.Context, o Operator, from Visitor, proven, unseen bool, methods ...string,
) (Session, string, error) {
	now, cookie := a.now(), newCookie()
	s := Session{
		ID:         newID(),
		OperatorID: o.ID,
		Browser:    session.Digest(cookie),
		Proven:     proven,
		AMR:        methods,
		Began:      now,
		Fresh:      now,
		Seen:       now,
		Expires:    now.Add(a.c.Absolute),
		UserAgent:  truncate(from.UserAgent, 256),
		Address:    truncate(from.Address, 64),
		Unseen:     unseen,
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

// truncate returns at most n bytes of s, as valid UTF-8 without NUL.
func truncate(s string, n int) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return strings.ReplaceAll(s, "\x00", "")
}

// Open returns the session with this cookie and its operator, even if a second factor is still
// missing. It records that the session was used. If the session has ended for any reason, Open
// returns problem.Unauthenticated.
func (a *Operators) Open(ctx context.Context, cookie string) (Session, Operator, error) {
	s, o, err := a.Peek(ctx, cookie)
	if err != nil {
		return Session{}, Operator{}, err
	}
	// A session must not end as unused because its uses were not written.
	every := min(seeEvery, a.c.Idle/10)
	if now := a.now(); now.Sub(s.Seen) >= every {
		_ = a.c.Store.SeeOperatorSession(ctx, s.ID, now) // on failure, the next use tries again
	}
	return s, o, nil
}

// Peek is like Open, but does not record a use, so it does not extend the session.
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

// Raise records that a session's operator has confirmed their identity with the given methods (RFC
// 8176). The session gets a new cookie, so that an old cookie that was stolen or planted is
// worthless.
func (a *Operators) Raise(
	ctx context.Context, o Operator, s Session, from Visitor, methods ...string,
) (Session, string, error) {
	old, cookie := s.Browser, newCookie()
	for _, m := range methods {
		if !slices.Contains(s.AMR, m) {
			s.AMR = append(slices.Clone(s.AMR), m)
		}
	}
	s.Browser = session.Digest(cookie)
	s.Proven = true
	s.Fresh = a.now()
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

// TwoFactors reports whether the operator has presented more than a password in the session.
func (s Session) TwoFactors() bool {
	return slices.ContainsFunc(s.AMR, func(method string) bool { return method != "pwd" })
}

// IsFresh reports whether the operator has confirmed their identity within Freshness.
func (a *Operators) IsFresh(s Session) bool { return s.Proven && a.now().Sub(s.Fresh) < Freshness }

// Sessions returns an operator's active sessions, newest first.
func (a *Operators) Sessions(ctx context.Context, operatorID string) ([]Session, error) {
	now := a.now()
	sessions, err := a.c.Store.ListOperatorSessions(ctx, operatorID, now)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(sessions, func(s Session) bool { return now.Sub(s.Seen) >= a.c.Idle }), nil
}

// EndSession ends one of an operator's sessions, immediately and on every node.
func (a *Operators) EndSession(ctx context.Context, operatorID, id string) error {
	return a.c.Store.EndOperatorSession(ctx, operatorID, id, "", a.now())
}

// EndOthers ends all of an operator's sessions except the session with the ID keep.
func (a *Operators) EndOthers(ctx context.Context, operatorID, keep string) error {
	return a.c.Store.EndOperatorSession(ctx, operatorID, "", keep, a.now())
}
