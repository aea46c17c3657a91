package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/revocation"
)

// endingYears is how many years the revocation that EndAll writes is kept. All tokens expire earlier.
const endingYears = 10

// EndAll ends all existing logins, grants, tokens and links, and revokes the tokens issued until
// the given time. It is called after a restore, because the restored database lacks the uses and
// revocations from after the backup.
//
// Passwords, API keys, recovery codes and redeemed codes are left unchanged.
func (s *Store) EndAll(ctx context.Context, until time.Time) error {
	now := micros(until)
	e := audit.Of("installation.restored", "", "installation", "")
	return s.change(ctx, e, func(t tx) error {
		for _, st := range []statement{
			{`UPDATE login_sessions SET ended = $1 WHERE ended = 0`, []any{now}},
			{`UPDATE grants SET revoked = $1 WHERE revoked = 0`, []any{now}},
			{`UPDATE families SET revoked = 1 WHERE revoked = 0`, nil},
			{`UPDATE operator_sessions SET ended = $1 WHERE ended = 0`, []any{now}},
			{`DELETE FROM mail_links`, nil},
			{`DELETE FROM operator_links`, nil},
			// A new epoch invalidates the marks of known devices. No subscriber has ever had this
			// epoch.
			{`UPDATE subscribers SET epoch = $1`, []any{now}},
			// The codes of authenticator apps can be used only once.
			{`UPDATE totps SET step = $1 WHERE step < $1`, []any{until.Unix() / totpSeconds}},
		} {
			if err := t.Later(ctx, st.query, st.args...); err != nil {
				return fmt.Errorf("ending logins and tokens: %w", err)
			}
		}

		return t.revoke(ctx, revocation.Revocation{
			Kind:    revocation.Installation,
			Until:   until,
			Expires: until.AddDate(endingYears, 0, 0),
		})
	})
}

// totpSeconds is the length of a step of authenticator apps (RFC 6238, section 4).
const totpSeconds = 30

// DropMedia marks the recordings with the given media keys as deleted. Their media was deleted
// while a backup was written.
func (f *Filler) DropMedia(ctx context.Context, keys []string, at time.Time) error {
	for some := range slices.Chunk(keys, fillBatch) {
		err := f.s.db.Change(ctx, func(t database.Tx) error {
			for _, key := range some {
				err := t.Later(ctx, `UPDATE recordings SET deleted = $2, updated = $2
					WHERE COALESCE(media_key, id) = $1 AND deleted = 0`, key, micros(at))
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("marking deleted recordings: %w", err)
		}
	}
	return nil
}
