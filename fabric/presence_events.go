package fabric

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// ReportedPresence is the last presence of a subscriber that webhooks received.
type ReportedPresence struct {
	SubscriberID string
	ProjectID    string
	Online       bool
	Version      int64 // incremented by each report, even without a change; 0 before the first
}

// Subscribers that were reported online are checked regularly, because the nodes of their sockets
// may have failed.
const (
	checkAgain = 30 * time.Second // interval between checks of the same subscriber
	checkEvery = 5 * time.Second  // interval between searches for subscribers that are due
	checkBatch = 500              // subscribers claimed at a time
)

// announce sends the presence of a token's subscriber to the webhooks that receive presence events.
// If the subscriber is online, announce also records in the session store that the webhooks received it.
//
// announce is called after each change in the session store for which webhooks may need an event. It
// reads the reported version and then the presence, and writes only if the version is unchanged.
// Therefore, the last writer has read the presence after the last change, and each difference is sent
// only once.
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
		return nil // the next renewal tries again
	}

	return err
}

// wanted reports whether any webhook of a project receives presence events.
func (ps *Presences) wanted(ctx context.Context, projectID string) (bool, error) {
	load := func() (bool, error) { return ps.store.WantsPresence(ctx, projectID) }
	return ps.caches.wants.Load(projectID, load)
}

// report sends a subscriber's presence to webhooks, unless it equals the presence that they last
// received. It returns whether the subscriber is online.
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
		var event *Event
		if last.Version == 0 || last.Online != p.Online() {
			if event, err = ps.event(ctx, projectID, subscriberID, p.Online(), now); err != nil {
				return false, err
			}
		}

		next := ReportedPresence{
			SubscriberID: subscriberID,
			ProjectID:    projectID,
			Online:       p.Online(),
			Version:      last.Version + 1,
		}
		err = ps.store.ReportPresence(ctx, next, now.Add(onlineFor), event)
		if !errors.Is(err, problem.Conflict) {
			// If the subscriber is not found, it was deleted, and its deletion has its own event.
			return p.Online(), problem.IgnoreNotFound(err)
		}
	}

	return false, &problem.Error{
		Kind:       problem.Unavailable,
		Code:       "temporarily_unavailable",
		Message:    "presence changes too often",
		RetryAfter: time.Second,
	}
}

// event returns the event about a subscriber that went online or offline, or nil if the subscriber
// was deleted.
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
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// Watch finds subscribers whose sockets were lost without an event, and reports them as offline. It
// runs until ctx is done and calls failed with each error.
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

// CheckStale checks once for subscribers whose reported presence is no longer true.
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

// check reports a subscriber as offline if none of its sockets is left.
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
