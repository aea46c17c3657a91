package fabric

import (
	"context"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A Logout is the end of a login on its way to an OAuth client that lives on it
// (OpenID Connect Back-Channel Logout 1.0), as its project sees it.
type Logout struct {
	ClientID     string
	LoginID      string // the sid that the client knows it by
	SubscriberID string
	Progress
}

// ListLogouts returns a page of the logouts in a state, "" for any, that a client of
// a project is told of: those of the newest logins first.
func (ds *Deliveries) ListLogouts(ctx context.Context, projectID, clientID string, state DeliveryState, q page.Query) (page.Page[Logout], error) {
	c, err := ds.applications.find(ctx, projectID, clientID)
	if err != nil {
		return page.Page[Logout]{}, err
	}
	return ds.store.ListLogouts(ctx, c.ID, state, q)
}

// RedeliverLogout queues a logout anew, whatever became of it: the client gets a
// new token that says the same.
func (ds *Deliveries) RedeliverLogout(ctx context.Context, projectID, clientID, loginID string) (Logout, error) {
	c, err := ds.applications.find(ctx, projectID, clientID)
	if err != nil {
		return Logout{}, err
	}
	loginID, ok := canonical(loginID)
	if !ok {
		return Logout{}, problem.NoSuch("logout")
	}
	return ds.store.RedeliverLogout(ctx, c.ID, loginID, ds.now())
}

// RedeliverDeadLogouts queues all logouts of a client anew that were given up, and
// gives how many.
func (ds *Deliveries) RedeliverDeadLogouts(ctx context.Context, projectID, clientID string) (int, error) {
	c, err := ds.applications.find(ctx, projectID, clientID)
	if err != nil {
		return 0, err
	}
	return ds.store.RedeliverDeadLogouts(ctx, c.ID, ds.now())
}

func (as *applications) find(ctx context.Context, projectID, id string) (Application, error) {
	id, ok := canonical(id)
	if !ok {
		return Application{}, problem.NoSuch("client")
	}
	return as.store.FindApplication(ctx, projectID, id)
}
