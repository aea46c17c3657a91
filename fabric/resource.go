package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Resources manages everything that can be called, except subscribers.
type Resources struct {
	*core
	store       ResourceStore
	subscribers *Subscribers
	addresses   *Addresses
}

// A ResourceStore keeps resources and their deployed versions; see [Stores].
type ResourceStore interface {
	// CreateResource writes a resource with its first address. It returns
	// problem.Conflict on "name" if another resource of the type has the same name
	// digest, and on "address" if the address name is taken.
	CreateResource(ctx context.Context, r Resource, a Address, tell Teller) error
	FindResource(ctx context.Context, projectID, typ, id string) (Resource, error)
	ListResources(ctx context.Context, projectID, typ string, q page.Query) (page.Page[Resource], error)
	// UpdateResource writes a resource and renames its addresses. old is the Updated time that the
	// caller has read. If the stored time differs or the resource was deleted, UpdateResource
	// returns problem.Conflict. If the name is taken, it returns problem.Conflict on "name".
	UpdateResource(ctx context.Context, r Resource, old time.Time, tell Teller) error
	// DeleteResource also deletes the resource's addresses. It returns problem.Conflict if the
	// resource is assigned as a handler. It calls tell with the deleted resource.
	DeleteResource(ctx context.Context, projectID, typ, id string, end revocation.Revocation, tell Teller) error
	// FindThings returns the resources and subscribers with these ids, in the order of ids. Missing
	// objects are skipped.
	FindThings(ctx context.Context, projectID string, ids []string) ([]Thing, error)
	ListThings(ctx context.Context, projectID string, f ThingFilter, q page.Query) (page.Page[Thing], error)

	// CreateVersion stores v with the next version number of its resource and returns it.
	CreateVersion(ctx context.Context, v Version) (Version, error)
	FindVersion(ctx context.Context, resourceID, id string) (Version, error)
	ListVersions(ctx context.Context, resourceID string, q page.Query) (page.Page[Version], error)
}

// A Resource is anything that can be called, except a [Subscriber]. Its [kinds.Kind] determines its
// members.
type Resource struct {
	ID          string
	ProjectID   string
	Type        string // the type of its kind
	DisplayName string
	NameDigest  string // see [nameDigest]; unique per kind unless ""
	Fields      kinds.Values
	Secrets     string // the sealed values of the write-only members
	Created     time.Time
	Updated     time.Time
}

// Kinds returns the kinds of resources.
func (rs *Resources) Kinds() *kinds.Catalog { return rs.c.Kinds }

// Create creates a resource of a kind with its first address. The error joins the errors of all
// invalid members; see [kinds.Kind.New].
func (rs *Resources) Create(
	ctx context.Context, projectID string, k *kinds.Kind, sent map[string]json.RawMessage,
) (Resource, error) {
	values, invalid := k.New(sent)
	if k.Type == GatewayKind {
		invalid = errors.Join(invalid, ChooseTransport(nil, values, sent))
	}
	identity := Identity{ID: newID(), Created: rs.now()}
	return rs.create(ctx, projectID, k, identity, values, joinNames(invalid, k, values, nil))
}

// create creates a resource with these values. It returns an error if any of errs is not nil, or if
// checkMembers refuses the values.
func (rs *Resources) create(
	ctx context.Context, projectID string, k *kinds.Kind, identity Identity, values kinds.Values, errs ...error,
) (Resource, error) {
	err := errors.Join(append(errs, rs.checkMembers(ctx, projectID, k, values))...)
	if err != nil {
		return Resource{}, err
	}

	r := Resource{
		ID:          identity.ID,
		ProjectID:   projectID,
		Type:        k.Type,
		DisplayName: titleOf(k, values),
		NameDigest:  nameDigest(k.DisplayName(values)),
		Fields:      values,
		Created:     identity.Created,
		Updated:     identity.Created,
	}
	if r.Secrets, err = rs.sealSecrets(k, r.Fields, r.ID, ""); err != nil {
		return Resource{}, err
	}
	tell := rs.event(ResourceCreated, r.Created)
	err = insertNamed(identity.named(resourceAddress(k, r)), func(a Address) error {
		err := rs.store.CreateResource(ctx, r, a, tell)
		return nameTaken(k, r, handlerGone(r, err))
	})
	if err != nil {
		return Resource{}, err
	}
	return r, nil
}

// joinNames adds errors for invalid names in values to err. It does not check names that are the
// same in old.
func joinNames(err error, k *kinds.Kind, values, old kinds.Values) error {
	for _, member := range k.Name {
		if name := values.Text(member); name != old.Text(member) {
			err = joinName(err, member, name)
		}
	}
	return err
}

// nameTaken converts a conflict about a name to an error on the member that the client sent.
func nameTaken(k *kinds.Kind, r Resource, err error) error {
	p := problem.First(err)
	if p == nil || p.Kind != problem.Conflict || p.Param != "name" {
		return err
	}
	member := k.NamedBy(r.Fields)
	return &problem.Error{
		Kind:    problem.Conflict,
		Code:    "not_unique_within_project",
		Param:   member,
		Message: member + " has already been taken by another " + k.Title + " of the project",
	}
}

// checkMembers checks what the schema cannot express. The project must have the handler, and
// gateways and ring groups must follow their rules. It replaces the handler's id with the canonical
// form.
func (rs *Resources) checkMembers(ctx context.Context, projectID string, k *kinds.Kind, values kinds.Values) error {
	if k.Type == GatewayKind {
		return checkGateway(values)
	}
	if k.Type == RingGroupKind {
		return checkRingGroup(values)
	}

	id := values.Text(handlerField)
	if id == "" {
		return nil
	}

	t, err := rs.FindThing(ctx, projectID, id)
	if err != nil {
		return noHandler(err)
	}
	values[handlerField] = quoted(t.ID())
	return nil
}

// handlerGone converts the error for a missing row to an error on the handler, if r has one. The
// handler was then deleted after checkMembers found it.
func handlerGone(r Resource, err error) error {
	if r.Fields.Text(handlerField) == "" {
		return err
	}
	return noHandler(err)
}

// titleOf returns the name of a resource in lists. This is its display name or, if it has none, the
// title of the kind.
func titleOf(k *kinds.Kind, values kinds.Values) string {
	if name := k.DisplayName(values); name != "" {
		return name
	}
	return k.Title
}

// Find returns a resource of a project and kind.
func (rs *Resources) Find(ctx context.Context, projectID string, k *kinds.Kind, id string) (Resource, error) {
	id, ok := canonical(id)
	if !ok {
		return Resource{}, problem.NoSuch("resource")
	}
	return rs.store.FindResource(ctx, projectID, k.Type, id)
}

// List returns a page of a project's resources of a kind.
func (rs *Resources) List(
	ctx context.Context, projectID string, k *kinds.Kind, q page.Query,
) (page.Page[Resource], error) {
	return rs.store.ListResources(ctx, projectID, k.Type, q)
}

// Update changes the members that were sent. It keeps the other members, including concurrent
// changes to them.
func (rs *Resources) Update(
	ctx context.Context, projectID string, k *kinds.Kind, id string, sent map[string]json.RawMessage,
) (Resource, error) {
	defer rs.caches.forget()
	var updated Resource
	err := again(func() error {
		old, err := rs.Find(ctx, projectID, k, id)
		if err != nil {
			return err
		}
		updated, err = rs.updateOnce(ctx, k, old, sent)
		return err
	})
	if err != nil {
		return Resource{}, err
	}
	return updated, nil
}

// updateOnce changes the members of old that were sent. It returns problem.Conflict if the resource
// was changed after old was read.
func (rs *Resources) updateOnce(
	ctx context.Context, k *kinds.Kind, old Resource, sent map[string]json.RawMessage,
) (Resource, error) {
	fields, invalid := mergeChange(k, old.Fields, sent)
	err := errors.Join(
		joinNames(invalid, k, fields, old.Fields),
		rs.checkMembers(ctx, old.ProjectID, k, fields),
	)
	if err != nil {
		return Resource{}, err
	}
	if k.Type == GatewayKind {
		err := errors.Join(checkDestination(old, fields), ChooseTransport(old.Fields, fields, sent))
		if err != nil {
			return Resource{}, err
		}
	}

	r := old
	r.Fields = fields
	r.DisplayName = titleOf(k, fields)
	r.Updated = later(rs.now(), old.Updated.Add(time.Microsecond))
	if name := k.DisplayName(fields); name != k.DisplayName(old.Fields) {
		r.NameDigest = nameDigest(name)
	}
	if r.Secrets, err = rs.sealSecrets(k, fields, r.ID, old.Secrets); err != nil {
		return Resource{}, err
	}
	err = rs.store.UpdateResource(ctx, r, old.Updated, rs.event(ResourceUpdated, r.Updated))
	if err := nameTaken(k, r, handlerGone(r, err)); err != nil {
		return Resource{}, err
	}
	return r, nil
}

// tries is the maximum number of attempts at a change that conflicts with concurrent changes.
const tries = 10

// again calls change until it does not conflict with a concurrent change. If change conflicts tries
// times, again returns problem.Unavailable.
func again(change func() error) error {
	for range tries {
		if err := change(); !errors.Is(err, problem.Conflict) || isTaken(err) {
			return err
		}
	}
	return &problem.Error{
		Kind:       problem.Unavailable,
		Code:       "temporarily_unavailable",
		Message:    "the resource is changed by too many requests at once",
		RetryAfter: time.Second,
	}
}

// isTaken reports whether err is a conflict about a value that is in use. It returns false for a
// conflict with a concurrent change.
func isTaken(err error) bool {
	p := problem.First(err)
	return p != nil && p.Param != ""
}

// versionField counts the changes of a resource with versions.
const versionField = "document_version"

// mergeChange merges sent into old. For a kind with versions, the caller must name the next
// version. Thus, it cannot overwrite a change that it has not seen.
func mergeChange(k *kinds.Kind, old kinds.Values, sent map[string]json.RawMessage) (kinds.Values, error) {
	values, err := k.Change(old, sent)
	if err != nil || !k.Versions {
		return values, err
	}

	var current, named int64
	if err := json.Unmarshal(old[versionField], &current); err != nil {
		return nil, fmt.Errorf("reading version: %w", err)
	}
	if _, ok := sent[versionField]; !ok {
		return nil, problem.Missing(versionField)
	}
	if err := json.Unmarshal(values[versionField], &named); err != nil || named != current+1 {
		return nil, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "document_version_mismatch",
			Param:   versionField,
			Message: fmt.Sprintf("%s must be %d, the next after the current one", versionField, current+1),
		}
	}

	return values, nil
}

// Delete deletes a resource of a kind with its addresses.
func (rs *Resources) Delete(ctx context.Context, projectID string, k *kinds.Kind, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("resource")
	}
	return rs.delete(ctx, projectID, k.Type, id)
}

// delete deletes a resource of a type, and revokes the tokens that depend on it.
func (rs *Resources) delete(ctx context.Context, projectID, typ, id string) error {
	defer rs.caches.forget()
	var dependent revocation.Revocation // of the tokens that depend on the resource
	switch typ {
	case EndpointKind:
		// Tokens for the phones of the endpoint have the endpoint's id as their ID.
		dependent = permanentRevocation(revocation.Token, id, rs.now())
	case GatewayKind:
		// Tokens for the calls of the gateway have its id as KeyID.
		dependent = permanentRevocation(revocation.Key, id, rs.now())
	}

	err := rs.store.DeleteResource(ctx, projectID, typ, id, dependent, rs.event(ResourceDeleted, rs.now()))
	if errors.Is(err, problem.Conflict) {
		return errAssigned()
	}
	if err != nil {
		return err
	}
	if dependent.ID == "" {
		return nil
	}
	return rs.c.Revocations.Sync(ctx)
}
