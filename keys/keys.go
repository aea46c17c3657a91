// Package keys is the key ring: the keys that sign ID and access tokens and
// those that seal fabric tokens, shared by all nodes.
//
// Each use has one current key, one next (published before it signs, so that
// verifiers which cache the JWKS know it in time) and retired ones (kept while
// something they made may live). One that is not to be trusted any more is
// revoked, and verifies nothing from then on. Nodes agree in the [Store], where
// each step is a compare-and-swap; there is no leader.
//
// Private parts lie in the Store sealed under a master key that does not, and
// signing ones may be elsewhere altogether: see [Custody]. Sealing keys are never
// used themselves: each type of token has its own, derived by HKDF.
package keys

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A State is where a key stands in its life.
type State string

// The states.
const (
	Next    State = "next"    // published, and does nothing yet
	Current State = "current" // signs or seals
	Retired State = "retired" // verifies or opens what it made, and goes after [Kept]
	Revoked State = "revoked" // does nothing; its secret is gone, its row stays to tell
)

// A Record is a key as the store has it.
type Record struct {
	Kid       string
	Use       Use
	State     State
	Sealed    string // its secret or handle, sealed by the master key; "" if State is Revoked
	Created   time.Time
	Activated time.Time // when it became Current; zero if it never did
	Retired   time.Time // when it became Retired, or Revoked
}

// A Move takes a key from a state to that of To, whose other fields it takes too.
type Move struct {
	From State
	To   Record
}

// A Store keeps records. At most one key of a use is current and one is next.
type Store interface {
	// RingKeys returns all keys, oldest first.
	RingKeys(ctx context.Context) ([]Record, error)
	// RingVersion returns a number that grows with each change.
	RingVersion(ctx context.Context) (int64, error)
	// ChangeRing makes moves, in their order, and adds keys: all of it or nothing.
	// It returns problem.Conflict where a key is not in the state it is moved from,
	// or where there is one already in a state that only one may be in.
	ChangeRing(ctx context.Context, moves []Move, added []Record) error
	// SweepRing deletes the keys that became Retired before a moment.
	SweepRing(ctx context.Context, before time.Time) error
	// Clock returns the time that the store has, for all nodes.
	Clock(ctx context.Context) (time.Time, error)
}

// Kept is how long a retired key is kept: longer than any token lives.
const Kept = 31 * 24 * time.Hour

// Config says where a ring is kept and how it turns.
type Config struct {
	Store   Store
	Master  []byte           // 32 bytes, see [ReadMaster]
	Custody Custody          // nil means [PKCS8]
	Now     func() time.Time // nil means time.Now

	SigningRotation time.Duration // how long a key signs; 0 means 720 h
	SealingRotation time.Duration // how long a key seals; 0 means 24 h
	// Publish is how long a key is there before it signs or seals; 0 means 1 h.
	// The JWKS may be cached for less than half of it, so that clocks of nodes may
	// be half of it apart. One that is a quarter of it from the store's rotates
	// nothing by time.
	Publish time.Duration
}

func (c *Config) fill() {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.SigningRotation, 720*time.Hour)
	def(&c.SealingRotation, 24*time.Hour)
	def(&c.Publish, time.Hour)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Custody == nil {
		c.Custody = PKCS8{}
	}
}

// A Ring signs, seals and opens. Its methods may be called at once from any
// number of goroutines.
type Ring struct {
	c      Config
	master *vault
	shared *vault // see SealSecret
	latest atomic.Pointer[snapshot]

	mu     sync.Mutex
	synced time.Time // when the store last answered
	cut    error     // why it does not
	stuck  error     // why what was due could not be done
	retry  time.Time // when that is tried again

	strangers sync.Mutex // held while a ring is read for an unknown kid
	asked     time.Time  // when it was last
}

// Open reads the ring and makes the keys that are missing. It fails where the
// current key of a use cannot be opened, such as with another master key; then
// it has changed nothing.
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
		if err = r.complete(ctx); !errors.Is(err, problem.Conflict) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening key ring: %w", err)
	}
	return r, nil
}

// Read reads a ring as it is and makes nothing, for who looks at it: its Status
// tells which keys cannot be opened.
func Read(ctx context.Context, c Config) (*Ring, error) {
	r, err := newRing(c)
	if err != nil {
		return nil, err
	}
	return r, r.Sync(ctx)
}

func newRing(c Config) (*Ring, error) {
	c.fill()
	master, err := newVault(c.Master)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, c.Master, nil, "selvage secrets", 32)
	if err != nil {
		return nil, fmt.Errorf("deriving key: %w", err)
	}
	shared, err := newVault(key)
	return &Ring{c: c, master: master, shared: shared}, err
}

// attempts is how often something is tried again that another node was faster at.
const attempts = 8
