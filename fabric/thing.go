package fabric

import (
	"context"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A Thing is either a resource or a subscriber. Exactly one of its fields is nil.
type Thing struct {
	Resource   *Resource
	Subscriber *Subscriber
}

// ID returns the id of the resource or subscriber.
func (t Thing) ID() string {
	if t.Subscriber != nil {
		return t.Subscriber.ID
	}
	return t.Resource.ID
}

// FindThing returns the resource or subscriber with the given id.
func (rs *Resources) FindThing(ctx context.Context, projectID, id string) (Thing, error) {
	id, ok := canonical(id)
	if !ok {
		return Thing{}, problem.NoSuch("resource")
	}
	found, err := rs.store.FindThings(ctx, projectID, []string{id})
	if err != nil {
		return Thing{}, err
	}
	if len(found) == 0 {
		return Thing{}, problem.NoSuch("resource")
	}
	return found[0], nil
}

// ListThings returns a page of a project's resources and subscribers.
func (rs *Resources) ListThings(
	ctx context.Context, projectID string, q page.Query,
) (page.Page[Thing], error) {
	return rs.Search(ctx, projectID, ThingFilter{}, q)
}

// DeleteThing deletes the resource or subscriber with the given id.
func (rs *Resources) DeleteThing(ctx context.Context, projectID, id string) error {
	t, err := rs.FindThing(ctx, projectID, id)
	if err != nil {
		return err
	}
	if t.Subscriber != nil {
		return rs.subscribers.Delete(ctx, projectID, t.Subscriber.ID)
	}
	return rs.delete(ctx, projectID, t.Resource.Type, t.Resource.ID)
}

// ListAddresses returns a page of the addresses of a resource or subscriber in a project.
func (rs *Resources) ListAddresses(
	ctx context.Context, projectID, id string, q page.Query,
) (page.Page[Address], error) {
	t, err := rs.FindThing(ctx, projectID, id)
	if err != nil {
		return page.Page[Address]{}, err
	}
	return rs.addresses.store.ListAddresses(ctx, projectID, AddressFilter{ResourceID: t.ID()}, q)
}
