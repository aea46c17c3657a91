// Package operator manages the people who run an installation: their roles, the single-use links
// through which they join, and their sessions in the dashboard.
//
// [Role.May] defines what each role may do. An installation that has had an owner always keeps at
// least one. The store ensures this even for concurrent requests. Sessions are database rows
// without a cache, because there are few operators. Once a session has been ended in the database,
// every node rejects it.
//
// The package uses neither HTTP nor SQL. Package dashboard serves the pages, and package store
// stores the rows.
package operator

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/session"
)

// An Operator is a person who runs the installation or some of its projects.
type Operator struct {
	ID           string
	Email        string // normalized by fabric.NormalizeEmail; unique in the installation
	Name         string
	PasswordHash string // "" means that no password is accepted
	Roles        []Membership
	Disabled     bool // the operator cannot sign in and has no active sessions
	Created      time.Time
	Updated      time.Time
}

// Title returns the name that others see for the operator.
func (o Operator) Title() string {
	if o.Name != "" {
		return o.Name
	}
	return o.Email
}

// A Membership is a role in a project. If ProjectID is "", the role applies to the installation and
// all projects.
type Membership struct {
	ProjectID string
	Role      Role
}

// A Store stores operators, sessions and links. Methods return problem.NotFound for missing rows.
// Each method is one transaction, and all methods may be called concurrently.
type Store interface {
	AccountStore
	SessionStore
	LinkStore
	FilterStore

	// Record writes an audit event for a decision that changes no row.
	Record(ctx context.Context, e audit.Event) error
	// SweepOperators deletes sessions and links that expired before the given time.
	SweepOperators(ctx context.Context, before time.Time) error
}

// An AccountStore stores operators.
type AccountStore interface {
	// CreateOperator returns problem.Conflict for "email" if the email is in use, and
	// problem.NotFound if a project does not exist.
	CreateOperator(ctx context.Context, o Operator) error
	FindOperator(ctx context.Context, id string) (Operator, error)
	FindOperatorByEmail(ctx context.Context, email string) (Operator, error)
	ListOperators(ctx context.Context, f Filter, q page.Query) (page.Page[Operator], error)
	// UpdateOperator writes the fields of c that are not nil. If the change would remove the last
	// owner of the installation, it returns problem.Conflict. If the password changes or the
	// operator is disabled, all the operator's sessions end, except the session with the ID keep.
	// If the operator may no longer manage operators, the links that the operator created become
	// invalid.
	UpdateOperator(ctx context.Context, id string, c Change, at time.Time, keep string) (Operator, error)
	// DeleteOperator deletes an operator and invalidates the links that the operator created. For the
	// last owner it returns problem.Conflict.
	DeleteOperator(ctx context.Context, id string) error
}

// A SessionStore stores the sessions of operators.
type SessionStore interface {
	// CreateOperatorSession writes a session. If the operator's password hash is no longer
	// passwordHash, or the operator is disabled, it returns problem.Conflict.
	CreateOperatorSession(ctx context.Context, s Session, passwordHash string) error
	// FindOperatorSession returns the session with this cookie digest and its operator, even if the
	// session has ended or the operator is disabled.
	FindOperatorSession(ctx context.Context, browser string) (Session, Operator, error)
	// RaiseOperatorSession writes s in place of the session with the cookie digest old. If that
	// session is missing or has ended, it returns problem.Conflict.
	RaiseOperatorSession(ctx context.Context, s Session, old string) error
	// SeeOperatorSession records that the session was used.
	SeeOperatorSession(ctx context.Context, id string, at time.Time) error
	// ListOperatorSessions returns the sessions of an operator that have not ended, newest first.
	ListOperatorSessions(ctx context.Context, operatorID string, now time.Time) ([]Session, error)
	// EndOperatorSession ends the operator's session with the given id. If id is "", it ends all the
	// operator's sessions except the session with the ID keep.
	EndOperatorSession(ctx context.Context, operatorID, id, keep string, at time.Time) error
}

// A LinkStore stores the links that invite operators or reset their passwords.
type LinkStore interface {
	// CreateOperatorLink writes a link. If alone is true and an operator or a valid invitation
	// exists, it returns problem.Conflict. If the link's creator may no longer manage operators, it
	// returns problem.Forbidden or problem.NotFound.
	CreateOperatorLink(ctx context.Context, l Link, alone bool) error
	// FindOperatorLink returns the link whose token has this hash.
	FindOperatorLink(ctx context.Context, hash string) (Link, error)
	// UseOperatorLink uses up a link and creates its operator, or sets the existing operator's
	// password. Only one of several concurrent callers succeeds. For a used or expired link it
	// returns problem.NotFound. If the email is already in use, it returns problem.Conflict and the
	// link remains valid.
	UseOperatorLink(ctx context.Context, hash string, o Operator, at time.Time) (Operator, error)
	// ListInvitations returns a page of the unused invitations, newest first. It includes expired
	// invitations until they are swept.
	ListInvitations(ctx context.Context, q page.Query) (page.Page[Link], error)
	// WithdrawInvitation ends an invitation. For a used invitation it returns problem.NotFound.
	WithdrawInvitation(ctx context.Context, id string, at time.Time) (Link, error)
	// RenewInvitation ends an invitation and writes the invitation that renew returns for it.
	RenewInvitation(ctx context.Context, id string, renew func(Link) Link) (Link, error)
}

// A Change holds the fields of an operator to update; nil fields are left unchanged.
type Change struct {
	Name         *string
	PasswordHash *string
	Disabled     *bool
	Roles        []Membership // replaces all current roles
}

// Config holds the dependencies of Operators.
type Config struct {
	Store     Store
	Passwords *password.Hasher
	Limits    *limit.Limiter   // limits password attempts; nil means no limits
	Sessions  session.Store    // stores known networks and recent throttling records; nil means that nothing is stored
	Idle      time.Duration    // how long a session may be unused before it ends; 0 means one hour
	Absolute  time.Duration    // maximum lifetime of a session; 0 means twelve hours
	Now       func() time.Time // nil means time.Now

	// Weak returns a problem that names param if a password is too easy to guess. known lists words
	// that an attacker would try first. If Weak is nil, only the length of passwords is checked.
	Weak func(ctx context.Context, param, password string, known ...string) error
}

// Operators enforces the rules for operators. Its methods may be called concurrently.
type Operators struct{ c Config }

// New returns Operators with the given dependencies.
func New(c Config) *Operators {
	if c.Passwords == nil {
		c.Passwords = password.New(0)
	}
	if c.Idle <= 0 {
		c.Idle = time.Hour
	}
	if c.Absolute <= 0 {
		c.Absolute = 12 * time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Weak == nil {
		c.Weak = func(context.Context, string, string, ...string) error { return nil }
	}
	return &Operators{c}
}

func (a *Operators) now() time.Time { return a.c.Now().UTC().Truncate(time.Microsecond) }

// SessionLifetime returns the maximum lifetime of a session.
func (a *Operators) SessionLifetime() time.Duration { return a.c.Absolute }

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// Sweep deletes sessions and links that expired at least a day ago.
func (a *Operators) Sweep(ctx context.Context) error {
	return a.c.Store.SweepOperators(ctx, a.now().Add(-24*time.Hour))
}
