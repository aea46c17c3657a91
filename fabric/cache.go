package fabric

import (
	"context"
	"time"

	"github.com/selvage/selvage/internal/cache"
)

// caches are what this node read within the last 300 ms, so that issuing and using tokens
// reads a row a few times a second at most. Whatever ends tokens does not wait for them:
// revocations do that.
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

// keptLogos is how many logos are kept, of at most 12 KiB each.
const keptLogos = 256

// reachable is a subscriber with its addresses.
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

// forget is called after this node has changed a subscriber.
func (l caches) forget() {
	l.references.Clear()
	l.subscribers.Clear()
	l.addresses.Clear()
}

// Recent returns a subscriber of a project as it was within the last 300 ms.
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
