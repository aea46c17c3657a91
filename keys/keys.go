// Package keys implements the key ring: the keys that sign ID and access tokens, and the keys that
// seal fabric tokens. All nodes share the ring.
//
// Each use has one current key, one next key and any number of retired keys. The next key is
// published before it is used to sign, so that verifiers that cache the JWKS learn about it in
// time. A retired key is kept while anything that it signed or sealed may still be valid. A key
// that is no longer trusted is revoked. From then on, everything that the key signed or sealed is
// refused. Nodes agree through the [Store], in which each step is a compare-and-swap. There is no
// leader.
//
// The Store holds the private parts of keys, sealed with a master key that is kept elsewhere.
// Private signing keys may also be kept outside the Store: see [Custody]. Sealing keys are never
// used directly: HKDF derives a key from them for each type of token.
package keys

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A State is a stage in a key's life.
type State string

// The states of a key.
const (
	Next    State = "next"    // published, not in use yet
	Current State = "current" // used to sign or seal
	Retired State = "retired" // used only to verify or open; deleted after [Kept]
	Revoked State = "revoked" // not used; its secret is deleted, but its record is kept
)

// A Record is a key in the form in which the store holds it.
type Record struct {
	Kid       string
	Use       Use
	State     State
	Sealed    string // the key's secret or handle, sealed with the master key; "" if State is Revoked
	Created   time.Time
	Activated time.Time // when the key became Current; zero if it never did
	Retired   time.Time // when the key became Retired or Revoked
}

// A Move changes a key from the state From to the state in To, and updates the other fields of its
// record.
type Move struct {
	From State
	To   Record
}

// A Store keeps records. For each use, at most one key is current, and at most one is next.
type Store interface {
	// RingKeys returns the records of all keys, oldest first.
	RingKeys(ctx context.Context) ([]Record, error)
	// RingVersion returns a number that grows with each change of the ring.
	RingVersion(ctx context.Context) (int64, error)
	// ChangeRing applies the moves in order and adds keys, in one transaction. It returns
	// problem.Conflict if a key is no longer in the state From, or if a use would get a second
	// current or next key.
	ChangeRing(ctx context.Context, moves []Move, added []Record) error
	// SweepRing deletes the keys that were retired before the given time.
	SweepRing(ctx context.Context, before time.Time) error
	// Clock returns the store's time, which all nodes share.
	Clock(ctx context.Context) (time.Time, error)
	MasterStore
}

// Kept is how long a retired key is kept. It is longer than the lifetime of any token.
const Kept = 31 * 24 * time.Hour

// Config sets where a ring is stored, and how often its keys rotate.
type Config struct {
	Store   Store
	Master  []byte           // 32 bytes, see [ReadMaster]
	Custody Custody          // nil means [PKCS8]
	Now     func() time.Time // nil means time.Now

	// Masters returns all master keys that this machine has. The ring calls it when Master is no
	// longer the newest. nil means that Master is the only one.
	Masters func() ([][]byte, error)
	// Replaced is called when the ring finds that the master key was replaced. It may be nil.
	Replaced func(Masters)

	SigningRotation time.Duration // how long a key signs; 0 means 720 h
	SealingRotation time.Duration // how long a key seals; 0 means 24 h
	// Publish is how long a key is published before it is used to sign or seal; 0 means 1 h. The
	// JWKS may be cached for less than half of this time, so the clocks of two nodes may differ by
	// half of it. A node whose clock differs from the store's by more than a quarter of it does not
	// rotate keys by time.
	Publish time.Duration
}

// setDefaults sets unset fields to their defaults.
func (c *Config) setDefaults() {
	if c.SigningRotation <= 0 {
		c.SigningRotation = 720 * time.Hour
	}
	if c.SealingRotation <= 0 {
		c.SealingRotation = 24 * time.Hour
	}
	if c.Publish <= 0 {
		c.Publish = time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Custody == nil {
		c.Custody = PKCS8{}
	}
}

// A Ring signs, seals and opens tokens. Its methods are safe for concurrent use.
type Ring struct {
	c      Config
	first  []root // the master keys until the ring has been read
	latest atomic.Pointer[snapshot]

	mu      sync.Mutex
	synced  time.Time // when the store last answered
	syncErr error     // the error of the last sync; nil if it succeeded
	stepErr error     // the error of the last step; nil if it succeeded
	retry   time.Time // when to retry a failed step

	strangers sync.Mutex // held while the ring is read because of an unknown kid
	asked     time.Time  // when the ring was last read because of an unknown kid
}

// Open reads the ring and creates missing keys. If the current key for any use cannot be opened,
// for example because the master key is wrong, Open changes nothing and returns an error.
func Open(ctx context.Context, c Config) (*Ring, error) {
	r, err := newRing(c)
	if err != nil {
		return nil, err
	}

	for range attempts {
		if err = r.Sync(ctx); err != nil {
			return nil, err
		}
		if err = r.latest.Load().usable(); err != nil {
			return nil, err
		}
		err = r.complete(ctx)
		if !errors.Is(err, problem.Conflict) {
			break
		}
	}

	if err != nil {
		return nil, fmt.Errorf("opening key ring: %w", err)
	}
	return r, nil
}

// Read reads a ring without creating keys, for tools that inspect it. Its Status shows which keys
// cannot be opened.
func Read(ctx context.Context, c Config) (*Ring, error) {
	r, err := newRing(c)
	if err != nil {
		return nil, err
	}
	return r, r.Sync(ctx)
}

// newRing returns a ring that has read nothing yet.
func newRing(c Config) (*Ring, error) {
	c.setDefaults()
	only, err := newRoot(c.Master, false)
	if err != nil {
		return nil, err
	}
	return &Ring{c: c, first: []root{only}}, nil
}

// attempts is how many times a change is tried if other nodes change the ring first.
const attempts = 8
