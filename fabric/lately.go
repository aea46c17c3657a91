package fabric

import (
	"context"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/cache"
)

// lately is what this node has read within the last 300 ms, so that making and
// using tokens asks the store for a row a few times a second, however often it is
// needed. What ends tokens never waits for it: that is the revocations' work.
type lately struct {
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

func newLately(now func() time.Time) lately {
	return lately{
		references: cache.New[Subscriber](now), subscribers: cache.New[reachable](now),
		addresses: cache.New[int](now), applications: cache.New[Application](now),
		embeds:  cache.New[EmbedKey](now),
		signing: cache.New[string](now), wants: cache.New[bool](now), logos: cache.NewSize[[]byte](now, keptLogos),
	}
}

// forget is called once this node has changed a subscriber.
func (l lately) forget() {
	l.references.Clear()
	l.subscribers.Clear()
	l.addresses.Clear()
}

// RecentSubscriber returns a subscriber of a project as it was within the last
// 300 ms.
func (f *Fabric) RecentSubscriber(ctx context.Context, projectID, id string) (Subscriber, error) {
	s, err := f.reachable(ctx, projectID, id)
	return s.Subscriber, err
}

func (f *Fabric) reachable(ctx context.Context, projectID, id string) (reachable, error) {
	return f.lately.subscribers.Load(projectID+id, func() (s reachable, err error) {
		s.Subscriber, s.addresses, err = f.c.Store.SubscriberWithAddresses(ctx, projectID, id)
		return s, err
	})
}

// recentReference returns the subscriber of a reference.
func (f *Fabric) recentReference(ctx context.Context, projectID, reference string) (Subscriber, error) {
	return f.lately.references.Load(projectID+reference, func() (Subscriber, error) {
		return f.findByReference(ctx, projectID, reference)
	})
}

// recentCount tells how many of the ids are addresses of a project.
func (f *Fabric) recentCount(ctx context.Context, projectID string, ids []string) (int, error) {
	return f.lately.addresses.Load(projectID+strings.Join(ids, ""), func() (int, error) {
		return f.c.Store.CountAddresses(ctx, projectID, ids)
	})
}

// recentApplication returns an OAuth client of a project.
func (f *Fabric) recentApplication(ctx context.Context, projectID, id string) (Application, error) {
	return f.lately.applications.Load(projectID+id, func() (Application, error) {
		return f.c.Store.FindApplication(ctx, projectID, id)
	})
}
