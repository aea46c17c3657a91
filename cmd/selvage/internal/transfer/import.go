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
	Note   string `json:"note,omitempty"` // what a person still has to do

	Err error `json:"-"`
}

// An Importer creates what records describe. It leaves existing things unchanged, so an import can
// be repeated. The only exception: an existing phone number without a resource is assigned to the
// resource in the record.
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

// occupy claims a name in a dry run, and reports whether an earlier record has already claimed it. In a
// real import, it does nothing and returns false.
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

// exists reports whether something with this ID exists, or would exist after the earlier records of a dry
// run. searchErr is the error of the search for the ID.
func (im *Importer) exists(kind, id string, searchErr error) (bool, error) {
	taken := im.occupy(kind, id)
	exists, err := found(searchErr)
	return exists || taken, err
}

// create imports a record by calling add, unless the project already has something with the record's ID.
// find looks for this ID, and returns problem.NotFound if the project does not have it.
func (im *Importer) create(
	ctx context.Context, o Outcome, projectID string, find, add func() error,
) (Outcome, error) {
	if err := im.checkProject(ctx, projectID); err != nil {
		return o, err
	}
	exists, err := im.exists(o.Kind, o.ID, find())
	if err != nil {
		return o, err
	}
	if exists {
		o.Status = Exists
		return o, nil
	}
	return o, add()
}

func (im *Importer) project(ctx context.Context, r *Project) (Outcome, error) {
	o := Outcome{Kind: kindProject, ID: r.ID, Name: r.Name}
	_, err := im.Fabric.Projects.Find(ctx, r.ID)
	exists, err := im.exists(kindProject, r.ID, err)
	if err != nil {
		return o, err
	}
	if exists {
		o.Status = Exists
		return o, nil
	}

	return o, im.Fabric.Projects.Import(ctx, r.Project, im.Dry)
}

func (im *Importer) key(ctx context.Context, r *Key) (Outcome, error) {
	o := Outcome{Kind: kindKey, ID: r.ID, Name: cmp.Or(r.Name, r.Prefix)}
	if err := im.checkProject(ctx, r.ProjectID); err != nil {
		return o, err
	}
	_, err := im.Fabric.APIKeys.Find(ctx, r.ProjectID, r.ID)
	exists, err := im.exists(kindKey, r.ID, err)
	if err != nil {
		return o, err
	}
	if exists {
		o.Status = Exists
		return o, nil
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
	if err == nil && old.ProjectID != r.ProjectID {
		return o, problem.Taken("client_id", "a client of another project has this id")
	}
	exists, err := im.exists(kindClient, r.ID, err)
	if err != nil {
		return o, err
	}
	if exists {
		o.Status = Exists
		return o, nil
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
	if err != nil {
		return o, err
	}
	needsSecret := c.AuthMethod == idp.AuthBasic || c.AuthMethod == idp.AuthPost
	if needsSecret && c.SecretHash == "" {
		o.Note = "it has no secret; make one with `selvage client rotate-secret`"
	}
	return o, nil
}

func (im *Importer) resource(ctx context.Context, r *Resource) (Outcome, error) {
	o := Outcome{Kind: cmp.Or(r.Type, kindResource), ID: r.ID}
	k := im.Fabric.Resources.Kinds().ByType(r.Type)
	if k == nil {
		return o, problem.BadParam("type", "this installation has no resources of the type %q", r.Type)
	}

	o.Name = k.DisplayName(r.Fields)
	if err := im.checkProject(ctx, r.ProjectID); err != nil {
		return o, err
	}

	_, err := im.Fabric.Resources.Find(ctx, r.ProjectID, k, r.ID)
	exists, err := im.exists(kindResource, r.ID, err)
	if err != nil {
		return o, err
	}
	if exists {
		o.Status = Exists
		return o, nil
	}

	if r.Secrets {
		o.Note = "set its secrets again; exports contain no secrets"
	}
	_, err = im.Fabric.Resources.Import(ctx, r.ProjectID, k,
		fabric.Identity{ID: r.ID, Address: r.Address, Created: r.Created},
		map[string]json.RawMessage(r.Fields), im.Dry)
	return o, err
}
