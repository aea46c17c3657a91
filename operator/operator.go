// Package operator says who runs an installation: people with roles, how they come
// in by a link that is good once, and their sessions in the dashboard.
//
// What a role may do is one table, see [Role.May]. An installation that has had an
// owner keeps one: the store decides, however many ask at once. Sessions are rows
// alone: operators are few, and a session that was ended is dead at every node with
// the commit.
//
// The package knows neither HTTP nor SQL; package dashboard shows the pages, package
// store keeps the rows.
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

// An Operator is somebody who runs the installation, or projects of it.
type Operator struct {
	ID           string
	Email        string // as fabric.NormalizeEmail gives it; of the whole installation, no two are alike
	Name         string
	PasswordHash string // "" means that no password opens it
	Roles        []Membership
	Disabled     bool // signs in nowhere; its sessions have ended
	Created      time.Time
	Updated      time.Time
}

// Title is how others see the operator.
func (o Operator) Title() string {
	if o.Name != "" {
		return o.Name
	}
	return o.Email
}

// A Membership is a role in a project, or with a ProjectID of "" in the installation
// and each of its projects.
type Membership struct {
	ProjectID string
	Role      Role
}

// A Store keeps the rows. Absent things are problem.NotFound. Each method is one
// transaction, and all may be called at once.
type Store interface {
	// CreateOperator returns problem.Conflict on "email" where that is in use, and
	// problem.NotFound where a project is not there.
	CreateOperator(ctx context.Context, o Operator) error
	FindOperator(ctx context.Context, id string) (Operator, error)
	FindOperatorByEmail(ctx context.Context, email string) (Operator, error)
	ListOperators(ctx context.Context, q page.Query) (page.Page[Operator], error)
	// UpdateOperator writes what is not nil. What takes the last owner from the
	// installation is problem.Conflict. A new password and disabling end the
	// operator's sessions, but for the one of keep. Who may keep no operators any
	// more has the links ended that it made.
	UpdateOperator(ctx context.Context, id string, c Change, at time.Time, keep string) (Operator, error)
	// DeleteOperator is problem.Conflict for the last owner. The links that the operator
	// made end.
	DeleteOperator(ctx context.Context, id string) error

	// CreateOperatorSession writes a session, if the operator still has the password
	// hash that was checked and is not disabled; else it is problem.Conflict.
	CreateOperatorSession(ctx context.Context, s Session, passwordHash string) error
	// FindOperatorSession finds the session of a browser with its operator, ended ones
	// and those of the disabled too.
	FindOperatorSession(ctx context.Context, browser string) (Session, Operator, error)
	// RaiseOperatorSession writes what a session was raised to, with another browser in
	// the place of old; one that is not there, or has ended, is problem.Conflict.
	RaiseOperatorSession(ctx context.Context, s Session, old string) error
	// SeeOperatorSession notes that the session was used.
	SeeOperatorSession(ctx context.Context, id string, at time.Time) error
	// ListOperatorSessions returns those of an operator that have not ended, newest first.
	ListOperatorSessions(ctx context.Context, operatorID string, now time.Time) ([]Session, error)
	// EndOperatorSession ends one of an operator's sessions; with an id of "" all but keep.
	EndOperatorSession(ctx context.Context, operatorID, id, keep string, at time.Time) error

	// CreateOperatorLink writes a link. With alone, it is problem.Conflict where there
	// is an operator, or another link for one to come that is good. Where who makes it may
	// not keep operators any more, it is problem.Forbidden, or problem.NotFound.
	CreateOperatorLink(ctx context.Context, l Link, alone bool) error
	// FindOperatorLink finds a link by the hash of its token.
	FindOperatorLink(ctx context.Context, hash string) (Link, error)
	// UseOperatorLink makes the operator of a link, or gives one its new password, and
	// uses the link up: of many callers one. A link that was used or is over is
	// problem.NotFound; an e-mail in use is problem.Conflict, and the link stays good.
	UseOperatorLink(ctx context.Context, hash string, o Operator, at time.Time) (Operator, error)
	// ListInvitations returns the links for operators to come that were not used, the newest
	// first; those that are over are among them until they are swept.
	ListInvitations(ctx context.Context, q page.Query) (page.Page[Link], error)
	// WithdrawInvitation ends such a link; one that was used is problem.NotFound.
	WithdrawInvitation(ctx context.Context, id string, at time.Time) (Link, error)
	// RenewInvitation ends such a link, and writes the one that renew makes of it.
	RenewInvitation(ctx context.Context, id string, renew func(Link) Link) (Link, error)
	// Record writes the audit event of a decision that changes no row.
	Record(ctx context.Context, e audit.Event) error
	// SweepOperators deletes sessions and links that were over before a moment.
	SweepOperators(ctx context.Context, before time.Time) error
}

// A Change is what of an operator to write; nil fields stay.
type Change struct {
	Name         *string
	PasswordHash *string
	Disabled     *bool
	Roles        []Membership // in place of all that were
}

// Config says what Operators work with.
type Config struct {
	Store     Store
	Passwords *password.Hasher
	Limits    *limit.Limiter   // of tries of passwords; nil holds nobody
	Sessions  session.Store    // from where operators have signed in, and what was written down lately; nil forgets it
	Idle      time.Duration    // a session that is not used ends; 0 means an hour
	Absolute  time.Duration    // a session ends; 0 means twelve hours
	Now       func() time.Time // nil means time.Now

	// Weak reports why a password is too easily guessed, as a problem on param; known
	// is what a guesser would try first. Nil asks for length alone.
	Weak func(ctx context.Context, param, password string, known ...string) error
}

// Operators applies the rules. Its methods may be called at once from any number of
// goroutines.
type Operators struct{ c Config }

// New makes Operators.
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

// Sweep deletes sessions and links that have been over for a day.
func (a *Operators) Sweep(ctx context.Context) error {
	return a.c.Store.SweepOperators(ctx, a.now().Add(-24*time.Hour))
}
