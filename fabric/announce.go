package fabric

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// Told is what webhooks were told last: whether a subscriber is online.
type Told struct {
	SubscriberID string
	ProjectID    string
	Online       bool
	Version      int64 // it grows with each look that may have changed it; 0 where nothing was told
}

// How often is looked whether those who were told to be online still are: their
// nodes may be dead.
const (
	lookAgain   = 30 * time.Second
	lookEvery   = 5 * time.Second
	looksAtOnce = 500
)

// announce tells webhooks, if any wants to know, whether a token's subscriber is
// online, as it is by now, and notes in the session store that they know.
//
// Whoever changes something there comes here afterwards: it reads the version of what
// was told, then what is so, and writes only if the version is still the same. So the
// last one to write has read after the last change, and each difference is told once.
func (f *Fabric) announce(ctx context.Context, t Token) error {
	wants, err := f.wantsPresence(ctx, t.ProjectID)
	if err != nil || !wants {
		return err
	}
	online, err := f.tellPresence(ctx, t.ProjectID, t.SubscriberID)
	if err != nil || !online {
		return err
	}
	_, err = f.tryAttend(ctx, t, func(a *attendance, now time.Time) error {
		a.Told = a.online(now) > 0
		return nil
	})
	if errors.Is(err, problem.Conflict) || errors.Is(err, problem.NotFound) {
		return nil // the next sign of life tells it
	}
	return err
}

// wantsPresence reports whether webhooks of a project want to know who is online.
func (f *Fabric) wantsPresence(ctx context.Context, projectID string) (bool, error) {
	return f.lately.wants.Load(projectID, func() (bool, error) { return f.c.Store.WantsPresence(ctx, projectID) })
}

// tellPresence tells whether a subscriber is online, unless that was told last.
func (f *Fabric) tellPresence(ctx context.Context, projectID, subscriberID string) (online bool, err error) {
	for range maxTries {
		told, err := f.c.Store.FindTold(ctx, subscriberID)
		if err != nil {
			return false, err
		}
		p, err := f.Presence(ctx, projectID, subscriberID)
		if err != nil {
			return false, err
		}
		now := f.now()
		var e *Event
		if told.Version == 0 || told.Online != p.Online() {
			if e, err = f.presenceEvent(ctx, projectID, subscriberID, p.Online(), now); err != nil {
				return false, err
			}
		}
		next := Told{SubscriberID: subscriberID, ProjectID: projectID, Online: p.Online(), Version: told.Version + 1}
		err = f.c.Store.TellPresence(ctx, next, now.Add(onlineFor), e)
		if !errors.Is(err, problem.Conflict) {
			return p.Online(), gonePresence(err)
		}
	}
	return false, &problem.Error{Kind: problem.Unavailable, Code: "temporarily_unavailable",
		Message: "presence changes too often", RetryAfter: time.Second}
}

// gonePresence takes it for no error that a subscriber was deleted, which was told.
func gonePresence(err error) error {
	if errors.Is(err, problem.NotFound) {
		return nil
	}
	return err
}

func (f *Fabric) presenceEvent(ctx context.Context, projectID, subscriberID string, online bool, at time.Time) (*Event, error) {
	s, err := f.RecentSubscriber(ctx, projectID, subscriberID)
	if err != nil {
		return nil, gonePresence(err)
	}
	name := SubscriberOffline
	if online {
		name = SubscriberOnline
	}
	e, err := SubscriberEvent(name, s, at)
	return &e, err
}

// WatchPresence tells webhooks, until ctx ends, of those who are online no more
// although nobody said so. failed is told what goes wrong.
func (f *Fabric) WatchPresence(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := f.LookForAbsent(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// LookForAbsent looks once.
func (f *Fabric) LookForAbsent(ctx context.Context) error {
	for {
		now := f.now()
		due, err := f.c.Store.DuePresences(ctx, now, now.Add(lookAgain), looksAtOnce)
		if err != nil {
			return err
		}
		for _, t := range due {
			if err := f.lookAt(ctx, t); err != nil {
				return err
			}
		}
		if len(due) < looksAtOnce {
			return nil
		}
	}
}

func (f *Fabric) lookAt(ctx context.Context, t Told) error {
	wants, err := f.wantsPresence(ctx, t.ProjectID)
	if err != nil {
		return err
	}
	if !wants {
		return f.c.Store.ForgetPresences(ctx, t.ProjectID)
	}
	p, err := f.Presence(ctx, t.ProjectID, t.SubscriberID)
	if err != nil || p.Online() {
		return err
	}
	_, err = f.tellPresence(ctx, t.ProjectID, t.SubscriberID)
	return err
}
