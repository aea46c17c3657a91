package idp

import (
	"context"
	"errors"
	"time"
)

// A Use is the only use of something that must not be used again, such as a client's assertion.
type Use struct {
	Hash    string    // identifies the used thing
	Expires time.Time // when the thing itself expires; its use need not be stored after that
	Refusal error     // the error for any further use
}

// A UseStore stores uses until they expire. It must not lose them if the session store is emptied.
type UseStore interface {
	// MarkUsed stores uses, all or none. If one of them is already stored, MarkUsed returns its
	// Refusal.
	MarkUsed(ctx context.Context, uses ...Use) error
	// WasUsed reports whether a use with this hash is stored.
	WasUsed(ctx context.Context, hash string) (bool, error)
}

// Uses holds the uses of a request that are not stored yet. If the request changes anything, all of
// them are stored in the same transaction. Otherwise, [Uses.Store] stores them. A nil *Uses is
// empty.
type Uses struct {
	store UseStore
	due   []Use
}

// Uses returns an empty Uses.
func (as *Assertions) Uses() *Uses { return &Uses{store: as.Store.Uses} }

// ErrUnknown is the error for a code or a refresh token that was never issued, joined to the
// problem that the client sees.
var ErrUnknown = errors.New("no such code or refresh token")

// unknown returns the error for a code or a refresh token that was never issued.
func unknown(why string) error { return errors.Join(invalidGrant(why), ErrUnknown) }

// Add adds a use.
func (u *Uses) Add(use Use) { u.due = append(u.due, use) }

// Store stores the uses, unless a change has stored them. If one of them is already stored, Store
// returns its Refusal.
func (u *Uses) Store(ctx context.Context) error {
	if u == nil || len(u.due) == 0 {
		return nil
	}
	return u.storeWith(func(due []Use) error { return u.store.MarkUsed(ctx, due...) })
}

// storeWith calls change, which stores the uses if it succeeds.
func (u *Uses) storeWith(change func([]Use) error) error {
	if u == nil {
		return change(nil)
	}
	err := change(u.due)
	if err == nil {
		u.due = nil
	}
	return err
}
