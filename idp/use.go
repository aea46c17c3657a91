package idp

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/spent"
)

// A Use records the use of something that must not be used again, such as a client's assertion.
type Use struct {
	Hash    string    // identifies the used thing
	Made    time.Time // when the thing was made, or an earlier time; not stored
	Expires time.Time // when the thing expires; the use need not be stored after that
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

// Uses collects the uses in a request until they are stored. If the request changes anything, all of
// them are stored in the same transaction. Otherwise, [Uses.Store] stores them. A nil *Uses is
// empty.
type Uses struct {
	store   UseStore
	log     *spent.Log
	due     []Use
	claimed bool // whether the log contains due
}

// Uses returns an empty Uses.
func (as *Assertions) Uses() *Uses { return &Uses{store: as.Store.Uses, log: as.Store.Used} }

// ErrUnknown is joined to the problem that the client sees if a code or a refresh token was never
// issued, or has expired and is not stored.
var ErrUnknown = errors.New("no such code or refresh token")

// unknown returns the error for an unknown code or refresh token; see ErrUnknown.
func unknown(why string) error { return errors.Join(invalidGrant(why), ErrUnknown) }

// Add adds a use.
func (u *Uses) Add(use Use) { u.due = append(u.due, use) }

// Store stores the uses, unless a change has stored them. If one of them is already stored, Store
// returns its Refusal.
func (u *Uses) Store(ctx context.Context) error {
	if u == nil || len(u.due) == 0 {
		return nil
	}
	if u.log == nil || u.claimed { // if the uses are claimed, the change that should have stored them has failed
		return u.storeWith(func(due []Use) error { return u.store.MarkUsed(ctx, due...) })
	}
	err := u.addToLog()
	if err == nil {
		u.due = nil
	}
	return err
}

// storeWith calls change with the uses. If change succeeds, it has stored them.
func (u *Uses) storeWith(change func([]Use) error) error {
	if u == nil {
		return change(nil)
	}
	if u.log != nil && !u.claimed && len(u.due) > 0 {
		// Check the log first, because the change does not know the uses that are only in the log.
		if err := u.addToLog(); err != nil {
			return err
		}
	}
	err := change(u.due)
	if err == nil {
		u.due = nil
	}
	return err
}

// addToLog adds the uses to the log. If one of them is already in the log, addToLog returns its
// Refusal.
func (u *Uses) addToLog() error {
	err := u.log.Add(Logged(u.due)...)
	var known spent.Repeated
	if errors.As(err, &known) {
		return u.due[known.Index].Refusal
	}
	u.claimed = true // even if writing failed
	return err
}

// Logged returns uses in the form in which a log stores them.
func Logged(uses []Use) []spent.Use {
	all := make([]spent.Use, len(uses))
	for i, u := range uses {
		all[i] = spent.Use{ID: u.Hash, Made: u.Made, Expires: u.Expires}
	}
	return all
}
