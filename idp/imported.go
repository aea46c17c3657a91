package idp

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

var (
	// importedID matches the ids that imported clients may have.
	importedID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,63}$`)
	// secretHash matches SHA-256 digests in hexadecimal.
	secretHash = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// ImportedSecret returns the SecretHash for a client's secret that another system has created.
func ImportedSecret(secret string) string { return hashSecret(secret) }

// Import registers a client with its id and the hash of its secret, so that the app does not have
// to change. Empty settings get the defaults for the client's Type. If dry is set, Import only checks the
// settings. If a client in any project already has this id, Import returns problem.Conflict.
func (cs *Clients) Import(ctx context.Context, c Client, dry bool) (Client, error) {
	c.fill()
	errs := []error{cs.checkSettings(ctx, &c)}
	if !importedID.MatchString(c.ID) {
		errs = append(errs, problem.BadParam("client_id",
			"client_id must have at most 64 letters, digits or characters of ._~-, and begin with a letter or digit"))
	}
	switch {
	case !c.AuthMethod.bySecret():
		c.SecretHash = ""
	case c.SecretHash != "" && !secretHash.MatchString(c.SecretHash):
		errs = append(errs, problem.BadParam("secret_hash", "secret_hash must be a SHA-256 digest in hexadecimal"))
	}

	if err := errors.Join(errs...); err != nil || dry {
		return c, err
	}

	if now := cs.Now(); c.Created.IsZero() || c.Created.After(now) {
		c.Created = now
	}
	c.Created = c.Created.UTC().Truncate(time.Microsecond)
	c.Updated = cs.Now()
	defer cs.recent.Drop(c.ID)
	return c, cs.store.CreateClient(ctx, c)
}

// Import creates an upstream provider with the fields of u, except its secret. If dry is set, it
// only checks the fields. If the project has a provider with the same name, Import returns
// problem.Conflict.
func (us *Upstreams) Import(ctx context.Context, u Upstream, dry bool) error {
	in := UpstreamInput{
		Name:     &u.Name,
		Issuer:   &u.Issuer,
		ClientID: &u.ClientID,
		Enabled:  &u.Enabled,
		Scopes:   &u.Scopes,
		Claims:   &u.Claims,
		SignUp:   &u.SignUp,
		Logout:   &u.Logout,
	}
	err := us.Check(Upstream{}, in)
	if id, parseErr := uuid.Parse(u.ID); parseErr != nil || id.String() != u.ID {
		err = errors.Join(err, problem.BadParam("id", "id must be a UUID"))
	}
	if err != nil || dry {
		return err
	}

	u.Secret, u.Updated = "", us.Now()
	if u.Created.IsZero() || u.Created.After(u.Updated) {
		u.Created = u.Updated
	}
	u.Created = u.Created.UTC().Truncate(time.Microsecond)
	defer us.offered.Drop(u.ProjectID)
	return us.store.CreateUpstream(ctx, u)
}
