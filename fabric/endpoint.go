package fabric

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// EndpointKind is the type of the resources that are SIP endpoints.
const EndpointKind = "sip_endpoint"

// Endpoints creates the passwords of SIP endpoints. [Resources] creates and changes the endpoints.
type Endpoints struct {
	*core
	store EndpointStore
}

// An EndpointStore keeps the passwords of SIP endpoints; see [Stores].
type EndpointStore interface {
	// FindResource returns a resource of a project, by its type and id.
	FindResource(ctx context.Context, projectID, typ, id string) (Resource, error)
	// NamedEndpoints returns at most limit SIP endpoints with the given username, from all projects
	// and oldest first.
	NamedEndpoints(ctx context.Context, username string, limit int) ([]Resource, error)
	// SetEndpointPassword writes the sealed password of a SIP endpoint. old is the time of the last
	// change that the caller has read. If the endpoint has changed again, SetEndpointPassword
	// returns problem.Conflict.
	SetEndpointPassword(ctx context.Context, r Resource, old time.Time, end revocation.Revocation) error
}

// NewPassword creates a password for the phones of a SIP endpoint, and returns the account with the
// new password. The password is stored sealed and is not shown again. An earlier password is no
// longer valid, and the calls of phones with the earlier password end.
func (es *Endpoints) NewPassword(ctx context.Context, projectID, id string) (a SIPAccount, err error) {
	id, ok := canonical(id)
	if !ok {
		return a, problem.NoSuch("SIP endpoint")
	}
	password := rand.Text()
	raw, err := json.Marshal(map[string]string{"password": password})
	if err != nil {
		return a, fmt.Errorf("writing a SIP password: %w", err)
	}

	err = again(func() error {
		r, err := es.store.FindResource(ctx, projectID, EndpointKind, id)
		if errors.Is(err, problem.NotFound) {
			return problem.NoSuch("SIP endpoint")
		}
		if err != nil {
			return err
		}
		if r.Secrets, err = es.c.Ring.SealSecret(ResourceSecretName(id), raw); err != nil {
			return err
		}
		old := r.Updated
		r.Updated = later(es.now(), old.Add(time.Microsecond))
		a = SIPAccount{credentialOf(r), password}
		return es.store.SetEndpointPassword(ctx, r, old, revocationUntil(revocation.Token, r.ID, r.Updated))
	})
	if err != nil {
		return a, err
	}
	return a, es.c.Revocations.Sync(ctx)
}

// accounts returns the accounts of the SIP endpoints that have the given username, except those
// without a password. If a password cannot be opened, accounts returns ErrDamaged together with the
// other accounts.
func (es *Endpoints) accounts(ctx context.Context, username string) (all []SIPAccount, err error) {
	found, err := es.store.NamedEndpoints(ctx, username, maxNamesakes)
	if err != nil {
		return nil, err
	}

	var damage error
	for _, r := range found {
		if r.Secrets == "" {
			continue
		}
		secrets, err := es.openSecrets(r.ID, r.Secrets)
		if err != nil {
			damage = errors.Join(damage, fmt.Errorf("%w: %s: %w", ErrDamaged, r.ID, err))
			continue
		}
		all = append(all, SIPAccount{credentialOf(r), secrets.Text("password")})
	}
	return all, damage
}

// credentialOf returns the credentials of a SIP endpoint.
func credentialOf(r Resource) SIPCredential {
	return SIPCredential{
		ID:         r.ID,
		ProjectID:  r.ProjectID,
		EndpointID: r.ID,
		Fields:     r.Fields,
		Secrets:    r.Secrets,
		Created:    r.Created,
		Updated:    r.Updated,
	}
}

// find returns the credentials of a SIP endpoint. If the endpoint does not exist or has no
// password, find returns problem.NotFound.
func (es *Endpoints) find(ctx context.Context, projectID, id string) (SIPCredential, error) {
	r, err := es.store.FindResource(ctx, projectID, EndpointKind, id)
	if err != nil {
		return SIPCredential{}, err
	}
	if r.Secrets == "" {
		return SIPCredential{}, problem.NoSuch("SIP credentials")
	}
	return credentialOf(r), nil
}

// These call handlers of a SIP endpoint limit what its phones can call.
const (
	handlerBlockNumbers = "block-pstn"
	handlerResource     = "resource"
)

// MayCallNumbers reports whether a phone with the credentials may dial phone numbers. The project's
// rules also apply.
func (c SIPCredential) MayCallNumbers() bool {
	return c.EndpointID == "" || c.Fields.Text("call_handler") != handlerBlockNumbers
}

// HandlerOf returns the address that receives all calls from a phone with the credentials, no
// matter what the phone dials. If no resource handles the calls, ok is false. If the resource is not
// set, is gone, or belongs to a disabled subscriber, HandlerOf returns problem.NotFound.
func (sip *SIP) HandlerOf(ctx context.Context, c SIPCredential) (a Address, ok bool, err error) {
	if c.EndpointID == "" || c.Fields.Text("call_handler") != handlerResource {
		return a, false, nil
	}
	id := c.Fields.Text(handlerField)
	if id == "" {
		return a, false, problem.NoSuch("call handler")
	}
	a, err = sip.resources.addresses.first(ctx, c.ProjectID, id)
	return a, err == nil, err
}

// AddressOf returns the first address of the SIP endpoint that the credentials belong to.
func (sip *SIP) AddressOf(ctx context.Context, c SIPCredential) (Address, error) {
	return sip.resources.addresses.first(ctx, c.ProjectID, c.EndpointID)
}
