// Package session keeps state that lives for minutes and that every node must see: current logins,
// authorization requests and codes, and browser sessions.
//
// A [Store] maps keys to values that expire. Each operation uses one key, so a Store can be spread
// over a Redis Cluster. State that must survive even if the Store is emptied, such as a refresh
// token, belongs in package store.
package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// A Key names an entry. Kind is a constant in the code, such as "code" or "login". ID is unique
// within the kind, and contains no braces: it is a UUID, or the [Digest] of a secret or of text
// from a client.
type Key struct{ Kind, ID string }

// String returns the key in the form that backends store: v1:<kind>:{<id>}. If a backend has a
// prefix, it precedes this form. In a Redis Cluster, the braces make the id the hash tag.
func (k Key) String() string { return "v1:" + k.Kind + ":{" + k.ID + "}" }

// Digest returns the SHA-256 of a secret in base64url, for use as an ID. The ID does not reveal the
// secret to someone who can read the store.
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// A Store keeps values until they expire. All methods are atomic, and safe for concurrent use by
// any number of goroutines and nodes. If a key is unknown or expired, the error is
// problem.NotFound. A value written under one kind is never returned for another. A ttl must be
// positive.
type Store interface {
	// Put sets the value, whether or not the key exists.
	Put(ctx context.Context, key Key, value []byte, ttl time.Duration) error
	// Get returns the value.
	Get(ctx context.Context, key Key) ([]byte, error)
	// Take returns the value and deletes it. If several callers take the same key, only one gets
	// the value.
	Take(ctx context.Context, key Key) ([]byte, error)
	// Add sets the value if the key does not exist. Otherwise it returns problem.Conflict.
	Add(ctx context.Context, key Key, value []byte, ttl time.Duration) error
	// CompareAndSwap replaces the value with new and restarts the lifetime, if the value equals
	// old. Otherwise it returns problem.Conflict.
	CompareAndSwap(ctx context.Context, key Key, old, new []byte, ttl time.Duration) error
	// Delete removes the key. An unknown key is not an error.
	Delete(ctx context.Context, key Key) error
	// Incr adds one to a counter, and returns the sum. The lifetime starts with the first call.
	// Only Incr may read a counter; the result of Get is undefined.
	Incr(ctx context.Context, key Key, ttl time.Duration) (int64, error)
	// Allow takes n events from the rate of a key, all or none. If they are not available, Allow
	// returns how long to wait. If n is negative, Allow gives -n events back to the key. Each key
	// must always be used with the same rate, and only with Allow.
	Allow(ctx context.Context, key Key, rate Rate, n int) (wait time.Duration, err error)
}
