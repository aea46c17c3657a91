package idp

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/keys"
)

// core holds what the parts of a Provider share: the configuration, the current lifetimes, and a
// cache of projects.
type core struct {
	Config
	lifetimes atomic.Pointer[Lifetimes]
	projects  *cache.Cache[fabric.Project]
	open      *cache.Cache[bool] // whether people ("") or clients ("clients") can register in some project
}

// Lifetimes holds how long things are valid. If a field is zero or negative, its default applies,
// which is in its comment.
type Lifetimes struct {
	Request         time.Duration // an authorization request during the sign-in: 30 minutes
	Pushed          time.Duration // a pushed authorization request that no browser has opened: 90 seconds
	Device          time.Duration // a device that is waiting for its login: 10 minutes
	Code            time.Duration // an authorization code: 60 seconds (RFC 6749, section 4.1.2 allows ten minutes)
	IDToken         time.Duration // 1 hour
	AccessFabric    time.Duration // a sealed access token: 2 hours; at most MaxAccess
	AccessJWT       time.Duration // a JWT access token: 15 minutes; at most MaxAccess
	RefreshIdle     time.Duration // an unused refresh token: 30 days
	RefreshAbsolute time.Duration // a chain of refresh tokens: 180 days
	BrowserIdle     time.Duration // an unused browser session: 12 hours
	BrowserAbsolute time.Duration // a browser session: 7 days
	ResetLink       time.Duration // a link to set a new password, and other links that start on our pages: 30 minutes
	VerifyLink      time.Duration // a link to verify an email: 24 hours
	InviteLink      time.Duration // an invitation: 7 days
}

func (l *Lifetimes) fill() {
	setDefault := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}

	setDefault(&l.Request, 30*time.Minute)
	setDefault(&l.Pushed, 90*time.Second)
	setDefault(&l.Device, 10*time.Minute)
	setDefault(&l.Code, time.Minute)
	setDefault(&l.IDToken, time.Hour)
	setDefault(&l.AccessFabric, 2*time.Hour)
	setDefault(&l.AccessJWT, 15*time.Minute)
	setDefault(&l.RefreshIdle, 30*24*time.Hour)
	setDefault(&l.RefreshAbsolute, 180*24*time.Hour)
	setDefault(&l.BrowserIdle, 12*time.Hour)
	setDefault(&l.BrowserAbsolute, 7*24*time.Hour)
	setDefault(&l.ResetLink, 30*time.Minute)
	setDefault(&l.VerifyLink, 24*time.Hour)
	setDefault(&l.InviteLink, 7*24*time.Hour)
}

// link returns how long a link in an email is valid after it is created.
func (l Lifetimes) link(purpose mail.Kind) time.Duration {
	switch purpose {
	case mail.Verify:
		return l.VerifyLink
	case mail.Invitation:
		return l.InviteLink
	}
	return l.ResetLink
}

// MaxAccess is the longest lifetime that can be configured for access tokens. Revocations are kept
// for longer than that. They therefore outlive every access token, whichever node issued it, with
// any configuration.
const (
	MaxAccess  = 30 * 24 * time.Hour
	remembered = MaxAccess + 24*time.Hour
)

// This line compiles only if a key is kept until everything that it signed has expired.
const _ = uint64(keys.Kept - MaxAccess)

// Lifetimes returns the current lifetimes of newly issued tokens, codes and links.
func (co *core) Lifetimes() Lifetimes { return *co.lifetimes.Load() }

// SetLifetimes changes the lifetimes of tokens, codes and links that are issued from now on. It may
// be called concurrently with all other methods.
func (co *core) SetLifetimes(l Lifetimes) {
	l.fill()
	l.AccessFabric, l.AccessJWT = min(l.AccessFabric, MaxAccess), min(l.AccessJWT, MaxAccess)
	co.lifetimes.Store(&l)
}

// revocationOf returns a revocation of all past and future tokens that belong to the entity with
// this kind and id, such as a login or a client.
func (co *core) revocationOf(kind, id string) revocation.Revocation {
	until := co.Now().Add(remembered)
	return revocation.Revocation{Kind: kind, ID: id, Until: until, Expires: until}
}

// project returns a project, from a cache.
func (co *core) project(ctx context.Context, id string) (fabric.Project, error) {
	return co.projects.Load(id, func() (fabric.Project, error) { return co.Fabric.Projects.Find(ctx, id) })
}

// OnlyProject returns the id of the only project, or "" if there is not exactly one.
func (co *core) OnlyProject(ctx context.Context) (string, error) {
	projects, err := co.Fabric.Projects.List(ctx, page.Query{Size: 2})
	if err != nil {
		return "", err
	}
	if len(projects.Items) != 1 {
		return "", nil
	}
	return projects.Items[0].ID, nil
}

// MayRegister reports whether people may create their own accounts in a project.
func (co *core) MayRegister(ctx context.Context, projectID string) (bool, error) {
	project, err := co.project(ctx, projectID)
	if err != nil {
		return false, err
	}
	return project.Registration == fabric.RegistrationOpen, nil
}

// MayRegisterSomewhere reports whether people may create their own accounts in at least one
// project.
func (co *core) MayRegisterSomewhere(ctx context.Context) (bool, error) {
	return co.open.Load("", func() (bool, error) { return co.Fabric.Projects.AnyRegistration(ctx) })
}

// MayClientsRegister reports whether clients can register themselves in at least one project.
func (co *core) MayClientsRegister(ctx context.Context) (bool, error) {
	return co.open.Load("clients", func() (bool, error) {
		_, err := co.Fabric.Projects.FindRegistrar(ctx)
		return err == nil, problem.IgnoreNotFound(err)
	})
}

// checkRegistrationOpen returns problem.NotFound unless people may create their own accounts in the
// project.
func (co *core) checkRegistrationOpen(ctx context.Context, projectID string) error {
	open, err := co.MayRegister(ctx, projectID)
	if err != nil {
		return err
	}
	if !open {
		return problem.NoSuch("registration")
	}
	return nil
}

// newLetter returns a letter that is dated with the current time.
func (co *core) newLetter(kind mail.Kind, projectID, to string, facts map[string]string) (mail.Letter, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return mail.Letter{}, fmt.Errorf("creating mail id: %w", err)
	}
	return mail.Letter{
		ID:        id.String(),
		ProjectID: projectID,
		Kind:      kind,
		To:        to,
		Facts:     facts,
		Created:   co.Now(),
	}, nil
}

// updateTries is how often an update is tried while other callers update the same row.
const updateTries = 5

// updateTime returns the time of an update. It is later than the previous update, even if the clock is
// behind. Stores detect concurrent updates by this time.
func (co *core) updateTime(previous time.Time) time.Time {
	now := co.Now()
	if !now.After(previous) {
		return previous.Add(time.Microsecond)
	}
	return now
}
