// Package session keeps what lives for minutes and must be seen by every node:
// live logins, authorization requests and codes, browser sessions.
//
// A [Store] maps keys to values which expire. Each operation touches one key,
// so that a Store can be spread over a Redis Cluster. What must survive a
// flush, such as a refresh token, does not belong here but in package store.
package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// A Key names an entry. Kind is a constant of the code ("code", "login"); ID is
// unique within it and contains no braces: a UUID, or the [Digest] of a secret
// or of anything a client chose.
type Key struct{ Kind, ID string }

// String returns the key as backends write it, v1:<kind>:{<id>}, behind a prefix of theirs
// if there is one. The braces make the id the hash tag of a Redis Cluster.
func (k Key) String() string { return "v1:" + k.Kind + ":{" + k.ID + "}" }

// Digest returns the SHA-256 of a secret in base64url, to be used as an ID: who
// reads the store cannot use what is in it.
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// A Store keeps values for a while. All methods may be called at once from any
// number of goroutines and nodes, and each is atomic. An absent or expired key
// is a problem.NotFound. A value written under one kind is never given for
// another. A ttl must be positive.
type Store interface {
	// Put sets the value, whether or not the key exists.
	Put(ctx context.Context, key Key, value []byte, ttl time.Duration) error
	// Get reads the value.
	Get(ctx context.Context, key Key) ([]byte, error)
	// Take reads and deletes: of many callers one gets the value.
	Take(ctx context.Context, key Key) ([]byte, error)
	// Add sets the value if the key is absent, else gives problem.Conflict.
	Add(ctx context.Context, key Key, value []byte, ttl time.Duration) error
	// CompareAndSwap replaces old by new and restarts the ttl. Another value than
	// old returns problem.Conflict.
	CompareAndSwap(ctx context.Context, key Key, old, new []byte, ttl time.Duration) error
	// Delete removes the key; an absent one is no error.
	Delete(ctx context.Context, key Key) error
	// Incr adds one to a counter and gives the sum. The ttl begins with the first.
	// Counters are read by Incr alone; Get of one is undefined.
	Incr(ctx context.Context, key Key, ttl time.Duration) (int64, error)
	// Allow takes n of what a rate allows a key, all of them or none: where they are
	// not there it says how long to wait, and nothing is counted. A negative n gives
	// so many back. A key has one rate, and is asked by Allow alone.
	Allow(ctx context.Context, key Key, rate Rate, n int) (wait time.Duration, err error)
}
