package fabric

import (
	"context"
	"errors"

	"github.com/selvage/selvage/internal/problem"
)

// findOrCreate returns the subscriber with the reference of the input. If no subscriber has the
// reference, it returns the subscriber whose email is the reference. If no email matches either, it
// creates a subscriber. It sets the password and the profile of the input, unless the subscriber is
// disabled. Only one of several concurrent callers creates a subscriber.
func (ss *Subscribers) findOrCreate(
	ctx context.Context, by Issuer, in SubscriberTokenInput,
) (Subscriber, error) {
	projectID := by.ProjectID
	s, err := ss.recentReference(ctx, projectID, in.Reference)
	if err == nil && (in.Password != "" || in.Profile.differs(s.Person)) { // change the current row
		s, err = ss.findByReference(ctx, projectID, in.Reference)
	}
	if errors.Is(err, problem.NotFound) {
		s, err = ss.createByReference(ctx, projectID, in)
		if !errors.Is(err, problem.Conflict) {
			return s, err
		}
		s, err = ss.findByReference(ctx, projectID, in.Reference)
	}
	if err != nil || s.Disabled {
		return s, err
	}
	return ss.update(ctx, s, SubscriberInput{Password: &in.Password, Profile: in.Profile, Rights: by.Rights})
}

// FindReferred returns the subscriber for whom [Tokens.IssueSubscriber] would issue a token. The
// reference may be an email. If FindReferred returns problem.NotFound, issuing a token would
// create a subscriber.
func (ss *Subscribers) FindReferred(ctx context.Context, projectID, reference string) (Subscriber, error) {
	return ss.findByReference(ctx, projectID, reference)
}

// findByReference returns the subscriber with a reference. If there is none, it returns the subscriber
// whose email is the reference.
func (ss *Subscribers) findByReference(ctx context.Context, projectID, reference string) (Subscriber, error) {
	s, err := ss.store.FindSubscriberByReference(ctx, projectID, reference)
	if !errors.Is(err, problem.NotFound) {
		return s, err
	}
	if email := NormalizeEmail(reference); isEmail(email) {
		return ss.store.FindSubscriberByEmail(ctx, projectID, email)
	}
	return Subscriber{}, err
}

// createByReference creates a subscriber with the reference of the input. If another caller has
// created it in the meantime, it returns problem.Conflict.
func (ss *Subscribers) createByReference(
	ctx context.Context, projectID string, in SubscriberTokenInput,
) (Subscriber, error) {
	s, err := ss.newSubscriber(ctx, projectID, SubscriberInput{Password: &in.Password, Profile: in.Profile})
	if err != nil {
		return Subscriber{}, err
	}
	s.Reference = in.Reference
	if email := NormalizeEmail(in.Reference); isEmail(email) {
		s.Email = email
	}
	return s, ss.insert(ctx, s, nil)
}

// recentReference is like findByReference, but its result may be up to 300 ms old.
func (ss *Subscribers) recentReference(ctx context.Context, projectID, reference string) (Subscriber, error) {
	return ss.caches.references.Load(projectID+reference, func() (Subscriber, error) {
		return ss.findByReference(ctx, projectID, reference)
	})
}

// A reachable is a subscriber with its addresses.
type reachable struct {
	Subscriber
	addresses []Address
}

// Recent returns a subscriber of a project. The result may be up to 300 ms old.
func (ss *Subscribers) Recent(ctx context.Context, projectID, id string) (Subscriber, error) {
	s, err := ss.reachable(ctx, projectID, id)
	return s.Subscriber, err
}

// RecentAddresses is like Recent, and also returns the subscriber's addresses.
func (ss *Subscribers) RecentAddresses(ctx context.Context, projectID, id string) (Subscriber, []Address, error) {
	s, err := ss.reachable(ctx, projectID, id)
	return s.Subscriber, s.addresses, err
}

func (ss *Subscribers) reachable(ctx context.Context, projectID, id string) (reachable, error) {
	return ss.caches.subscribers.Load(projectID+id, func() (s reachable, err error) {
		s.Subscriber, s.addresses, err = ss.store.SubscriberWithAddresses(ctx, projectID, id)
		return s, err
	})
}
