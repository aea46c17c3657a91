package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// A snapshot is the ring at the time it was read, with its keys opened. It never changes. Values
// derived from its keys, such as verified tokens, are dropped together with it.
type snapshot struct {
	version int64
	records []Record
	signers map[string]*signer // by kid
	roots   map[string][]byte  // sealing keys by kid
	makers  map[Use]Record     // the keys used for signing and sealing, by use
	jwks    Document
	closed  map[string]error // errors for keys that could not be opened, by kid

	verified tokenCache // tokens that its keys have signed
}

// read reads the ring. It does not open signing keys that are open in the previous snapshot.
func (r *Ring) read(ctx context.Context, version int64) (*snapshot, error) {
	records, err := r.c.Store.RingKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading key ring: %w", err)
	}
	s := &snapshot{
		version: version, records: slices.DeleteFunc(records, func(rec Record) bool {
			return !slices.Contains(Uses(), rec.Use)
		}), // omit keys from a newer version of selvage
		signers: make(map[string]*signer), roots: make(map[string][]byte), makers: make(map[Use]Record),
		closed: make(map[string]error),
	}

	for i, o := range r.openAll(ctx, s.records) {
		rec := s.records[i]
		switch {
		case o.err != nil:
			s.closed[rec.Kid] = o.err
			continue
		case o.signer != nil:
			s.signers[rec.Kid] = o.signer
		case o.root != nil:
			s.roots[rec.Kid] = o.root
		default:
			continue
		}
		s.offer(rec)
	}

	s.jwks, err = s.document(r.c.Publish)
	return s, err
}

// unsealed is an opened key, or the error from opening it. For a revoked key, it is the zero value.
type unsealed struct {
	signer *signer
	root   []byte // the key, if it is a sealing key
	err    error
}

// openAll opens keys concurrently. Parsing private keys takes most of the startup time, and a
// Custody may request each key over a network.
func (r *Ring) openAll(ctx context.Context, records []Record) []unsealed {
	all, old := make([]unsealed, len(records)), r.latest.Load()
	var opening sync.WaitGroup
	for i, rec := range records {
		if rec.State != Revoked {
			opening.Go(func() { all[i] = r.open(ctx, old, rec) })
		}
	}
	opening.Wait()
	return all
}

// open opens a key. If it is a signing key that is open in old, the previous snapshot, open returns
// that one.
func (r *Ring) open(ctx context.Context, old *snapshot, rec Record) unsealed {
	if old != nil && old.signers[rec.Kid] != nil {
		return unsealed{signer: old.signers[rec.Kid]}
	}

	secret, err := openAny(*r.roots.Load(), func(x root) *vault { return x.master }, rec.Sealed, rec.Kid)
	if err != nil {
		return unsealed{err: fmt.Errorf("decrypting key %s: %w", rec.Kid, ErrMaster)}
	}
	if rec.Use == Seal {
		return unsealed{root: secret}
	}

	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key, err := r.c.Custody.Open(ctx, rec.Use, secret)
	if err != nil {
		return unsealed{err: fmt.Errorf("decrypting key %s: %w", rec.Kid, err)}
	}
	return unsealed{signer: newSigner(rec, key)}
}

// offer makes rec the key for signing or sealing if it is current. If the current key cannot be
// opened, the most recently retired key is used instead.
func (s *snapshot) offer(rec Record) {
	best, ok := s.makers[rec.Use]
	switch {
	case rec.State == Current:
	case rec.State != Retired || ok && (best.State == Current || best.Retired.After(rec.Retired)):
		return
	}
	s.makers[rec.Use] = rec
}

// find returns the key with the given use and state. state must be Current or Next, because a use
// can have several keys in the other states.
func (s *snapshot) find(use Use, state State) (Record, bool) {
	i := slices.IndexFunc(s.records, func(rec Record) bool { return rec.Use == use && rec.State == state })
	if i < 0 {
		return Record{}, false
	}
	return s.records[i], true
}

// usable returns an error if the current key for any use could not be opened.
func (s *snapshot) usable() error {
	for _, use := range Uses() {
		if rec, ok := s.find(use, Current); ok && s.makers[use].Kid != rec.Kid {
			return s.closed[rec.Kid]
		}
	}
	return nil
}

// err returns the errors of all keys that could not be opened.
func (s *snapshot) err() error {
	var errs []error
	for _, rec := range s.records {
		errs = append(errs, s.closed[rec.Kid])
	}
	return errors.Join(errs...)
}
