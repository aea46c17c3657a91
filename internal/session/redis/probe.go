package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// Probe checks that every master accepts writes and runs scripts. It returns at the latest after four
// times the Patience, or when ctx is done. If any master is unreachable, full, loading, a replica, or cut
// off from its Cluster, Probe returns an error with the reason.
func (s *Store) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*s.patience)
	defer cancel()
	masters, err := s.masters(ctx)
	if err != nil {
		return fmt.Errorf("probing Redis: %w", s.explain(err))
	}

	errs := make([]error, len(masters))
	var probes sync.WaitGroup
	for i, m := range masters {
		probes.Go(func() { errs[i] = s.probe(ctx, m) })
	}
	probes.Wait()

	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("probing Redis at %s: %w", masters[i].address, s.explain(err))
		}
	}
	return nil
}

// explain returns an error that may be shown. If the cause is a known misconfiguration, the error
// describes it and says how to fix it.
func (s *Store) explain(err error) error {
	if wrong := s.at.misconfiguration(err); wrong != nil {
		return wrong
	}
	return withoutArguments(err)
}

// A master is a server that accepts writes. key is a probe key that is stored on it.
type master struct {
	address string
	client  redis.UniversalClient
	key     session.Key
}

// probe writes an entry to a master and takes it.
func (s *Store) probe(ctx context.Context, m master) error {
	s = &Store{at: s.at, client: m.client, patience: s.patience}
	if _, err := s.send(ctx, "set", s.name(m.key), mark(m.key, nil), "px", 10_000); err != nil {
		return err
	}
	_, err := s.sendScript(ctx, take, m.key, prefix(m.key)) // another node's probe may already have taken it
	return err
}

// masters returns the current masters.
func (s *Store) masters(ctx context.Context) ([]master, error) {
	if s.cluster == nil {
		return []master{{address: s.at.String(), client: s.client, key: probeKey(0)}}, nil
	}

	var mu sync.Mutex
	found := make(map[*redis.Client]*master)
	err := s.cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		found[c] = &master{address: c.Options().Addr, client: c}
		return nil
	})
	if err != nil {
		return nil, err
	}

	// A key's slot determines which master stores the key. Try keys until each master has one.
	masters := make([]master, 0, len(found))
	for i := 0; len(masters) < len(found) && i < 100*len(found); i++ {
		c, err := s.cluster.MasterForKey(ctx, s.name(probeKey(i)))
		if err != nil {
			return nil, err
		}
		if m := found[c]; m != nil && m.key.ID == "" {
			m.key = probeKey(i)
			masters = append(masters, *m)
		}
	}
	return masters, nil
}

func probeKey(i int) session.Key { return session.Key{Kind: "probe", ID: strconv.Itoa(i)} }

// rehearsedKeys is the number of probe keys that rehearse reads. It is large enough to detect a server
// that stores only some of the slots of a Cluster.
const rehearsedKeys = 24

// rehearse runs every operation that a Store needs, so that Open finds missing permissions. It
// returns an error only if the configuration is wrong.
func (s *Store) rehearse(ctx context.Context) error {
	key := session.Key{Kind: "probe", ID: rand.Text()}
	const ttl = 10 * time.Second
	one, two := []byte("1"), []byte("2")
	steps := []func() error{
		func() error { return s.Put(ctx, key, one, ttl) },
		func() error { return s.CompareAndSwap(ctx, key, one, two, ttl) },
		func() error { _, err := s.Get(ctx, key); return err },
		func() error { _, err := s.Take(ctx, key); return err },
		func() error { return s.Add(ctx, key, one, ttl) },
		func() error { return s.Delete(ctx, key) },
		func() error { _, err := s.Incr(ctx, key, ttl); return err },
		func() error { return s.Delete(ctx, key) },
		func() error { _, err := s.Allow(ctx, key, session.Rate{Burst: 1, Every: ttl}, 1); return err },
		func() error { return s.Delete(ctx, key) },
		func() error { return s.Probe(ctx) },
	}

	// If a node of a Cluster is configured as a single server, it refuses the keys that other nodes
	// store.
	for i := range rehearsedKeys {
		steps = append(steps, func() error { _, err := s.Get(ctx, probeKey(i)); return err })
	}

	for _, step := range steps {
		if err := step(); err != nil && !errors.Is(err, problem.NotFound) && !errors.Is(err, problem.Conflict) {
			return s.at.misconfiguration(err)
		}
	}
	return nil
}
