package factor

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// The types of a Factor.
const (
	TypePasskey  = "passkey"
	TypeTOTP     = "totp"
	TypeRecovery = "recovery_codes"
)

// A Factor is one of what an owner has, as a list shows it.
type Factor struct {
	ID       string // of recovery codes their type
	Type     string
	Name     string // of a passkey
	BackedUp bool   // of a passkey: it is on more than one device
	Left     int    // of recovery codes: how many are
	Created  time.Time
	Used     time.Time // zero if it never was
}

// List returns what an owner has: passkeys by their age, the authenticator app, recovery
// codes.
func (f *Factors) List(ctx context.Context, o Owner) ([]Factor, error) {
	passkeys, err := f.c.Store.ListPasskeys(ctx, o)
	if err != nil {
		return nil, err
	}
	var all []Factor
	for _, p := range passkeys {
		all = append(all, Factor{ID: p.ID, Type: TypePasskey, Name: p.Name, BackedUp: p.BackedUp,
			Created: p.Created, Used: p.Used})
	}
	t, err := f.c.Store.FindTOTP(ctx, o)
	switch {
	case err == nil:
		all = append(all, Factor{ID: t.ID, Type: TypeTOTP, Created: t.Created, Used: t.Used})
	case !errors.Is(err, problem.NotFound):
		return nil, err
	}
	codes, err := f.c.Store.FindRecoveryCodes(ctx, o)
	if err != nil {
		return nil, err
	}
	if codes.Left > 0 {
		all = append(all, Factor{ID: TypeRecovery, Type: TypeRecovery, Left: codes.Left, Created: codes.Created})
	}
	return all, nil
}

// Rename returns a passkey another name.
func (f *Factors) Rename(ctx context.Context, o Owner, id, name string) error {
	return f.c.Store.RenamePasskey(ctx, o, id, PasskeyName(name))
}

// Remove takes a factor away from its owner, by the id that List gives. With the last
// that can be asked for, the recovery codes go, too.
func (f *Factors) Remove(ctx context.Context, o Owner, id string) error {
	if id == TypeRecovery {
		return f.c.Store.ReplaceRecoveryCodes(ctx, o, nil, f.now())
	}
	err := f.c.Store.DeletePasskey(ctx, o, id)
	if errors.Is(err, problem.NotFound) {
		err = f.c.Store.DeleteTOTP(ctx, o, id)
	}
	if err != nil {
		return err
	}
	left, err := f.Has(ctx, o)
	if err != nil || left.Any() {
		return err
	}
	return f.c.Store.ReplaceRecoveryCodes(ctx, o, nil, f.now())
}
