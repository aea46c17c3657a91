package idp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// These constants control how the key sets at clients' URLs are cached.
const (
	keysFresh = 5 * time.Minute // how long a set is used; a key that the client removed remains valid until then
	keysStale = time.Hour       // how long a set is used if it cannot be fetched again
	keysRetry = 5 * time.Second // minimum time between fetches, even for unknown kids
	maxRemote = 10_000          // maximum number of cached sets; beyond it, all are dropped
)

// A keyring caches the key sets of clients by URL.
type keyring struct {
	mu   sync.Mutex
	sets map[string]*remoteSet
}

// A remoteSet is the key set at a URL.
type remoteSet struct {
	reading sync.Mutex // held during a fetch; only callers that need a new set wait for it
	tried   time.Time  // time of the last fetch; guarded by reading

	// mu guards the fields below. They are written only while both locks are held, so holding
	// either one is enough to read them.
	mu   sync.Mutex
	keys []jose.JSONWebKey
	read time.Time // time of the last successful fetch, or zero
	err  error     // error of the last fetch
}

func (k *keyring) set(uri string) *remoteSet {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sets[uri]
	if s == nil {
		if k.sets == nil || len(k.sets) >= maxRemote {
			k.sets = make(map[string]*remoteSet)
		}
		s = new(remoteSet)
		k.sets[uri] = s
	}
	return s
}

// remoteKeys returns the wanted keys at a client's jwks_uri. It fetches the set again if the set is
// old or contains no wanted key, because the client may have a new key (OpenID Connect Core,
// section 10.1.1). Invented kids cause at most one fetch every keysRetry.
func (as *Assertions) remoteKeys(ctx context.Context, uri string, wanted keyFilter) ([]jose.JSONWebKey, error) {
	s := as.remote.set(uri)
	if found := s.fresh(as.Now(), wanted); len(found) > 0 {
		return found, nil
	}

	// One caller at a time fetches the set. The others use the old set if it contains the key.
	if !s.reading.TryLock() {
		if found := s.youngerThan(as.Now(), keysStale, wanted); len(found) > 0 {
			return found, nil // this is better than waiting for a server that may not respond
		}
		s.reading.Lock()
	}
	defer s.reading.Unlock()

	now := as.Now()
	if found := s.fresh(now, wanted); len(found) > 0 {
		return found, nil // another caller has fetched it in the meantime
	}
	if now.Sub(s.tried) >= keysRetry {
		set, err := as.fetchKeys(context.WithoutCancel(ctx), uri) // other callers need the result as well
		s.store(set, err, now)
		s.tried = as.Now() // after the fetch, so that callers that waited do not fetch again
	}

	if s.read.IsZero() || s.err != nil && now.Sub(s.read) >= keysStale {
		return nil, unverified(fmt.Sprintf("reading the client's key set at its jwks_uri: %v", s.err))
	}
	return filterKeys(s.keys, wanted), nil
}

// fresh returns the wanted keys, if the set was fetched recently.
func (s *remoteSet) fresh(now time.Time, wanted keyFilter) []jose.JSONWebKey {
	return s.youngerThan(now, keysFresh, wanted)
}

// youngerThan returns the wanted keys, if the set is younger than age.
func (s *remoteSet) youngerThan(now time.Time, age time.Duration, wanted keyFilter) []jose.JSONWebKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.read) >= age {
		return nil
	}
	return filterKeys(s.keys, wanted)
}

// store stores the result of a fetch. If the fetch failed, it keeps the old set. The caller holds
// reading.
func (s *remoteSet) store(set []jose.JSONWebKey, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		s.keys, s.read = set, now
	}
}

func (as *Assertions) fetchKeys(ctx context.Context, uri string) ([]jose.JSONWebKey, error) {
	raw, err := as.Fetch(ctx, uri, maxKeySet)
	if err != nil {
		return nil, err
	}
	return parseKeySet(raw)
}
