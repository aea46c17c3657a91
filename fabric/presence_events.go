package fabric

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// ReportedPresence is the presence of a subscriber that webhooks last received.
type ReportedPresence struct {
	SubscriberID string
	ProjectID    string
	Online       bool
	Version      int64 // grows with each check; 0 if nothing was reported yet
}

// Subscribers that were reported online are checked regularly, because their nodes may be dead.
const (
	checkAgain = 30 * time.Second // after the last check of the same subscriber
	checkEvery = 5 * time.Second  // for subscribers that are due
	checkBatch = 500              // subscribers claimed at once
)

// announce sends the presence of a token's subscriber to the webhooks that want it, and records
// in the session store that they received it.
//
// Every change of the session store calls announce afterwards. It reads the reported version,
// then the presence, and writes only if the version is unchanged. So the last writer has read
// after the last change, and each difference is sent once.
func (ps *Presences) announce(ctx context.Context, t Token) error {
	wants, err := ps.wanted(ctx, t.ProjectID)
	if err != nil || !wants {
		return err
	}

	online, err := ps.report(ctx, t.ProjectID, t.SubscriberID)
	if err != nil || !online {
		return err
	}

	_, err = ps.tryAttend(ctx, t, func(a *attendance, now time.Time) error {
		a.Reported = a.online(now) > 0
		return nil
	})
	if errors.Is(err, problem.Conflict) || errors.Is(err, problem.NotFound) {
		return nil // the next renewal sends it
	}

	return err
}

// wanted reports whether webhooks of a project want presence events.
func (ps *Presences) wanted(ctx context.Context, projectID string) (bool, error) {
	return ps.caches.wants.Load(projectID, func() (bool, error) { return ps.store.WantsPresence(ctx, projectID) })
}

// report sends a subscriber's presence to webhooks, unless they last received the same.
func (ps *Presences) report(ctx context.Context, projectID, subscriberID string) (online bool, err error) {
	for range maxTries {
		last, err := ps.store.FindReported(ctx, subscriberID)
		if err != nil {
			return false, err
		}
		p, err := ps.Find(ctx, projectID, subscriberID)
		if err != nil {
			return false, err
		}
		now := ps.now()
		var e *Event
		if last.Version == 0 || last.Online != p.Online() {
			if e, err = ps.event(ctx, projectID, subscriberID, p.Online(), now); err != nil {
				return false, err
			}
		}
		next := ReportedPresence{
			SubscriberID: subscriberID, ProjectID: projectID, Online: p.Online(), Version: last.Version + 1,
		}
		err = ps.store.ReportPresence(ctx, next, now.Add(onlineFor), e)
		if !errors.Is(err, problem.Conflict) {
			// The deletion of a subscriber is an event of its own.
			return p.Online(), problem.IgnoreNotFound(err)
		}
	}

	return false, &problem.Error{Kind: problem.Unavailable, Code: "temporarily_unavailable",
		Message: "presence changes too often", RetryAfter: time.Second}
}

func (ps *Presences) event(
	ctx context.Context, projectID, subscriberID string, online bool, at time.Time,
) (*Event, error) {
	s, err := ps.subscribers.Recent(ctx, projectID, subscriberID)
	if err != nil {
		return nil, problem.IgnoreNotFound(err)
	}
	name := SubscriberOffline
	if online {
		name = SubscriberOnline
	}
	e, err := SubscriberEvent(name, s, at)
	return &e, err
}

// Watch checks for subscribers whose sockets ended without a report and reports them, until ctx is
// done. It calls failed with each error.
func (ps *Presences) Watch(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		if err := ps.CheckStale(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// CheckStale checks once for stale presence.
func (ps *Presences) CheckStale(ctx context.Context) error {
	for {
		now := ps.now()
		due, err := ps.store.DuePresences(ctx, now, now.Add(checkAgain), checkBatch)
		if err != nil {
			return err
		}
		for _, t := range due {
			if err := ps.check(ctx, t); err != nil {
				return err
			}
		}
		if len(due) < checkBatch {
			return nil
		}
	}
}

func (ps *Presences) check(ctx context.Context, t ReportedPresence) error {
	wants, err := ps.wanted(ctx, t.ProjectID)
	if err != nil {
		return err
	}
	if !wants {
		return ps.store.ForgetPresences(ctx, t.ProjectID)
	}
	p, err := ps.Find(ctx, t.ProjectID, t.SubscriberID)
	if err != nil || p.Online() {
		return err
	}
	_, err = ps.report(ctx, t.ProjectID, t.SubscriberID)
	return err
}
