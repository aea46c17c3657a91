package idp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
)

// RegisteredOpenly is the RegisteredBy of clients that registered themselves without a token.
const RegisteredOpenly = "open"

// A RegistrationStore stores clients that register themselves.
type RegistrationStore interface {
	// RegisterClient writes a client whose RegisteredBy is set. In the same transaction, it counts
	// the use of the client's initial access token. If the project or the token does not accept the
	// client, it returns ErrNoRegistration. most is the maximum number of self-registered clients
	// in a project; 0 means no limit. If the project has reached this number, RegisterClient returns
	// problem.Forbidden.
	RegisterClient(ctx context.Context, c Client, most int) error
}

// ErrNoRegistration returns the error for a client that may not register itself. It does not reveal
// whether the reason is the token or the project's setting.
func ErrNoRegistration() *problem.Error {
	return problem.New(problem.Unauthenticated, "invalid_token",
		"registration needs a valid initial access token of a project that accepts registrations")
}

// Registrations lets clients register themselves, and manage their registration (RFC 7591; RFC
// 7592; OpenID Connect Dynamic Client Registration). Self-registered clients are never first-party
// and get JWT access tokens. They may request only the scopes of OpenID Connect until an operator
// gives them more. A client that replaces its registration may give up scopes, but only an operator
// can add scopes.
type Registrations struct {
	*core
	clients *Clients
	store   RegistrationStore
}

// A Registrar is a project in which a client may register, together with the initial access token
// that permits it.
type Registrar struct {
	ProjectID string
	TokenID   string // "" if the project has open registration
}

// A RegisteredClient is a client with the credentials that only the client itself gets.
type RegisteredClient struct {
	Client
	Secret      string // "" unless it was just created
	AccessToken string // registration access token
}

// Admit returns the registrar for an initial access token or, without a token, for a project with
// open registration. If there is no such project, or the token is invalid, it returns
// ErrNoRegistration. Each call counts against the limit of the network.
func (rs *Registrations) Admit(ctx context.Context, token, network string) (Registrar, error) {
	if err := rs.Limits.TakeNetwork(ctx, limit.RegisterPerNetwork, network); err != nil {
		return Registrar{}, err
	}
	if token == "" {
		open, err := rs.Fabric.Projects.FindRegistrar(ctx)
		if err != nil && !errors.Is(err, problem.NotFound) {
			return Registrar{}, err
		}
		if err != nil || open.ClientRegistration != fabric.ClientsOpen {
			return Registrar{}, ErrNoRegistration()
		}
		return Registrar{ProjectID: open.ID}, nil
	}

	initial, err := rs.Fabric.RegistrationTokens.Authenticate(ctx, token)
	if errors.Is(err, problem.Unauthenticated) {
		return Registrar{}, ErrNoRegistration()
	}
	if err != nil {
		return Registrar{}, err
	}
	project, err := rs.Fabric.Projects.Find(ctx, initial.ProjectID)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Registrar{}, err
	}
	if err != nil || project.ClientRegistration == fabric.ClientsOff {
		return Registrar{}, ErrNoRegistration()
	}
	return Registrar{ProjectID: initial.ProjectID, TokenID: initial.ID}, nil
}

// Register registers a client. The registration access token and the secret in the result cannot be
// read again.
func (rs *Registrations) Register(ctx context.Context, by Registrar, m ClientMetadata) (RegisteredClient, error) {
	c, err := rs.newClient(by)
	if err != nil {
		return RegisteredClient{}, err
	}
	if err := m.applyTo(&c); err != nil {
		return RegisteredClient{}, errors.Join(err, c.check())
	}
	if err := rs.clients.checkSettings(ctx, &c); err != nil {
		return RegisteredClient{}, err
	}

	made := RegisteredClient{Client: c}
	made.AccessToken, made.RegistrationHash = newSecret()
	if c.AuthMethod.bySecret() {
		made.Secret, made.SecretHash = newSecret()
	}
	logo := rs.fetchLogo(ctx, c.LogoURI)
	if err := rs.store.RegisterClient(ctx, made.Client, rs.MaxRegistered); err != nil {
		return RegisteredClient{}, err
	}

	if logo.Name != "" {
		made.Client, err = rs.clients.SetLogos(ctx, c.ID, brand.Logos{brand.Light: logo})
		if err != nil { // if the logo cannot be stored, the client is not registered
			return RegisteredClient{}, errors.Join(err, rs.clients.Delete(ctx, c.ID))
		}
	}
	rs.Observe("client_registered")
	return made, nil
}

// newClient returns a new client without the settings that the client states about itself.
func (rs *Registrations) newClient(by Registrar) (Client, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Client{}, fmt.Errorf("creating client id: %w", err)
	}
	now := rs.Now()
	c := Client{
		ID:           id.String(),
		ProjectID:    by.ProjectID,
		Profile:      Default,
		AccessToken:  JWTToken,
		PKCEOptional: true,
		Scopes:       slices.Clone(loginScopes),
		RegisteredBy: by.TokenID,
		Created:      now,
		Updated:      now,
	}
	if by.TokenID == "" {
		c.RegisteredBy = RegisteredOpenly
	}
	return c, nil
}

// fetchLogo returns the logo at uri. If the logo cannot be read or shown, fetchLogo returns the
// zero value, because a client works without a logo.
func (rs *Registrations) fetchLogo(ctx context.Context, uri string) brand.Logo {
	if uri == "" {
		return brand.Logo{}
	}
	raw, err := rs.Fetch(ctx, uri, brand.MaxUpload)
	if err != nil {
		return brand.Logo{}
	}
	l, err := brand.MakeLogo(ctx, "logo_uri", raw)
	if err != nil {
		return brand.Logo{}
	}
	return l
}

func errNotRegistered() error {
	return problem.New(problem.Unauthenticated, "invalid_token",
		"the registration access token does not belong to this client")
}

// gone converts the error for a client that was deleted after it authenticated. The client's
// registration access token ended at the same time (RFC 7592, section 2).
func gone(err error) error {
	if errors.Is(err, problem.NotFound) {
		return errNotRegistered()
	}
	return err
}

// Authenticate returns the client with this id, if token is its registration access token.
// Otherwise it returns problem.Unauthenticated.
func (rs *Registrations) Authenticate(ctx context.Context, id, token string) (RegisteredClient, error) {
	c, err := rs.clients.Find(ctx, id)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return RegisteredClient{}, err
	}
	if err != nil || !sameHash(hashSecret(token), c.RegistrationHash) {
		return RegisteredClient{}, errNotRegistered()
	}
	return RegisteredClient{Client: c, AccessToken: token}, nil
}

// Update replaces the settings of a registered client with the settings in m (RFC 7592, section
// 2.2). If the client now needs a secret, but has none or did not need one before, Update creates one.
// Update counts against the limit of the network, because it may fetch documents.
func (rs *Registrations) Update(ctx context.Context, c RegisteredClient, m ClientMetadata,
	network string) (RegisteredClient, error) {
	if err := rs.Limits.TakeNetwork(ctx, limit.RegisterPerNetwork, network); err != nil {
		return c, err
	}
	described := c.Client
	if err := m.applyTo(&described); err != nil {
		return c, errors.Join(err, described.check())
	}
	err := rs.clients.Change(ctx, c.ID, func(now *Client) { _ = m.applyTo(now) }) // checked above
	if err != nil {
		return c, gone(err)
	}

	if err := rs.updateLogo(ctx, c.Client, m.LogoURI); err != nil {
		return c, gone(err)
	}
	updated := RegisteredClient{AccessToken: c.AccessToken}
	if described.AuthMethod.bySecret() && (!c.AuthMethod.bySecret() || c.SecretHash == "") {
		updated.Client, updated.Secret, err = rs.clients.RotateSecret(ctx, c.ID, 0, nil)
		return updated, gone(err)
	}
	updated.Client, err = rs.clients.Find(ctx, c.ID)
	return updated, gone(err)
}

// updateLogo replaces the logo of a client if its logo_uri has changed to uri.
func (rs *Registrations) updateLogo(ctx context.Context, was Client, uri string) error {
	if uri == was.LogoURI {
		return nil
	}
	_, err := rs.clients.SetLogos(ctx, was.ID, brand.Logos{brand.Light: rs.fetchLogo(ctx, uri)})
	return err
}

// Delete deletes a registered client. Its tokens are revoked, as for any deleted client. If another
// request has deleted the client in the meantime, Delete returns problem.Unauthenticated.
func (rs *Registrations) Delete(ctx context.Context, c RegisteredClient) error {
	return gone(rs.clients.Delete(ctx, c.ID))
}
