// Package keys is the key ring: the keys that sign ID and access tokens and
// those that seal fabric tokens, shared by all nodes.
//
// Each use has one current key, one next (published before it signs, so that
// verifiers which cache the JWKS know it in time) and retired ones (kept while
// something they made may live). Private parts lie in the [Store] sealed under a
// master key that does not. Sealing keys are never used themselves: each type of
// token has its own, derived by HKDF.
package keys

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

// A Use is what a key is for: an algorithm of RFC 7518 that signs, or sealing.
type Use string

// The uses.
const (
	RS256 Use = "RS256"
	ES256 Use = "ES256"
	Seal  Use = "seal"
)

var uses = []Use{RS256, ES256, Seal}

// A State is where a key stands in its life.
type State string

// The states.
const (
	Next    State = "next"
	Current State = "current"
	Retired State = "retired"
)

// A Record is a key as the store has it.
type Record struct {
	Kid     string
	Use     Use
	State   State
	Sealed  string // the key itself, sealed by the master key
	Created time.Time
	Retired time.Time // zero unless State is Retired
}

// A Store keeps records. At most one key of a use is current and one is next:
// AddRingKey gives problem.Conflict where another node was faster.
type Store interface {
	RingKeys(ctx context.Context) ([]Record, error)
	AddRingKey(ctx context.Context, r Record) error
}

// Config says where a ring is kept.
type Config struct {
	Store  Store
	Master []byte           // 32 bytes, see [ReadMaster]
	Now    func() time.Time // nil means time.Now
}

// A Ring signs, seals and opens. Its methods may be called at once from any
// number of goroutines.
type Ring struct {
	c      Config
	master *vault

	mu      sync.RWMutex
	signers map[string]*signer // by kid
	roots   map[string][]byte  // sealing root keys by kid
	current map[Use]string     // kid
	jwks    Document
}

// Open reads the ring and makes the keys that are missing.
func Open(ctx context.Context, c Config) (*Ring, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	master, err := newVault(c.Master)
	if err != nil {
		return nil, err
	}
	r := &Ring{c: c, master: master}
	for _, use := range uses {
		for _, state := range []State{Current, Next} {
			if err := r.ensure(ctx, use, state); err != nil {
				return nil, err
			}
		}
	}
	return r, r.Reload(ctx)
}

// ensure makes the key of a use and state, unless there is one.
func (r *Ring) ensure(ctx context.Context, use Use, state State) error {
	records, err := r.c.Store.RingKeys(ctx)
	if err != nil {
		return fmt.Errorf("reading key ring: %w", err)
	}
	for _, rec := range records {
		if rec.Use == use && rec.State == state {
			return nil
		}
	}
	secret, err := generate(use)
	if err != nil {
		return err
	}
	kid := newKid()
	sealed, err := r.master.seal(secret, kid)
	if err != nil {
		return err
	}
	err = r.c.Store.AddRingKey(ctx, Record{Kid: kid, Use: use, State: state, Sealed: sealed, Created: r.c.Now()})
	if err != nil && !errors.Is(err, problem.Conflict) {
		return fmt.Errorf("writing key ring: %w", err)
	}
	return nil
}

// Reload reads the ring anew, as another node may have changed it.
func (r *Ring) Reload(ctx context.Context) error {
	records, err := r.c.Store.RingKeys(ctx)
	if err != nil {
		return fmt.Errorf("reading key ring: %w", err)
	}
	signers, roots, current := make(map[string]*signer), make(map[string][]byte), make(map[Use]string)
	for _, rec := range records {
		secret, err := r.master.open(rec.Sealed, rec.Kid)
		if err != nil {
			return fmt.Errorf("opening key %s: the master key is not the one that sealed it: %w", rec.Kid, err)
		}
		if rec.Use == Seal {
			roots[rec.Kid] = secret
		} else if signers[rec.Kid], err = newSigner(rec, secret); err != nil {
			return err
		}
		if rec.State == Current {
			current[rec.Use] = rec.Kid
		}
	}
	jwks, err := document(records, signers)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signers, r.roots, r.current, r.jwks = signers, roots, current, jwks
	return nil
}

// newKid gives a key id: time-ordered, and saying nothing else.
func newKid() string {
	id, err := uuid.NewV7()
	if err != nil {
		return rand.Text()
	}
	return id.String()
}
