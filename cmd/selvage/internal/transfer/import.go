package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/recordings"
)

// A Status is the result of importing a record.
type Status string

// These are the possible statuses.
const (
	Created  Status = "created"
	Exists   Status = "exists" // something with this identity already exists, and was left unchanged
	Rejected Status = "rejected"
)

// An Outcome describes the result of importing a record.
type Outcome struct {
	Kind   string `json:"kind"`
	ID     string `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	Status Status `json:"status"`
	Error  string `json:"error,omitempty"`
	Note   string `json:"note,omitempty"` // what remains to be done by people

	Err error `json:"-"`
}

// An Importer creates what records describe. It leaves existing things unchanged, so an import can
// be repeated.
type Importer struct {
	Fabric     *fabric.Fabric
	IDP        *idp.Provider
	Recordings *recordings.Recordings // only its retention rules are used
	// Dry means that the importer only checks the records, and changes nothing.
	Dry bool

	seen map[string]bool // in a dry run: what the earlier records would have created
}

// Import creates what a record describes: a *Project, or a pointer to another record type. Import
// returns an error only if the record is not the cause, for example if the database connection was
// lost.
func (im *Importer) Import(ctx context.Context, record any) (Outcome, error) {
	var o Outcome
	var err error
	switch r := record.(type) {
	case *Project:
		o, err = im.project(ctx, r)
	case *Key:
		o, err = im.key(ctx, r)
	case *Client:
		o, err = im.client(ctx, r)
	case *Subscriber:
		o, err = im.subscriber(ctx, r)
	case *Resource:
		o, err = im.resource(ctx, r)
	case *Number:
		o, err = im.number(ctx, r)
	case *Webhook:
		o, err = im.webhook(ctx, r)
	case *Upstream:
		o, err = im.upstream(ctx, r)
	case *IngestKey:
		o, err = im.ingestKey(ctx, r)
	case *Rule:
		o, err = im.rule(ctx, r)
	}

	if err == nil {
		o.Status = cmp.Or(o.Status, Created)
		return o, nil
	}

	p := problem.First(err)
	if p == nil || p.Kind == problem.Unavailable {
		return o, err
	}
	o.Status, o.Err = Rejected, err
	return o, nil
}

// occupy reports whether an earlier record of a dry run has the same name. Without a dry run, it
// returns false.
func (im *Importer) occupy(parts ...string) bool {
	if !im.Dry {
		return false
	}
	if im.seen == nil {
		im.seen = make(map[string]bool)
	}
	key := fmt.Sprintf("%q", parts)
	taken := im.seen[key]
	im.seen[key] = true
	return taken
}

// checkProject returns an error if the project is unknown. In a dry run, a project that the import
// would create is known, too.
func (im *Importer) checkProject(ctx context.Context, id string) error {
	if im.Dry && im.seen[fmt.Sprintf("%q", []string{kindProject, id})] {
		return nil
	}
	_, err := im.Fabric.Projects.Find(ctx, id)
	return err
}

// found converts the error of a search. It returns true if the error is nil, and false if it is
// problem.NotFound.
func found(err error) (bool, error) {
	if errors.Is(err, problem.NotFound) {
		return false, nil
	}
	return err == nil, err
}

func (im *Importer) project(ctx context.Context, r *Project) (Outcome, error) {
	o := Outcome{Kind: kindProject, ID: r.ID, Name: r.Name}
	_, err := im.Fabric.Projects.Find(ctx, r.ID)
	there, err := found(err)
	if im.occupy(kindProject, r.ID) || there {
		o.Status = Exists
	}
	if err != nil || o.Status != "" {
		return o, err
	}

	return o, im.Fabric.Projects.Import(ctx, r.Project, im.Dry)
}

func (im *Importer) key(ctx context.Context, r *Key) (Outcome, error) {
	o := Outcome{Kind: kindKey, ID: r.ID, Name: cmp.Or(r.Name, r.Prefix)}
	if err := im.checkProject(ctx, r.ProjectID); err != nil {
		return o, err
	}
	_, err := im.Fabric.APIKeys.Find(ctx, r.ProjectID, r.ID)
	there, err := found(err)
	if im.occupy(kindKey, r.ID) || there {
		o.Status = Exists
	}
	if err != nil || o.Status != "" {
		return o, err
	}

	k := fabric.APIKey{
		ID:        r.ID,
		ProjectID: r.ProjectID,
		Name:      r.Name,
		Prefix:    r.Prefix,
		Hash:      r.Hash,
		Expires:   r.Expires,
		Created:   r.Created,
	}
	for _, name := range r.Scopes {
		scope, ok := fabric.ParseScope(name)
		if !ok {
			return o, problem.BadParam("scopes", "%q is not a scope", name)
		}
		k.Scopes = append(k.Scopes, scope)
	}
	return o, im.Fabric.APIKeys.Import(ctx, k, im.Dry)
}

func (im *Importer) client(ctx context.Context, r *Client) (Outcome, error) {
	o := Outcome{Kind: kindClient, ID: r.ID, Name: r.Name}
	if err := im.checkProject(ctx, r.ProjectID); err != nil {
		return o, err
	}

	old, err := im.IDP.Clients.Find(ctx, r.ID)
	there, err := found(err)
	if there && old.ProjectID != r.ProjectID {
		return o, problem.Taken("client_id", "a client of another project has this id")
	}
	if im.occupy(kindClient, r.ID) || there {
		o.Status = Exists
	}
	if err != nil || o.Status != "" {
		return o, err
	}

	c, err := im.IDP.Clients.Import(ctx, idp.Client{
		ID:           r.ID,
		ProjectID:    r.ProjectID,
		Name:         r.Name,
		Type:         r.Type,
		Profile:      r.Profile,
		AuthMethod:   r.AuthMethod,
		SecretHash:   r.SecretHash,
		FirstParty:   r.FirstParty,
		PKCEOptional: r.PKCEOptional,
		RedirectURIs: r.RedirectURIs,
		LogoutURIs:   r.LogoutURIs,
		Grants:       slices.Clone(r.Grants),
		Scopes:       slices.Clone(r.Scopes),
		AccessToken:  r.AccessToken,
		IDTokenAlg:   keys.Use(r.IDTokenAlg),
		Metadata:     r.Metadata,
		Created:      r.Created,
	}, im.Dry)
	if (c.AuthMethod == idp.AuthBasic || c.AuthMethod == idp.AuthPost) && c.SecretHash == "" {
		o.Note = "it has no secret; make one with `selvage client rotate-secret`"
	}
	return o, err
}

func (im *Importer) subscriber(ctx context.Context, r *Subscriber) (Outcome, error) {
	o := Outcome{Kind: kindSubscriber, ID: r.ID, Name: cmp.Or(r.Email, r.Reference)}
	if err := im.checkProject(ctx, r.ProjectID); err != nil {
		return o, err
	}
	if there, err := im.hasSubscriber(ctx, r); err != nil || there {
		o.Status = Exists
		return o, err
	}

	in := fabric.SubscriberImport{
		Identity:  fabric.Identity{ID: r.ID, Address: r.Address, Created: r.Created},
		Reference: r.Reference,
		SubscriberInput: fabric.SubscriberInput{
			Email:        set(r.Email),
			Verified:     &r.EmailVerified,
			PasswordHash: set(r.PasswordHash),
			Disabled:     &r.Disabled,
			Claims:       r.Claims,
			RecordCalls:  set(r.RecordCalls),
			Forwarding:   fabric.Forwarding{}.ChangeTo(r.Forwarding),
			Profile:      fabric.Person{}.ChangeTo(r.Person),
		},
	}
	s, err := im.Fabric.Subscribers.Import(ctx, r.ProjectID, in, im.Dry)
	if p := problem.First(err); p != nil && p.Kind == problem.Conflict {
		return o, problem.Taken("id", "a subscriber of another project has this id, "+
			"or one of this project has this reference")
	}
	if err == nil && !im.Dry {
		o.ID = s.ID
	}
	return o, err
}

// hasSubscriber reports whether the project has a subscriber with the id, email address or reference
// of a record.
func (im *Importer) hasSubscriber(ctx context.Context, r *Subscriber) (bool, error) {
	if r.ID != "" {
		_, err := im.Fabric.Subscribers.Find(ctx, r.ProjectID, r.ID)
		if there, err := found(err); there || err != nil {
			return there, err
		}
	}

	email := fabric.NormalizeEmail(r.Email)
	for _, name := range []string{email, r.Reference} {
		if name == "" {
			continue
		}
		_, err := im.Fabric.Subscribers.FindReferred(ctx, r.ProjectID, name)
		if there, err := found(err); there || err != nil {
			return there, err
		}
	}

	taken := r.ID != "" && im.occupy(kindSubscriber, r.ID)
	taken = email != "" && im.occupy("email", r.ProjectID, email) || taken
	return r.Reference != "" && im.occupy("reference", r.ProjectID, r.Reference) || taken, nil
}

// set returns a pointer to a value, or nil for the zero value.
func set[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func (im *Importer) resource(ctx context.Context, r *Resource) (Outcome, error) {
	k := im.Fabric.Resources.Kinds().ByType(r.Type)
	o := Outcome{Kind: cmp.Or(r.Type, kindResource), ID: r.ID}
	if k == nil {
		return o, problem.BadParam("type", "this installation has no resources of the type %q", r.Type)
	}

	o.Name = k.DisplayName(r.Fields)
	if err := im.checkProject(ctx, r.ProjectID); err != nil {
		return o, err
	}

	_, err := im.Fabric.Resources.Find(ctx, r.ProjectID, k, r.ID)
	there, err := found(err)
	if im.occupy(kindResource, r.ID) || there {
		o.Status = Exists
	}
	if err != nil || o.Status != "" {
		return o, err
	}

	if r.Secrets {
		o.Note = "set its secrets again; exports contain no secrets"
	}
	_, err = im.Fabric.Resources.Import(ctx, r.ProjectID, k,
		fabric.Identity{ID: r.ID, Address: r.Address, Created: r.Created},
		map[string]json.RawMessage(r.Fields), im.Dry)
	return o, err
}
