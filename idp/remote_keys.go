package idp

import (
	"context"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// How the key sets of clients are kept that are read from their addresses.
const (
	keysFresh = 5 * time.Minute // for how long a set counts: a key that a client took out is good for no longer
	keysStale = time.Hour       // for how long it does where it cannot be read anew
	keysRetry = 5 * time.Second // how often it is read at most, whatever kids are asked for
	maxRemote = 10_000          // how many are remembered; then all are read anew
)

// A keyring remembers the key sets of clients by their addresses.
type keyring struct {
	mu   sync.Mutex
	sets map[string]*remoteSet
}

// A remoteSet is a key set at an address.
type remoteSet struct {
	reading sync.Mutex // held while it is read: who needs that waits, and nobody else

	mu    sync.Mutex
	keys  []jose.JSONWebKey
	read  time.Time // when it was; zero if it never could be
	tried time.Time
	err   error // of the last try
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

// remoteKeys returns the keys at a client's jwks_uri that fit a header. The set is
// read anew where it is old, or has no such key: the client may have a new one
// (OpenID Connect Core, section 10.1.1). Made-up kids make no more requests of that
// than one every few seconds.
func (as *Assertions) remoteKeys(ctx context.Context, uri, kid string, alg jose.SignatureAlgorithm) ([]jose.JSONWebKey, error) {
	s := as.remote.set(uri)
	if found := s.fresh(as.Now(), kid, alg); len(found) > 0 {
		return found, nil
	}
	if !s.reading.TryLock() {
		if found := s.since(as.Now(), keysStale, kid, alg); len(found) > 0 {
			return found, nil // rather than wait for an address that may hang
		}
		s.reading.Lock()
	}
	defer s.reading.Unlock()
	now := as.Now()
	if found := s.fresh(now, kid, alg); len(found) > 0 {
		return found, nil // somebody has read it meanwhile
	}
	if now.Sub(s.tried) >= keysRetry {
		set, err := as.fetchKeys(context.WithoutCancel(ctx), uri) // for whoever comes next, too
		s.took(set, err, now)
		s.tried = as.Now() // who waited for it does not try again
	}
	if s.read.IsZero() || s.err != nil && now.Sub(s.read) >= keysStale {
		return nil, refuseAssertion("the client's key set at its jwks_uri cannot be read: %v", s.err)
	}
	return fitting(s.keys, kid, alg), nil
}

// fresh returns the keys for a header of a set that was read a short while ago.
func (s *remoteSet) fresh(now time.Time, kid string, alg jose.SignatureAlgorithm) []jose.JSONWebKey {
	return s.since(now, keysFresh, kid, alg)
}

// since returns them of a set that is not as old.
func (s *remoteSet) since(now time.Time, age time.Duration, kid string, alg jose.SignatureAlgorithm) []jose.JSONWebKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.read) >= age {
		return nil
	}
	return fitting(s.keys, kid, alg)
}

// took notes how a reading came out. Without a new set the old one stays.
func (s *remoteSet) took(set []jose.JSONWebKey, err error, now time.Time) {
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
