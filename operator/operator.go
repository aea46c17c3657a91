// Package operator manages the people who run an installation: their roles, the single-use links
// with which they join, and their sessions in the dashboard.
//
// [Role.May] defines what each role may do. An installation that has had an owner always keeps one:
// the store enforces this, however many requests arrive at once. Sessions are database rows without
// a cache, since operators are few; a session that was ended is invalid on every node with the commit.
//
// The package uses neither HTTP nor SQL. Package dashboard serves the pages, and package store keeps
// the rows.
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
	Email        string // as fabric.NormalizeEmail returns it; unique in the installation
	Name         string
	PasswordHash string // "" means that no password works
	Roles        []Membership
	Disabled     bool // cannot sign in; all sessions have ended
	Created      time.Time
	Updated      time.Time
}

// Title returns the name under which others see the operator.
func (o Operator) Title() string {
	if o.Name != "" {
		return o.Name
	}
	return o.Email
}

// A Membership is a role in a project. A ProjectID of "" means the installation and all projects.
type Membership struct {
	ProjectID string
	Role      Role
}

// A Store keeps the rows. Missing rows are problem.NotFound. Each method is one transaction, and all
// methods may be called concurrently.
type Store interface {
	AccountStore
	SessionStore
	LinkStore

	// Record writes the audit event of a decision that changes no row.
	Record(ctx context.Context, e audit.Event) error
	// SweepOperators deletes sessions and links that expired before a moment.
	SweepOperators(ctx context.Context, before time.Time) error
}

// An AccountStore keeps operators.
type AccountStore interface {
	// CreateOperator returns problem.Conflict on "email" if the email is in use, and
	// problem.NotFound if a project does not exist.
	CreateOperator(ctx context.Context, o Operator) error
	FindOperator(ctx context.Context, id string) (Operator, error)
	FindOperatorByEmail(ctx context.Context, email string) (Operator, error)
	ListOperators(ctx context.Context, q page.Query) (page.Page[Operator], error)
	// UpdateOperator writes the fields that are not nil. A change that removes the last owner of the
	// installation is problem.Conflict. A new password, or disabling the operator, ends all its
	// sessions except keep. If the operator may no longer manage operators, the links it made end.
	UpdateOperator(ctx context.Context, id string, c Change, at time.Time, keep string) (Operator, error)
	// DeleteOperator deletes an operator and ends the links it made. Deleting the last owner is
	// problem.Conflict.
	DeleteOperator(ctx context.Context, id string) error
}

// A SessionStore keeps the sessions of operators.
type SessionStore interface {
	// CreateOperatorSession writes a session. If the operator no longer has the given password hash,
	// or is disabled, it returns problem.Conflict.
	CreateOperatorSession(ctx context.Context, s Session, passwordHash string) error
	// FindOperatorSession returns the session of a browser and its operator, even if the session has
	// ended or the operator is disabled.
	FindOperatorSession(ctx context.Context, browser string) (Session, Operator, error)
	// RaiseOperatorSession writes a raised session, which replaces the browser digest old. A missing
	// or ended session is problem.Conflict.
	RaiseOperatorSession(ctx context.Context, s Session, old string) error
	// SeeOperatorSession records that the session was used.
	SeeOperatorSession(ctx context.Context, id string, at time.Time) error
	// ListOperatorSessions returns the sessions of an operator that have not ended, newest first.
	ListOperatorSessions(ctx context.Context, operatorID string, now time.Time) ([]Session, error)
	// EndOperatorSession ends one of an operator's sessions, or all except keep if id is "".
	EndOperatorSession(ctx context.Context, operatorID, id, keep string, at time.Time) error
}

// A LinkStore keeps links that invite operators or reset their passwords.
type LinkStore interface {
	// CreateOperatorLink writes a link. If alone is set, an existing operator or valid invitation is
	// problem.Conflict. If its creator may no longer manage operators, it returns problem.Forbidden
	// or problem.NotFound.
	CreateOperatorLink(ctx context.Context, l Link, alone bool) error
	// FindOperatorLink finds a link by the hash of its token.
	FindOperatorLink(ctx context.Context, hash string) (Link, error)
	// UseOperatorLink creates the operator of a link, or sets its new password, and uses up the link:
	// of concurrent callers, one succeeds. A used or expired link is problem.NotFound. An email in
	// use is problem.Conflict, and the link remains valid.
	UseOperatorLink(ctx context.Context, hash string, o Operator, at time.Time) (Operator, error)
	// ListInvitations returns unused invitations, newest first, including expired ones until they
	// are swept.
	ListInvitations(ctx context.Context, q page.Query) (page.Page[Link], error)
	// WithdrawInvitation ends an invitation. A used one is problem.NotFound.
	WithdrawInvitation(ctx context.Context, id string, at time.Time) (Link, error)
	// RenewInvitation ends an invitation and writes the one that renew returns for it.
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
	Limits    *limit.Limiter   // limits password tries; nil means no limits
	Sessions  session.Store    // known networks, and recent throttling records; nil keeps none
	Idle      time.Duration    // after which an unused session ends; 0 means one hour
	Absolute  time.Duration    // after which every session ends; 0 means twelve hours
	Now       func() time.Time // nil means time.Now

	// Weak returns a problem on param if a password is too easily guessed. known lists the words that
	// an attacker would try first. If Weak is nil, only the length counts.
	Weak func(ctx context.Context, param, password string, known ...string) error
}

// Operators applies the rules. Its methods may be called concurrently.
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

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// Sweep deletes sessions and links that expired at least a day ago.
func (a *Operators) Sweep(ctx context.Context) error {
	return a.c.Store.SweepOperators(ctx, a.now().Add(-24*time.Hour))
}
