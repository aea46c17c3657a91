package fabric

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// Presences keeps track of which subscribers are online.
type Presences struct {
	*core
	store       PresenceStore
	subscribers *Subscribers
}

// A PresenceStore stores the reported presence of each subscriber. This is the presence that
// webhooks last received; see [Stores]. The current presence is in the session store.
type PresenceStore interface {
	// WantsPresence reports whether a webhook of the project wants presence events.
	WantsPresence(ctx context.Context, projectID string) (bool, error)
	// FindReported returns the reported presence of a subscriber. If webhooks have received no
	// presence, Version is 0.
	FindReported(ctx context.Context, subscriberID string) (ReportedPresence, error)
	// ReportPresence replaces the previous version of a subscriber's reported presence. If e is not
	// nil, it also adds an event. It returns problem.Conflict if the stored version is not the
	// previous version, and problem.NotFound if the subscriber no longer exists.
	ReportPresence(ctx context.Context, t ReportedPresence, due time.Time, e *Event) error
	// DuePresences returns subscribers that were last reported online and are due for a check,
	// and postpones their next check.
	DuePresences(ctx context.Context, now, next time.Time, limit int) ([]ReportedPresence, error)
	// ForgetPresences deletes the reported presence of all of a project's subscribers.
	ForgetPresences(ctx context.Context, projectID string) error
}

// StayOnline is the interval at which an online socket must renew its presence. It leaves room for
// one failed renewal and for clocks that differ by half a minute.
const StayOnline = onlineFor / 3

const (
	onlineFor    = time.Minute // how long a socket stays online without renewal
	resumableFor = time.Hour   // how long an offline socket can be resumed, for example after sleep
	maxOnline    = 100         // maximum number of sockets per subscriber

	maxTries = 2 * maxOnline // maximum number of attempts at a change; concurrent changes make attempts fail
)

// A Presence describes whether a subscriber can be reached now. The zero value means that the
// subscriber cannot be reached.
type Presence struct {
	Sockets int       // number of the subscriber's online sockets, on all nodes
	Since   time.Time // when the first of these sockets went online
}

// Online reports whether the subscriber can be reached.
func (p Presence) Online() bool { return p.Sockets > 0 }

// An attendance holds the sockets of a subscriber. It is one entry of the session store per
// subscriber, and is changed by compare-and-swap.
type attendance struct {
	ProjectID string     `json:"p"`
	Sockets   []attendee `json:"s"`
	Reported  bool       `json:"t,omitempty"` // whether webhooks were notified that the subscriber is online
}

// online returns the number of sockets that are online at the time now.
func (a attendance) online(now time.Time) (n int) {
	for _, s := range a.Sockets {
		if now.UnixMicro() < s.Until {
			n++
		}
	}
	return n
}

// An attendee is one socket. It is kept for a while after it was last online, so that another
// socket can resume it.
type attendee struct {
	ID    string `json:"id"`
	Node  string `json:"n,omitempty"` // the node to which the socket is connected
	Since int64  `json:"since"`       // microseconds since 1970, like Until
	Until int64  `json:"until"`
}

// Find returns the presence of a project's subscriber, on all nodes.
func (ps *Presences) Find(ctx context.Context, projectID, subscriberID string) (Presence, error) {
	if ps.c.Sessions == nil {
		return Presence{}, nil
	}

	a, _, err := ps.attendance(ctx, subscriberID)
	if err != nil || a.ProjectID != projectID {
		return Presence{}, err
	}

	var p Presence
	now := ps.now()
	for _, s := range a.Sockets {
		if since := time.UnixMicro(s.Since).UTC(); now.UnixMicro() < s.Until {
			if p.Sockets++; p.Sockets == 1 || since.Before(p.Since) {
				p.Since = since
			}
		}
	}

	return p, nil
}

// A SocketPresence is an online socket.
type SocketPresence struct {
	ID   string
	Node string // see [Config]; "" if the socket's node has no name
}

// Sockets returns the online sockets of a project's subscriber, on all nodes, newest first.
func (ps *Presences) Sockets(ctx context.Context, projectID, subscriberID string) ([]SocketPresence, error) {
	if ps.c.Sessions == nil {
		return nil, nil
	}
	a, _, err := ps.attendance(ctx, subscriberID)
	if err != nil || a.ProjectID != projectID {
		return nil, err
	}

	var sockets []SocketPresence
	now := ps.now().UnixMicro()
	slices.SortFunc(a.Sockets, func(x, y attendee) int { return cmp.Compare(y.Since, x.Since) })
	for _, s := range a.Sockets {
		if now < s.Until {
			sockets = append(sockets, SocketPresence{ID: s.ID, Node: s.Node})
		}
	}
	return sockets, nil
}

// Online marks a socket of a SAT's subscriber as online for a minute; see [StayOnline]. For other
// tokens, Online returns problem.Forbidden, because their holders cannot be called.
func (ps *Presences) Online(ctx context.Context, t Token, socket string) error {
	if t.Kind != SAT {
		return problem.New(problem.Forbidden, "not_a_subscriber",
			"only a subscriber can be online, not the holder of a guest token or invite")
	}

	return ps.attend(ctx, t, func(a *attendance, now time.Time) error {
		i := slices.IndexFunc(a.Sockets, func(s attendee) bool { return s.ID == socket })
		if i < 0 {
			if err := a.makeRoom(now); err != nil {
				return err
			}
			i = len(a.Sockets)
			a.Sockets = append(a.Sockets, attendee{ID: socket, Node: ps.c.Node, Since: now.UnixMicro()})
		}
		a.Sockets[i].Until = onlineUntil(t, now)
		return nil
	})
}

// makeRoom removes the socket that has been offline longest if the list of sockets is full. If all
// sockets are online, makeRoom returns problem.RateLimited.
func (a *attendance) makeRoom(now time.Time) error {
	if len(a.Sockets) < maxOnline {
		return nil
	}

	oldest := 0
	for i, s := range a.Sockets {
		if s.Until < a.Sockets[oldest].Until {
			oldest = i
		}
	}

	if a.Sockets[oldest].Until > now.UnixMicro() {
		return problem.New(problem.RateLimited, "too_many_sockets",
			"the subscriber is online %d times already", maxOnline)
	}

	a.Sockets = slices.Delete(a.Sockets, oldest, oldest+1)
	return nil
}

// Offline removes a socket of a token's subscriber. Unlike a socket whose connection was lost, it
// cannot be resumed.
func (ps *Presences) Offline(ctx context.Context, t Token, socket string) error {
	return ps.attend(ctx, t, func(a *attendance, _ time.Time) error {
		a.Sockets = slices.DeleteFunc(a.Sockets, func(s attendee) bool { return s.ID == socket })
		return nil
	})
}

// Resume replaces a lost socket on any node with a new socket. online reports whether the new
// socket is online, which is the case if the lost socket could still be resumed. For tokens other
// than SATs, online is false.
func (ps *Presences) Resume(ctx context.Context, t Token, lost, socket string) (online bool, err error) {
	if t.Kind != SAT {
		return false, nil
	}
	err = ps.attend(ctx, t, func(a *attendance, now time.Time) error {
		i := slices.IndexFunc(a.Sockets, func(s attendee) bool { return s.ID == lost })
		online = i >= 0
		if online {
			resumed := &a.Sockets[i]
			resumed.ID = socket
			resumed.Node = ps.c.Node
			resumed.Until = onlineUntil(t, now)
		}
		return nil
	})
	return online, err
}

// onlineUntil returns the time, in microseconds, until which a socket is online without renewal.
func onlineUntil(t Token, now time.Time) int64 {
	return min(now.Add(onlineFor).UnixMicro(), t.ExpiresAt.UnixMicro())
}

// attend changes the attendance of a token's subscriber. After a concurrent change, attend calls
// change again, so change must be idempotent.
func (ps *Presences) attend(ctx context.Context, t Token, change func(*attendance, time.Time) error) error {
	if ps.c.Sessions == nil {
		return errors.New("changing presence: no session store is configured")
	}
	for range maxTries {
		news, err := ps.tryAttend(ctx, t, change)
		if err == nil && news {
			err = ps.announce(ctx, t)
		}
		if !errors.Is(err, problem.Conflict) && !errors.Is(err, problem.NotFound) {
			return err
		}
	}

	return &problem.Error{
		Kind:       problem.Unavailable,
		Code:       "temporarily_unavailable",
		Message:    "presence changes too often",
		RetryAfter: time.Second,
	}
}

// tryAttend applies change once. It reports whether webhooks may need an event. They may if the
// first socket went online, the last socket went offline, or a previous event may be missing.
func (ps *Presences) tryAttend(
	ctx context.Context, t Token, change func(*attendance, time.Time) error,
) (news bool, err error) {
	a, old, err := ps.attendance(ctx, t.SubscriberID)
	if err != nil {
		return false, err
	}

	// Before applying the change, forget sockets that can no longer be resumed.
	now := ps.now()
	before := a.online(now)
	a.ProjectID = t.ProjectID
	forgotten := now.Add(-resumableFor).UnixMicro()
	a.Sockets = slices.DeleteFunc(a.Sockets, func(s attendee) bool { return s.Until < forgotten })
	if err := change(&a, now); err != nil {
		return false, err
	}

	after := a.online(now)
	a.Reported = a.Reported && before > 0 && after > 0
	if old == nil && len(a.Sockets) == 0 {
		return false, nil
	}

	// Write only if nothing has changed since the read. Otherwise, attend tries again.
	value, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("writing presence: %w", err)
	}

	key, ttl := presenceKey(t.SubscriberID), onlineFor+resumableFor
	switch {
	case old == nil:
		err = ps.c.Sessions.Add(ctx, key, value, ttl)
	case len(a.Sockets) == 0:
		err = ps.c.Sessions.CompareAndSwap(ctx, key, old, value, onlineFor)
	case string(value) != string(old):
		err = ps.c.Sessions.CompareAndSwap(ctx, key, old, value, ttl)
	}
	if err != nil {
		return false, fmt.Errorf("writing presence: %w", err)
	}

	return (before > 0) != (after > 0) || after > 0 && !a.Reported, nil
}

// attendance returns a subscriber's sockets, and the bytes from which they were read. If the store
// has no entry, value is nil.
func (ps *Presences) attendance(
	ctx context.Context, subscriberID string,
) (a attendance, value []byte, err error) {
	value, err = ps.c.Sessions.Get(ctx, presenceKey(subscriberID))
	if errors.Is(err, problem.NotFound) {
		return a, nil, nil
	}
	if err != nil {
		return a, nil, fmt.Errorf("reading presence: %w", err)
	}
	if json.Unmarshal(value, &a) != nil {
		a = attendance{} // written by a different version of selvage: start again
	}
	return a, value, nil
}

func presenceKey(subscriberID string) session.Key {
	return session.Key{Kind: "presence", ID: subscriberID}
}
