package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A snapshot is the ring as it was read, with its keys opened. It never changes:
// what is derived from its keys is kept with it and goes with it.
type snapshot struct {
	version int64
	records []Record
	signers map[string]*signer // by kid
	roots   map[string][]byte  // sealing keys by kid
	makers  map[Use]Record     // the keys that sign and seal
	jwks    Document
	closed  map[string]error // why keys could not be opened, by kid
}

// read reads the ring. What a node has opened once it does not open again.
func (r *Ring) read(ctx context.Context, version int64) (*snapshot, error) {
	records, err := r.c.Store.RingKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading key ring: %w", err)
	}
	s := &snapshot{
		version: version, records: slices.DeleteFunc(records, func(rec Record) bool { return !slices.Contains(Uses(), rec.Use) }), // by a newer version
		signers: make(map[string]*signer), roots: make(map[string][]byte), makers: make(map[Use]Record), closed: make(map[string]error),
	}
	old := r.latest.Load()
	for _, rec := range s.records {
		if rec.State == Revoked {
			continue
		}
		if err := r.open(ctx, s, old, rec); err != nil {
			s.closed[rec.Kid] = err
			continue
		}
		s.offer(rec)
	}
	s.jwks, err = s.document(r.c.Publish)
	return s, err
}

// open opens a key into s, or takes it from the snapshot before.
func (r *Ring) open(ctx context.Context, s, old *snapshot, rec Record) error {
	if old != nil && old.signers[rec.Kid] != nil {
		s.signers[rec.Kid] = old.signers[rec.Kid]
		return nil
	}
	secret, err := r.master.open(rec.Sealed, rec.Kid)
	if err != nil {
		return fmt.Errorf("opening key %s: %w", rec.Kid, ErrMaster)
	}
	if rec.Use == Seal {
		s.roots[rec.Kid] = secret
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key, err := r.c.Custody.Open(ctx, rec.Use, secret)
	if err != nil {
		return fmt.Errorf("opening key %s: %w", rec.Kid, err)
	}
	s.signers[rec.Kid] = newSigner(rec, key)
	return nil
}

// offer makes a key the one that signs or seals if it is the current one. While
// that cannot be opened, it is the one retired last.
func (s *snapshot) offer(rec Record) {
	best, ok := s.makers[rec.Use]
	switch {
	case rec.State == Current:
	case rec.State != Retired || ok && (best.State == Current || best.Retired.After(rec.Retired)):
		return
	}
	s.makers[rec.Use] = rec
}

// find gives the key of a use in a state that only one can be in.
func (s *snapshot) find(use Use, state State) (Record, bool) {
	i := slices.IndexFunc(s.records, func(rec Record) bool { return rec.Use == use && rec.State == state })
	if i < 0 {
		return Record{}, false
	}
	return s.records[i], true
}

// usable reports that a current key could not be opened.
func (s *snapshot) usable() error {
	for _, use := range Uses() {
		if rec, ok := s.find(use, Current); ok && s.makers[use].Kid != rec.Kid {
			return s.closed[rec.Kid]
		}
	}
	return nil
}

// err tells which keys could not be opened.
func (s *snapshot) err() error {
	var errs []error
	for _, rec := range s.records {
		errs = append(errs, s.closed[rec.Kid])
	}
	return errors.Join(errs...)
}
