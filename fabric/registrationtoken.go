package fabric

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// RegistrationTokens manages the tokens with which OAuth clients register themselves.
type RegistrationTokens struct {
	*core
	store RegistrationTokenStore
}

// A RegistrationTokenStore keeps initial access tokens; see [Stores].
type RegistrationTokenStore interface {
	// CreateRegistrationToken returns problem.NotFound if the project is unknown, and
	// problem.Unauthenticated if the caller no longer has the rights in by.
	CreateRegistrationToken(ctx context.Context, k RegistrationToken, by *Rights) error
	FindRegistrationTokenByHash(ctx context.Context, hash string) (RegistrationToken, error)
	// ListRegistrationTokens lists the tokens that contain each word of text in their name, prefix
	// or id.
	ListRegistrationTokens(
		ctx context.Context, projectID, text string, q page.Query,
	) (page.Page[RegistrationToken], error)
	// RevokeRegistrationToken revokes a token. A token that is already revoked is left unchanged.
	RevokeRegistrationToken(ctx context.Context, projectID, id string, at time.Time) error
}

// A RegistrationToken is an initial access token (RFC 7591, section 1.2). Its holder can only
// register OAuth clients in the token's project.
type RegistrationToken struct {
	ID        string
	ProjectID string
	Name      string
	Prefix    string // the secret's first characters, by which people recognize it
	Hash      string // SHA-256 of the secret
	Created   time.Time
	Expires   time.Time // zero means never
	Revoked   time.Time // zero while the token is valid
	MaxUses   int64     // how many clients may register with it; 0 means any number
	Uses      int64     // how many clients have registered with it
}

// IsUsable reports whether the token can register a client at the time now.
func (k RegistrationToken) IsUsable(now time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || now.Before(k.Expires)) && !k.IsUsedUp()
}

// IsUsedUp reports whether the token has registered as many clients as it may.
func (k RegistrationToken) IsUsedUp() bool { return k.MaxUses > 0 && k.Uses >= k.MaxUses }

// A RegistrationTokenInput describes an initial access token to create.
type RegistrationTokenInput struct {
	Name    string
	Expires time.Time // zero means the default; see DefaultRegistration
	MaxUses int64     // 0 means any number
}

// DefaultRegistration is how long an initial access token is valid if nothing else is set.
const DefaultRegistration = 30 * 24 * time.Hour

// maxRegistrationUses is the maximum MaxUses of a token.
const maxRegistrationUses = 1_000_000

// registrationPrefix begins every initial access token.
const registrationPrefix = "rt_"

// Create creates an initial access token for a project and returns its secret, which cannot be read
// again. The token expires no later than the rights in by. If by is nil, an operator creates the
// token.
func (ts *RegistrationTokens) Create(
	ctx context.Context, projectID string, in RegistrationTokenInput, by *Rights,
) (k RegistrationToken, secret string, err error) {
	projectID, ok := canonical(projectID)
	if !ok {
		return RegistrationToken{}, "", problem.NoSuch("project")
	}

	now := ts.now()
	if in.Expires.IsZero() {
		in.Expires = now.Add(DefaultRegistration)
		if end := by.end(); isLater(in.Expires, end) {
			in.Expires = end
		}
	}
	if err := errors.Join(in.check(now), by.permit(nil, in.Expires)); err != nil {
		return RegistrationToken{}, "", err
	}

	var random [24]byte
	rand.Read(random[:])
	secret = registrationPrefix + hex.EncodeToString(random[:])
	k = RegistrationToken{
		ID:        newID(),
		ProjectID: projectID,
		Name:      in.Name,
		Prefix:    secret[:10],
		Hash:      hashKey(secret),
		Created:   now,
		Expires:   in.Expires,
		MaxUses:   in.MaxUses,
	}
	if err := ts.store.CreateRegistrationToken(ctx, k, by); err != nil {
		return RegistrationToken{}, "", fmt.Errorf("creating registration token: %w", err)
	}
	return k, secret, nil
}

// check reports everything that is wrong with the input at the time now.
func (in RegistrationTokenInput) check(now time.Time) error {
	errs := []error{checkText("name", in.Name)}
	if !in.Expires.After(now) {
		errs = append(errs, problem.BadParam("expires_at", "expires_at must be in the future"))
	}
	if in.MaxUses < 0 || in.MaxUses > maxRegistrationUses {
		errs = append(errs, problem.BadParam("max_uses", "max_uses must be from 0 to %d", maxRegistrationUses))
	}
	return errors.Join(errs...)
}

// List returns a page of a project's initial access tokens, including revoked tokens.
func (ts *RegistrationTokens) List(
	ctx context.Context, projectID string, q page.Query,
) (page.Page[RegistrationToken], error) {
	return ts.store.ListRegistrationTokens(ctx, projectID, "", q)
}

// Search returns a page of a project's tokens that contain each word of text in their
// name, prefix or id.
func (ts *RegistrationTokens) Search(
	ctx context.Context, projectID, text string, q page.Query,
) (page.Page[RegistrationToken], error) {
	return ts.store.ListRegistrationTokens(ctx, projectID, text, q)
}

// Authenticate returns the token with this secret. If the token is unknown, revoked, expired or
// used up, it returns problem.Unauthenticated.
func (ts *RegistrationTokens) Authenticate(ctx context.Context, secret string) (RegistrationToken, error) {
	refused := problem.New(problem.Unauthenticated, "invalid_token",
		"the initial access token is unknown, revoked, expired or used up")
	if !strings.HasPrefix(secret, registrationPrefix) || len(secret) > 255 {
		return RegistrationToken{}, refused
	}

	k, err := ts.store.FindRegistrationTokenByHash(ctx, hashKey(secret))
	if errors.Is(err, problem.NotFound) {
		return RegistrationToken{}, refused
	}
	if err != nil {
		return RegistrationToken{}, fmt.Errorf("finding registration token: %w", err)
	}
	if !k.IsUsable(ts.now()) {
		return RegistrationToken{}, refused
	}
	return k, nil
}

// Revoke revokes an initial access token of a project. Clients that have registered with it remain.
func (ts *RegistrationTokens) Revoke(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("registration token")
	}
	return ts.store.RevokeRegistrationToken(ctx, projectID, id, ts.now())
}
