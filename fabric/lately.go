package fabric

import (
	"context"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/cache"
)

// caches is what this node has read within the last 300 ms, so that making and
// using tokens asks the store for a row a few times a second, however often it is
// needed. What ends tokens never waits for it: that is the revocations' work.
type caches struct {
	references   *cache.Cache[Subscriber]
	subscribers  *cache.Cache[reachable]
	addresses    *cache.Cache[int]
	applications *cache.Cache[Application]
	embeds       *cache.Cache[EmbedKey]
	signing      *cache.Cache[string]
	wants        *cache.Cache[bool]
	logos        *cache.Cache[[]byte]
}

// keptLogos bounds the pictures that are remembered: 12 KiB each at most.
const keptLogos = 256

// A reachable subscriber is one with its addresses.
type reachable struct {
	Subscriber
	addresses []Address
}

func newCaches(now func() time.Time) caches {
	return caches{
		references: cache.New[Subscriber](now), subscribers: cache.New[reachable](now),
		addresses: cache.New[int](now), applications: cache.New[Application](now),
		embeds:  cache.New[EmbedKey](now),
		signing: cache.New[string](now), wants: cache.New[bool](now), logos: cache.NewSize[[]byte](now, keptLogos),
	}
}

// forget is called once this node has changed a subscriber.
func (l caches) forget() {
	l.references.Clear()
	l.subscribers.Clear()
	l.addresses.Clear()
}

// Recent returns a subscriber of a project as it was within the last
// 300 ms.
func (ss *Subscribers) Recent(ctx context.Context, projectID, id string) (Subscriber, error) {
	s, err := ss.reachable(ctx, projectID, id)
	return s.Subscriber, err
}

func (ss *Subscribers) reachable(ctx context.Context, projectID, id string) (reachable, error) {
	return ss.caches.subscribers.Load(projectID+id, func() (s reachable, err error) {
		s.Subscriber, s.addresses, err = ss.store.SubscriberWithAddresses(ctx, projectID, id)
		return s, err
	})
}

// recentReference returns the subscriber of a reference.
func (ss *Subscribers) recentReference(ctx context.Context, projectID, reference string) (Subscriber, error) {
	return ss.caches.references.Load(projectID+reference, func() (Subscriber, error) {
		return ss.findByReference(ctx, projectID, reference)
	})
}

// recentCount tells how many of the ids are addresses of a project.
func (as *Addresses) recentCount(ctx context.Context, projectID string, ids []string) (int, error) {
	return as.caches.addresses.Load(projectID+strings.Join(ids, ""), func() (int, error) {
		return as.store.CountAddresses(ctx, projectID, ids)
	})
}

// recent returns an OAuth client of a project.
func (as *applications) recent(ctx context.Context, projectID, id string) (Application, error) {
	return as.caches.applications.Load(projectID+id, func() (Application, error) {
		return as.store.FindApplication(ctx, projectID, id)
	})
}
