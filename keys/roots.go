package keys

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A MasterRecord is the stored form of a master key of the installation. The store has no records
// until the first rotation.
type MasterRecord struct {
	Generation  int64     // 0 for the first master key of the installation
	Fingerprint string    // the key's name; see [Fingerprint]
	Sealed      string    // the key, sealed with the newest key; "" for the newest
	Leaked      bool      // whether others may know the key
	Replaced    time.Time // when the next key replaced it; zero for the newest
	Resealed    time.Time // when all secrets were last found to be sealed with this key
}

// Masters holds the master keys of an installation.
type Masters struct {
	newest  []byte
	records []MasterRecord // oldest first; empty before the first rotation
	earlier []root         // oldest first
}

// A root is a master key with the keys derived from it.
type root struct {
	key    []byte
	leaked bool
	master *vault // seals the ring
	shared *vault // seals secrets; see SealSecret
}

// newRoot derives the keys from a master key.
func newRoot(master []byte, leaked bool) (root, error) {
	ring, err := newVault(master)
	if err != nil {
		return root{}, err
	}
	key, err := hkdf.Key(sha256.New, master, nil, "selvage secrets", 32)
	if err != nil {
		return root{}, fmt.Errorf("deriving key: %w", err)
	}
	shared, err := newVault(key)
	if err != nil {
		return root{}, err
	}
	return root{key: master, leaked: leaked, master: ring, shared: shared}, nil
}

// FindMasters returns the master keys of the installation in store. candidates are the keys that
// this machine has. Before the first rotation, store has no records, and the first candidate is the
// master key. After the first rotation, one candidate must be the newest master key. Otherwise, the
// error is [ErrMaster].
func FindMasters(ctx context.Context, store MasterStore, candidates ...[]byte) (Masters, error) {
	records, err := store.MasterKeys(ctx)
	if err != nil {
		return Masters{}, fmt.Errorf("reading master keys: %w", err)
	}
	if len(records) == 0 {
		if len(candidates) == 0 {
			return Masters{}, ErrMaster
		}
		return Masters{newest: candidates[0]}, nil
	}

	newest := records[len(records)-1]
	isNewest := func(key []byte) bool { return Fingerprint(key) == newest.Fingerprint }
	i := slices.IndexFunc(candidates, isNewest)
	if i < 0 {
		return Masters{}, fmt.Errorf("opening key ring, whose master key has the fingerprint %s: %w",
			newest.Fingerprint, ErrMaster)
	}
	m := Masters{newest: candidates[i], records: records}
	opener, err := newRoot(m.newest, false)
	if err != nil {
		return Masters{}, err
	}

	for _, r := range records[:len(records)-1] {
		key, err := opener.master.open(r.Sealed, masterName(r))
		if err != nil {
			return Masters{}, fmt.Errorf("decrypting master key %d: %w", r.Generation, ErrMaster)
		}
		earlier, err := newRoot(key, r.Leaked)
		if err != nil {
			return Masters{}, err
		}
		m.earlier = append(m.earlier, earlier)
	}
	return m, nil
}

// A MasterStore keeps the records of master keys.
type MasterStore interface {
	// MasterKeys returns the records of all master keys, oldest first.
	MasterKeys(ctx context.Context) ([]MasterRecord, error)
}

// masterName returns the name that a sealed master key is bound to.
func masterName(r MasterRecord) string {
	return fmt.Sprintf("master key %d %s", r.Generation, r.Fingerprint)
}

// Newest returns the master key in use.
func (m Masters) Newest() []byte { return m.newest }

// Earlier returns the keys that the newest key has replaced, oldest first.
func (m Masters) Earlier() [][]byte {
	all := make([][]byte, len(m.earlier))
	for i, r := range m.earlier {
		all[i] = r.key
	}
	return all
}

// roots returns all keys, the newest first.
func (m Masters) roots() ([]root, error) {
	newest, err := newRoot(m.newest, false)
	if err != nil {
		return nil, err
	}
	all := append(slices.Clone(m.earlier), newest)
	slices.Reverse(all)
	return all, nil
}

// A Replacement is a new master key. It is stored together with the earlier master keys and the
// ring, which are sealed with the new key.
type Replacement struct {
	Masters []MasterRecord // all master keys, oldest first
	Ring    []ResealedKey
}

// A ResealedKey holds the secret of a ring key before and after it was sealed again.
type ResealedKey struct{ Kid, Old, New string }

// ErrSameMaster is the error for a new master key that the installation has had before.
var ErrSameMaster = errors.New("the installation has had this master key before")

// Replace prepares the replacement of the newest master key with next. If leaked is set, others may
// know the keys used until now. The caller stores the result; see [Ring.Sync].
func (r *Ring) Replace(ctx context.Context, next []byte, leaked bool) (p Replacement, err error) {
	if err := r.Sync(ctx); err != nil {
		return p, err
	}
	to, err := newRoot(next, false)
	if err != nil {
		return p, err
	}
	all := r.masters()
	if p.Masters, err = r.sealMasters(ctx, all, to, leaked); err != nil {
		return p, err
	}

	records, err := r.c.Store.RingKeys(ctx)
	if err != nil {
		return p, fmt.Errorf("reading key ring: %w", err)
	}

	for _, rec := range records {
		if rec.State == Revoked {
			continue
		}
		secret, err := openAny(all, func(x root) *vault { return x.master }, rec.Sealed, rec.Kid)
		if err != nil {
			return p, fmt.Errorf("decrypting key %s: %w", rec.Kid, ErrMaster)
		}
		sealed, err := to.master.seal(secret, rec.Kid)
		if err != nil {
			return p, err
		}
		p.Ring = append(p.Ring, ResealedKey{Kid: rec.Kid, Old: rec.Sealed, New: sealed})
	}
	return p, nil
}

// sealMasters returns the records of all master keys, sealed with the new key to.
func (r *Ring) sealMasters(ctx context.Context, all []root, to root, leaked bool) ([]MasterRecord, error) {
	now := r.c.Now()
	records, err := r.c.Store.MasterKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading master keys: %w", err)
	}
	if len(records) == 0 {
		records = []MasterRecord{{Fingerprint: Fingerprint(r.master())}}
	}
	if len(records) != len(all) {
		return nil, errRotated
	}
	records[len(records)-1].Replaced = now

	for i := range records {
		key := all[len(all)-1-i].key
		if Fingerprint(key) == Fingerprint(to.key) {
			return nil, ErrSameMaster
		}
		records[i].Leaked = records[i].Leaked || leaked
		if records[i].Sealed, err = to.master.seal(key, masterName(records[i])); err != nil {
			return nil, err
		}
	}
	return append(records, MasterRecord{
		Generation:  records[len(records)-1].Generation + 1,
		Fingerprint: Fingerprint(to.key),
	}), nil
}

// errRotated is returned by a rotation if another process has just rotated the master key.
var errRotated = errors.New("the master key has just been replaced; run the command again")

// openAny opens a secret with the first root whose vault can open it. vaultOf returns the vault of a
// root.
func openAny(all []root, vaultOf func(root) *vault, sealed, name string) (secret []byte, err error) {
	for _, r := range all {
		if secret, err = vaultOf(r).open(sealed, name); err == nil {
			return secret, nil
		}
	}
	return nil, err
}

// readMasters reads the master keys. It also returns the keys derived from them. A node that does not
// have the newest key gets an error, and continues to use the keys that it has.
func (r *Ring) readMasters(ctx context.Context) (m Masters, roots []root, err error) {
	m, err = FindMasters(ctx, r.c.Store, r.master(), r.c.Master)
	if errors.Is(err, ErrMaster) && r.c.Masters != nil {
		more, moreErr := r.c.Masters()
		if moreErr != nil {
			return m, nil, moreErr
		}
		m, err = FindMasters(ctx, r.c.Store, more...)
	}
	if err != nil {
		return m, nil, err
	}
	roots, err = m.roots()
	return m, roots, err
}

// masters returns the master keys with the keys derived from them, the newest first.
func (r *Ring) masters() []root {
	if s := r.latest.Load(); s != nil {
		return s.masters
	}
	return r.first
}

// newest returns the newest master key and the keys derived from it.
func (r *Ring) newest() root { return r.masters()[0] }

// master returns the bytes of the newest master key.
func (r *Ring) master() []byte { return r.newest().key }
