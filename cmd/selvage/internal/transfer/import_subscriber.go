package transfer

import (
	"cmp"
	"context"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

func (im *Importer) subscriber(ctx context.Context, r *Subscriber) (Outcome, error) {
	o := Outcome{Kind: kindSubscriber, ID: r.ID, Name: cmp.Or(r.Email, r.Reference)}
	if err := im.checkProject(ctx, r.ProjectID); err != nil {
		return o, err
	}
	exists, err := im.hasSubscriber(ctx, r)
	if err != nil {
		return o, err
	}
	if exists {
		o.Status = Exists
		return o, nil
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
	if err != nil {
		return o, err
	}
	if !im.Dry {
		o.ID = s.ID
	}
	return o, nil
}

// hasSubscriber reports whether the project has a subscriber with the id, email address or reference
// of a record or, in a dry run, whether an earlier record has one of these.
func (im *Importer) hasSubscriber(ctx context.Context, r *Subscriber) (bool, error) {
	if r.ID != "" {
		_, err := im.Fabric.Subscribers.Find(ctx, r.ProjectID, r.ID)
		if exists, err := found(err); exists || err != nil {
			return exists, err
		}
	}

	email := fabric.NormalizeEmail(r.Email)
	for _, name := range []string{email, r.Reference} {
		if name == "" {
			continue
		}
		_, err := im.Fabric.Subscribers.FindReferred(ctx, r.ProjectID, name)
		if exists, err := found(err); exists || err != nil {
			return exists, err
		}
	}

	taken := false
	if r.ID != "" && im.occupy(kindSubscriber, r.ID) {
		taken = true
	}
	if email != "" && im.occupy("email", r.ProjectID, email) {
		taken = true
	}
	if r.Reference != "" && im.occupy("reference", r.ProjectID, r.Reference) {
		taken = true
	}
	return taken, nil
}

// set returns a pointer to a value, or nil for the zero value.
func set[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
