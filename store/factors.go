package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
)

// Factors holds second factors: passkeys, authenticator apps and recovery codes.
type Factors struct{ *core }

var _ factor.Store = (*Store)(nil)

// factorTables are the tables that hold the factors of owners.
var factorTables = []string{"passkeys", "totps", "recovery_codes"}

// lockOwner locks an owner. If the owner is being deleted concurrently, one of the two changes
// waits for the other, so that no factor remains without its owner. If the owner does not exist,
// the error is problem.NotFound.
func (t tx) lockOwner(ctx context.Context, o factor.Owner) error {
	table := map[factor.Kind]string{factor.Subscriber: "subscribers", factor.Operator: "operators"}[o.Kind]
	if table == "" {
		return problem.NoSuch("owner")
	}
	res, err := t.Exec(ctx, `UPDATE `+table+` SET updated = updated WHERE id = $1`, o.ID)
	if err = requireRow(res, err, string(o.Kind)); err != nil {
		return err
	}
	return t.placeOwner(ctx, o)
}

// beginFactor locks the owner of a new factor. If first is set and the owner already has a factor,
// the error is factor.ErrNotFirst.
func (t tx) beginFactor(ctx context.Context, o factor.Owner, first bool) error {
	if err := t.lockOwner(ctx, o); err != nil {
		return err
	}
	if !first {
		return nil
	}
	set, err := t.factorsOf(ctx, o)
	if err != nil {
		return err
	}
	if set.Any() {
		return factor.ErrNotFirst
	}
	return nil
}

// deleteFactors deletes the factors whose owner_id meets the SQL condition in owners.
func (t tx) deleteFactors(ctx context.Context, kind factor.Kind, owners string, args ...any) error {
	for _, table := range factorTables {
		err := t.Later(ctx, `DELETE FROM `+table+` WHERE owner_kind = '`+string(kind)+`' AND owner_id `+owners, args...)
		if err != nil {
			return fmt.Errorf("deleting from %s: %w", table, err)
		}
	}
	return nil
}

// HasFactors returns which factors an owner has.
func (s *Factors) HasFactors(ctx context.Context, o factor.Owner) (set factor.Set, err error) {
	return s.read().factorsOf(ctx, o)
}

func (t tx) factorsOf(ctx context.Context, o factor.Owner) (set factor.Set, err error) {
	err = t.Row(ctx, `SELECT EXISTS (SELECT 1 FROM passkeys WHERE owner_id = $1 AND owner_kind = $2),
			EXISTS (SELECT 1 FROM totps WHERE owner_id = $1 AND owner_kind = $2)`,
		o.ID, string(o.Kind)).Scan(&set.Passkeys, &set.TOTP)
	if err != nil {
		return set, fmt.Errorf("reading factors: %w", err)
	}
	return set, nil
}

var passkeyTable = table[factor.Passkey]{
	name:  "passkeys",
	thing: "passkey",
	columns: `id, owner_kind, owner_id, credential, name, record, count, synced, backed_up,
	created, used`,
	fields: func(p *factor.Passkey) []any {
		return []any{&p.ID, &p.Owner.Kind, &p.Owner.ID, &p.Credential, &p.Name, &p.Record, &p.Count, &p.Synced,
			&p.BackedUp, &p.Created, &p.Used}
	},
}

// CreatePasskey inserts a passkey unless its credential is already stored. If first is set and the
// owner already has a factor, the error is factor.ErrNotFirst.
func (s *Factors) CreatePasskey(ctx context.Context, p factor.Passkey, first bool) error {
	return s.change(ctx, factorEvent("factor.added", p.Owner, "passkey", p.ID), func(t tx) error {
		if err := t.beginFactor(ctx, p.Owner, first); err != nil {
			return err
		}
		err := passkeyTable.insertNew(ctx, t, &p, "owner",
			problem.New(problem.Conflict, "conflict", "the passkey already exists"))
		if err != nil {
			return err
		}
		if err := t.askForFactor(ctx, p.Owner); err != nil {
			return err
		}
		return t.mails().notifyOwner(ctx, s.now(), p.Owner, "passkey_added", "name", p.Name)
	})
}

// FindPasskey finds a passkey by its credential id.
func (s *Factors) FindPasskey(ctx context.Context, credential string) (factor.Passkey, error) {
	return passkeyTable.find(ctx, s.read(), `credential = $1`, credential)
}

// ListPasskeys returns an owner's passkeys, oldest first.
func (s *Factors) ListPasskeys(ctx context.Context, o factor.Owner) ([]factor.Passkey, error) {
	return passkeyTable.gather(ctx, s.read(), `WHERE owner_id = $1 AND owner_kind = $2 ORDER BY id`,
		o.ID, string(o.Kind))
}

// RenamePasskey sets the name of a passkey.
func (s *Factors) RenamePasskey(ctx context.Context, o factor.Owner, id, name string) error {
	return s.once(ctx, factorEvent("factor.renamed", o, "passkey", id), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE passkeys SET name = $4 WHERE id = $1 AND owner_id = $2 AND owner_kind = $3`,
			id, o.ID, string(o.Kind), name)
		if err = requireRow(res, err, "passkey"); err != nil {
			return err
		}
		return t.placeOwner(ctx, o)
	})
}

// usedMeanwhile returns the conflict for a factor that has been used since it was read.
func usedMeanwhile(thing string) error {
	return problem.New(problem.Conflict, "conflict", "the %s was used in the meantime", thing)
}

// UsePasskey records a use of a passkey, unless the passkey's counter has changed since the caller
// read it. old is the value that the caller read.
func (s *Factors) UsePasskey(ctx context.Context, p factor.Passkey, old uint32) error {
	return s.once(ctx, audit.None("a use; the login has an event"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE passkeys SET record = $3, count = $4, backed_up = $5, used = $6
				WHERE id = $1 AND count = $2`,
			p.ID, int64(old), string(p.Record), int64(p.Count), flag(p.BackedUp), micros(p.Used))
		return requireRowOr(usedMeanwhile("passkey"), res, err, "passkey")
	})
}

// DeletePasskey deletes one of the owner's passkeys. If exceptLast is set, it does not delete the
// owner's only passkey.
func (s *Factors) DeletePasskey(ctx context.Context, o factor.Owner, id string, exceptLast bool) error {
	return s.deleteFactor(ctx, "passkeys", "passkey", "name", o, id, "passkey_removed", exceptLast)
}

// deleteFactor deletes a factor, and notifies its owner. name is an SQL expression for the name of
// the factor. If keepPasskey is set, it does not leave the owner without a passkey. The owner is
// locked, so that two deletions at the same time cannot delete the last two passkeys.
func (s *Factors) deleteFactor(ctx context.Context, table, thing, name string, o factor.Owner, id, what string,
	keepPasskey bool) error {
	return s.change(ctx, factorEvent("factor.removed", o, thing, id), func(t tx) error {
		if err := t.lockOwner(ctx, o); err != nil {
			return err
		}

		var was string
		err := t.Row(ctx, `DELETE FROM `+table+` WHERE id = $1 AND owner_id = $2 AND owner_kind = $3 RETURNING `+name,
			id, o.ID, string(o.Kind)).Scan(&was)
		if err = checkRow(err, thing); err != nil {
			return err
		}

		set, err := t.factorsOf(ctx, o)
		if err != nil {
			return err
		}
		if keepPasskey && !set.Passkeys {
			return factor.ErrLastPasskey
		}
		return t.mails().notifyOwner(ctx, s.now(), o, what, "name", was)
	})
}

var totpTable = table[factor.TOTP]{
	name:    "totps",
	thing:   "authenticator app",
	columns: `id, owner_kind, owner_id, sealed, step, created, used`,
	fields: func(a *factor.TOTP) []any {
		return []any{&a.ID, &a.Owner.Kind, &a.Owner.ID, &a.Sealed, &a.Step, &a.Created, &a.Used}
	},
}

// CreateTOTP inserts an authenticator app. An owner can have only one. If first is set and the
// owner already has a factor, the error is factor.ErrNotFirst.
func (s *Factors) CreateTOTP(ctx context.Context, a factor.TOTP, first bool) error {
	return s.change(ctx, factorEvent("factor.added", a.Owner, "totp", a.ID), func(t tx) error {
		if err := t.beginFactor(ctx, a.Owner, first); err != nil {
			return err
		}
		err := totpTable.insertNew(ctx, t, &a, "owner",
			problem.New(problem.Conflict, "conflict", "an authenticator app already exists"))
		if err != nil {
			return err
		}
		if err := t.askForFactor(ctx, a.Owner); err != nil {
			return err
		}
		return t.mails().notifyOwner(ctx, s.now(), a.Owner, "totp_added")
	})
}

// FindTOTP finds the authenticator app of an owner.
func (s *Factors) FindTOTP(ctx context.Context, o factor.Owner) (factor.TOTP, error) {
	return totpTable.find(ctx, s.read(), `owner_id = $1 AND owner_kind = $2`, o.ID, string(o.Kind))
}

// UseTOTP records that the code of a time step was used. It fails if the code of this step or of a
// later one was used before.
func (s *Factors) UseTOTP(ctx context.Context, a factor.TOTP) error {
	return s.once(ctx, audit.None("a use; the login has an event"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE totps SET step = $4, used = $5
				WHERE id = $1 AND owner_id = $2 AND owner_kind = $3 AND step < $4`,
			a.ID, a.Owner.ID, string(a.Owner.Kind), a.Step, micros(a.Used))
		return requireRowOr(usedMeanwhile("authenticator app"), res, err, "authenticator app")
	})
}

// DeleteTOTP deletes the owner's authenticator app, if it has the given id.
func (s *Factors) DeleteTOTP(ctx context.Context, o factor.Owner, id string) error {
	return s.deleteFactor(ctx, "totps", "factor", "''", o, id, "totp_removed", false)
}

// codesEvent returns the event of new recovery codes.
func codesEvent(o factor.Owner, hashes []string) audit.Event {
	return factorEvent("recovery_codes.replaced", o, "recovery_codes", "").With("codes", strconv.Itoa(len(hashes)))
}

// CreateRecoveryCodes creates the recovery codes that an owner gets with a factor. The owner is
// notified only of the factor. If the owner has codes, the error is factor.ErrHasCodes.
func (s *Factors) CreateRecoveryCodes(ctx context.Context, o factor.Owner, hashes []string, at time.Time) error {
	return s.change(ctx, codesEvent(o, hashes), func(t tx) error {
		if err := t.lockOwner(ctx, o); err != nil {
			return err
		}
		codes, err := t.recoveryCodes(ctx, o)
		if err != nil {
			return err
		}
		if codes.Left > 0 {
			return factor.ErrHasCodes
		}
		return t.insertCodes(ctx, o, hashes, at)
	})
}

// ReplaceRecoveryCodes replaces all recovery codes of an owner, and notifies the owner.
func (s *Factors) ReplaceRecoveryCodes(ctx context.Context, o factor.Owner, hashes []string, at time.Time) error {
	return s.change(ctx, codesEvent(o, hashes), func(t tx) error {
		if err := t.lockOwner(ctx, o); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `DELETE FROM recovery_codes WHERE owner_id = $1 AND owner_kind = $2`,
			o.ID, string(o.Kind))
		before, err := countChanged(res, err, "recovery codes")
		if err != nil {
			return err
		}

		if what := codesChange(before, len(hashes)); what != "" {
			if err := t.mails().notifyOwner(ctx, s.now(), o, what); err != nil {
				return err
			}
		}
		return t.insertCodes(ctx, o, hashes, at)
	})
}

// codesChange describes what happened to an owner's recovery codes. It returns "" if the owner had
// none and still has none.
func codesChange(before int64, now int) string {
	switch {
	case now > 0:
		return "codes_replaced"
	case before > 0:
		return "codes_removed"
	}
	return ""
}

func (t tx) insertCodes(ctx context.Context, o factor.Owner, hashes []string, at time.Time) error {
	if len(hashes) == 0 {
		return nil
	}
	args := []any{o.ID, string(o.Kind), micros(at)}
	rows := make([]string, len(hashes))
	for i, hash := range hashes {
		rows[i] = fmt.Sprintf("($1, $2, $%d, $3)", i+4)
		args = append(args, hash)
	}
	_, err := t.Exec(ctx, `INSERT INTO recovery_codes (owner_id, owner_kind, hash, created)
		VALUES `+strings.Join(rows, ", "), args...)
	if err != nil {
		return fmt.Errorf("inserting recovery codes: %w", err)
	}
	return nil
}

// TakeRecoveryCode deletes a recovery code, so that it cannot be used again.
func (s *Factors) TakeRecoveryCode(ctx context.Context, o factor.Owner, hash string) error {
	return s.change(ctx, factorEvent("recovery_code.used", o, "recovery_codes", ""), func(t tx) error {
		res, err := t.Exec(ctx, `DELETE FROM recovery_codes WHERE owner_id = $1 AND owner_kind = $2 AND hash = $3`,
			o.ID, string(o.Kind), hash)
		if err = requireRow(res, err, "recovery code"); err != nil {
			return err
		}

		if err := t.placeOwner(ctx, o); err != nil {
			return err
		}
		left, err := t.recoveryCodes(ctx, o)
		if err != nil {
			return err
		}
		if left.Left == 0 {
			return t.mails().notifyOwner(ctx, s.now(), o, "codes_used_up")
		}
		return t.mails().notifyOwner(ctx, s.now(), o, "code_used", "left", strconv.Itoa(left.Left))
	})
}

// FindRecoveryCodes returns how many recovery codes an owner has left, and when they were created.
func (s *Factors) FindRecoveryCodes(ctx context.Context, o factor.Owner) (factor.RecoveryCodes, error) {
	return s.read().recoveryCodes(ctx, o)
}

func (t tx) recoveryCodes(ctx context.Context, o factor.Owner) (codes factor.RecoveryCodes, err error) {
	err = t.Row(ctx, `SELECT COUNT(*), COALESCE(MIN(created), 0) FROM recovery_codes
		WHERE owner_id = $1 AND owner_kind = $2`,
		o.ID, string(o.Kind)).Scan(&codes.Left, scanTarget(&codes.Created))
	if err != nil {
		return codes, fmt.Errorf("counting recovery codes: %w", err)
	}
	return codes, nil
}
