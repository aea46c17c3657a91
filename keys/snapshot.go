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
	masters []root // the master keys, the newest first
	records []Record
	signers map[string]*signer // by kid
	roots   map[string][]byte  // sealing keys by kid
	makers  map[Use]Record     // the keys used for signing and sealing, by use
	jwks    Document
	closed  map[string]error // errors for keys that could not be opened, by kid

	verified tokenCache // tokens that its keys have signed
}

// read reads the ring, which is sealed with the given master keys. It does not open signing keys that
// are open in the previous snapshot.
func (r *Ring) read(ctx context.Context, version int64, masters []root) (*snapshot, error) {
	records, err := r.c.Store.RingKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading key ring: %w", err)
	}
	fromNewerVersion := func(rec Record) bool { return !slices.Contains(Uses(), rec.Use) }
	s := &snapshot{
		version: version,
		masters: masters,
		records: slices.DeleteFunc(records, fromNewerVersion),
		signers: make(map[string]*signer),
		roots:   make(map[string][]byte),
		makers:  make(map[Use]Record),
		closed:  make(map[string]error),
	}

	for i, opened := range r.openAll(ctx, masters, s.records) {
		rec := s.records[i]
		switch {
		case opened.err != nil:
			s.closed[rec.Kid] = opened.err
		case opened.signer != nil:
			s.signers[rec.Kid] = opened.signer
			s.offer(rec)
		case opened.root != nil:
			s.roots[rec.Kid] = opened.root
			s.offer(rec)
		}
	}

	s.jwks, err = s.document(r.c.Publish)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// unsealed is an opened key, or the error from opening it. For a revoked key, it is the zero value.
type unsealed struct {
	signer *signer
	root   []byte // the key, if it is a sealing key
	err    error
}

// openAll opens keys concurrently. Parsing private keys takes most of the startup time, and a
// Custody may request each key over a network.
func (r *Ring) openAll(ctx context.Context, masters []root, records []Record) []unsealed {
	opened := make([]unsealed, len(records))
	previous := r.latest.Load()
	var opening sync.WaitGroup
	for i, rec := range records {
		if rec.State != Revoked {
			opening.Go(func() { opened[i] = r.open(ctx, previous, masters, rec) })
		}
	}
	opening.Wait()
	return opened
}

// open opens a key. If it is a signing key that is open in the previous snapshot, open returns the
// signer from there.
func (r *Ring) open(ctx context.Context, previous *snapshot, masters []root, rec Record) unsealed {
	if previous != nil && previous.signers[rec.Kid] != nil {
		return unsealed{signer: previous.signers[rec.Kid]}
	}

	secret, err := openAny(masters, func(x root) *vault { return x.master }, rec.Sealed, rec.Kid)
	if err != nil {
		return unsealed{err: fmt.Errorf("decrypting key %s: %w", rec.Kid, ErrMaster)}
	}
	if rec.Use == Seal {
		return unsealed{root: secret}
	}

	ctx, cancel := context.WithTimeout(ctx, custodyTimeout)
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
	if rec.State == Current {
		s.makers[rec.Use] = rec
		return
	}
	if rec.State != Retired {
		return
	}
	best, ok := s.makers[rec.Use]
	if !ok || best.State != Current && !best.Retired.After(rec.Retired) {
		s.makers[rec.Use] = rec
	}
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
