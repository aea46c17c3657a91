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

// A Factor is one of an owner's factors, for display.
type Factor struct {
	ID       string // for recovery codes, the same as Type
	Type     string
	Name     string // for passkeys
	BackedUp bool   // for passkeys: whether the passkey is stored on several devices
	Left     int    // for recovery codes: how many can still be used
	Created  time.Time
	Used     time.Time // zero if never used
}

// List returns an owner's factors: passkeys from the oldest to the newest, then the authenticator
// app, then the recovery codes.
func (f *Factors) List(ctx context.Context, o Owner) ([]Factor, error) {
	passkeys, err := f.c.Store.ListPasskeys(ctx, o)
	if err != nil {
		return nil, err
	}

	var all []Factor
	for _, p := range passkeys {
		all = append(all, Factor{
			ID:       p.ID,
			Type:     TypePasskey,
			Name:     p.Name,
			BackedUp: p.BackedUp,
			Created:  p.Created,
			Used:     p.Used,
		})
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

// Rename changes the name of a passkey.
func (f *Factors) Rename(ctx context.Context, o Owner, id, name string) error {
	return f.c.Store.RenamePasskey(ctx, o, id, PasskeyName(name))
}

// Remove deletes the owner's factor with the given [Factor.ID]. If neither a passkey nor an app remains,
// Remove also deletes the recovery codes.
func (f *Factors) Remove(ctx context.Context, o Owner, id string) error {
	return f.remove(ctx, o, id, false)
}

// RemoveExceptLast is like Remove, but returns ErrLastPasskey instead of removing the owner's only
// passkey.
func (f *Factors) RemoveExceptLast(ctx context.Context, o Owner, id string) error {
	return f.remove(ctx, o, id, true)
}

func (f *Factors) remove(ctx context.Context, o Owner, id string, exceptLast bool) error {
	if id == TypeRecovery {
		return f.c.Store.ReplaceRecoveryCodes(ctx, o, nil, f.now())
	}

	err := f.c.Store.DeletePasskey(ctx, o, id, exceptLast)
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
