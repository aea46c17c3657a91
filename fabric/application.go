package fabric

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/internal/problem"
)

// applications finds OAuth clients for the other parts.
type applications struct {
	*core
	store ApplicationStore
}

// An ApplicationStore finds OAuth clients; see [Stores].
type ApplicationStore interface {
	// FindApplication returns an OAuth client of the project.
	FindApplication(ctx context.Context, projectID, id string) (Application, error)
}

// An Application is what the fabric knows of an OAuth client.
type Application struct {
	ID     string
	Name   string
	Scopes []string
}

// An Info is what subscribers may read about themselves.
type Info struct {
	Subscriber  Subscriber
	Addresses   []Address
	Application *Application // nil if the SAT was issued for none
}

// Info returns what the subscriber of a SAT may read. A deleted or disabled subscriber
// gets problem.Unauthenticated.
func (ss *Subscribers) Info(ctx context.Context, sat Token) (Info, error) {
	s, err := ss.reachable(ctx, sat.ProjectID, sat.SubscriberID)
	if errors.Is(err, problem.NotFound) || err == nil && s.Disabled {
		return Info{}, problem.NoCredentials()
	}
	if err != nil {
		return Info{}, fmt.Errorf("finding subscriber: %w", err)
	}

	info := Info{Subscriber: s.Subscriber, Addresses: s.addresses}
	if sat.ClientID == "" {
		return info, nil
	}

	app, err := ss.applications.recent(ctx, sat.ProjectID, sat.ClientID)
	if errors.Is(err, problem.NotFound) {
		return info, nil
	}

	info.Application = &app
	return info, err
}

func (as *applications) find(ctx context.Context, projectID, id string) (Application, error) {
	id, ok := canonical(id)
	if !ok {
		return Application{}, problem.NoSuch("client")
	}
	return as.store.FindApplication(ctx, projectID, id)
}

// recent returns an OAuth client of a project.
func (as *applications) recent(ctx context.Context, projectID, id string) (Application, error) {
	return as.caches.applications.Load(projectID+id, func() (Application, error) {
		return as.store.FindApplication(ctx, projectID, id)
	})
}
