package idp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// How key sets read from clients' addresses are cached.
const (
	keysFresh = 5 * time.Minute // how long a set is used, and so how long a removed key stays valid
	keysStale = time.Hour       // how long it is used while it cannot be read again
	keysRetry = 5 * time.Second // minimum between reads, whatever kids are asked for
	maxRemote = 10_000          // sets kept; one more drops them all
)

// A keyring caches the key sets of clients by address.
type keyring struct {
	mu   sync.Mutex
	sets map[string]*remoteSet
}

// A remoteSet is the key set at an address.
type remoteSet struct {
	reading sync.Mutex // held while it is read; only callers that need a new set wait for it

	mu    sync.Mutex
	keys  []jose.JSONWebKey
	read  time.Time // time of the last success, or zero
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

// remoteKeys returns the keys at a client's jwks_uri that fit a header. The set is read
// again if it is old or has no such key, since the client may have a new one (OpenID
// Connect Core, section 10.1.1). Made-up kids cause no more than one read every few
// seconds.
func (as *Assertions) remoteKeys(ctx context.Context, uri, kid string,
	alg jose.SignatureAlgorithm) ([]jose.JSONWebKey, error) {
	s := as.remote.set(uri)
	if found := s.fresh(as.Now(), kid, alg); len(found) > 0 {
		return found, nil
	}

	// One caller at a time reads the set; the others make do with the old one if possible.
	if !s.reading.TryLock() {
		if found := s.since(as.Now(), keysStale, kid, alg); len(found) > 0 {
			return found, nil // better than waiting for an address that may hang
		}
		s.reading.Lock()
	}
	defer s.reading.Unlock()

	now := as.Now()
	if found := s.fresh(now, kid, alg); len(found) > 0 {
		return found, nil // another caller has read it meanwhile
	}
	if now.Sub(s.tried) >= keysRetry {
		set, err := as.fetchKeys(context.WithoutCancel(ctx), uri) // the next caller needs it, too
		s.took(set, err, now)
		s.tried = as.Now() // callers that waited do not try again
	}

	if s.read.IsZero() || s.err != nil && now.Sub(s.read) >= keysStale {
		return nil, unverified(fmt.Sprintf("reading the client's key set at its jwks_uri: %v", s.err))
	}
	return fitting(s.keys, kid, alg), nil
}

// fresh returns the keys that fit a header if the set was read recently.
func (s *remoteSet) fresh(now time.Time, kid string, alg jose.SignatureAlgorithm) []jose.JSONWebKey {
	return s.since(now, keysFresh, kid, alg)
}

// since returns the keys that fit a header if the set is younger than age.
func (s *remoteSet) since(now time.Time, age time.Duration, kid string, alg jose.SignatureAlgorithm) []jose.JSONWebKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.read) >= age {
		return nil
	}
	return fitting(s.keys, kid, alg)
}

// took stores the result of a read. After an error the old set stays.
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
