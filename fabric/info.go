package fabric

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// An Application is what the fabric knows of an OAuth client.
type Application struct {
	ID     string
	Name   string
	Scopes []string
}

// An Info is what a subscriber may know of itself.
type Info struct {
	Subscriber  Subscriber
	Addresses   []Address
	Application *Application // nil where the SAT was made for none
}

// Info returns what the subscriber of a SAT may know. Who is gone or disabled gets
// problem.Unauthenticated.
func (f *Fabric) Info(ctx context.Context, sat Token) (Info, error) {
	s, err := f.reachable(ctx, sat.ProjectID, sat.SubscriberID)
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
	app, err := f.recentApplication(ctx, sat.ProjectID, sat.ClientID)
	if errors.Is(err, problem.NotFound) {
		return info, nil
	}
	info.Application = &app
	return info, err
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
