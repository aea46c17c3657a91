package store

import (
	"context"
	"database/sql"
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

// factorTables are what an owner has rows in.
var factorTables = []string{"passkeys", "totps", "recovery_codes"}

// lockOwner has whoever deletes an owner wait, or finds it gone, so that no factor is
// left without its owner.
func (t tx) lockOwner(ctx context.Context, o factor.Owner) error {
	table := map[factor.Kind]string{factor.Subscriber: "subscribers", factor.Operator: "operators"}[o.Kind]
	if table == "" {
		return problem.NoSuch("owner")
	}
	res, err := t.Exec(ctx, `UPDATE `+table+` SET updated = updated WHERE id = $1`, o.ID)
	if err := oneRow(res, err, string(o.Kind)); err != nil {
		return err
	}
	return t.placeOwner(ctx, o)
}

// beginFactor locks an owner who gets a factor, and holds that it is its first where it must be.
func (t tx) beginFactor(ctx context.Context, o factor.Owner, first bool) error {
	if err := t.lockOwner(ctx, o); err != nil || !first {
		return err
	}
	if set, err := t.factorsOf(ctx, o); err != nil || !set.Any() {
		return err
	}
	return factor.ErrNotFirst
}

// deleteFactors deletes what the owners that a condition on owner_id names have.
func (t tx) deleteFactors(ctx context.Context, kind factor.Kind, owners string, args ...any) error {
	for _, table := range factorTables {
		if err := t.Later(ctx, `DELETE FROM `+table+` WHERE owner_kind = '`+string(kind)+`' AND owner_id `+owners, args...); err != nil {
			return fmt.Errorf("deleting from %s: %w", table, err)
		}
	}
	return nil
}

// HasFactors tells what an owner has.
func (s *Factors) HasFactors(ctx context.Context, o factor.Owner) (set factor.Set, err error) {
	return s.read().factorsOf(ctx, o)
}

func (t tx) factorsOf(ctx context.Context, o factor.Owner) (set factor.Set, err error) {
	err = t.Row(ctx, `SELECT EXISTS (SELECT 1 FROM passkeys WHERE owner_id = $1 AND owner_kind = $2),
		EXISTS (SELECT 1 FROM totps WHERE owner_id = $1 AND owner_kind = $2)`, o.ID, string(o.Kind)).Scan(&set.Passkeys, &set.TOTP)
	if err != nil {
		return set, fmt.Errorf("reading factors: %w", err)
	}
	return set, nil
}

const passkeyColumns = `id, owner_kind, owner_id, credential, name, record, count, synced, backed_up, created, used`

func scanPasskey(row scanner) (p factor.Passkey, err error) {
	var count, created, used int64
	var record string
	err = row.Scan(&p.ID, &p.Owner.Kind, &p.Owner.ID, &p.Credential, &p.Name, &record, &count, &p.Synced,
		&p.BackedUp, &created, &used)
	p.Record, p.Count, p.Created, p.Used = []byte(record), uint32(count), moment(created), moment(used)
	return p, found(err, "passkey")
}

// CreatePasskey inserts a passkey; the unique index on its credential decides.
func (s *Factors) CreatePasskey(ctx context.Context, p factor.Passkey, first bool) error {
	return s.change(ctx, factorEvent("factor.added", p.Owner, "passkey", p.ID), func(t tx) error {
		if err := t.beginFactor(ctx, p.Owner, first); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `INSERT INTO passkeys (`+
			passkeyColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`,
			p.ID, string(p.Owner.Kind), p.Owner.ID, p.Credential, p.Name, string(p.Record), int64(p.Count),
			flag(p.Synced), flag(p.BackedUp), micros(p.Created), micros(p.Used))
		if err := inserted(res, err, "passkey", problem.New(problem.Conflict, "conflict", "there is such a passkey")); err != nil {
			return err
		}
		if err := t.askForFactor(ctx, p.Owner); err != nil {
			return err
		}
		return t.tellOwner(ctx, s.now(), p.Owner, "passkey_added", "name", p.Name)
	})
}

// FindPasskey finds a passkey by its credential id.
func (s *Factors) FindPasskey(ctx context.Context, credential string) (factor.Passkey, error) {
	return scanPasskey(s.read().Row(ctx, `SELECT `+passkeyColumns+` FROM passkeys WHERE credential = $1`, credential))
}

// ListPasskeys returns an owner's passkeys by their age.
func (s *Factors) ListPasskeys(ctx context.Context, o factor.Owner) ([]factor.Passkey, error) {
	return gather(ctx, s.read(), "listing passkeys", scanPasskey,
		`SELECT `+passkeyColumns+` FROM passkeys WHERE owner_id = $1 AND owner_kind = $2 ORDER BY id`, o.ID, string(o.Kind))
}

// RenamePasskey returns a passkey another name.
func (s *Factors) RenamePasskey(ctx context.Context, o factor.Owner, id, name string) error {
	return s.once(ctx, factorEvent("factor.renamed", o, "passkey", id), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE passkeys SET name = $4 WHERE id = $1 AND owner_id = $2 AND owner_kind = $3`, id, o.ID, string(o.Kind), name)
		if err := oneRow(res, err, "passkey"); err != nil {
			return err
		}
		return t.placeOwner(ctx, o)
	})
}

// UsePasskey notes a use, if the passkey was not used since it was read.
func (s *Factors) UsePasskey(ctx context.Context, p factor.Passkey, old uint32) error {
	return s.once(ctx, audit.None("a use; the login has an event"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE passkeys SET record = $3, count = $4, backed_up = $5, used = $6 WHERE id = $1 AND count = $2`,
			p.ID, int64(old), string(p.Record), int64(p.Count), flag(p.BackedUp), micros(p.Used))
		return swapped(res, err, "passkey")
	})
}

// DeletePasskey deletes a passkey of an owner.
func (s *Factors) DeletePasskey(ctx context.Context, o factor.Owner, id string) error {
	return s.deleteFactor(ctx, "passkeys", "passkey", "name", o, id, "passkey_removed")
}

// deleteFactor deletes a row of an owner, and gives its name.
func (s *Factors) deleteFactor(ctx context.Context, table, thing, name string, o factor.Owner, id, what string) error {
	return s.change(ctx, factorEvent("factor.removed", o, thing, id), func(t tx) error {
		var was string
		err := t.Row(ctx, `DELETE FROM `+
			table+` WHERE id = $1 AND owner_id = $2 AND owner_kind = $3 RETURNING `+
			name, id, o.ID, string(o.Kind)).Scan(&was)
		if err := found(err, thing); err != nil {
			return err
		}
		if err := t.placeOwner(ctx, o); err != nil {
			return err
		}
		return t.tellOwner(ctx, s.now(), o, what, "name", was)
	})
}

const totpColumns = `id, owner_kind, owner_id, sealed, step, created, used`

// CreateTOTP inserts an authenticator app; an owner has one at most.
func (s *Factors) CreateTOTP(ctx context.Context, a factor.TOTP, first bool) error {
	return s.change(ctx, factorEvent("factor.added", a.Owner, "totp", a.ID), func(t tx) error {
		if err := t.beginFactor(ctx, a.Owner, first); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `INSERT INTO totps (`+
			totpColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			a.ID, string(a.Owner.Kind), a.Owner.ID, a.Sealed, a.Step, micros(a.Created), micros(a.Used))
		if err := inserted(res, err, "authenticator app", problem.New(problem.Conflict, "conflict", "there is an authenticator app")); err != nil {
			return err
		}
		if err := t.askForFactor(ctx, a.Owner); err != nil {
			return err
		}
		return t.tellOwner(ctx, s.now(), a.Owner, "totp_added")
	})
}

// FindTOTP finds the authenticator app of an owner.
func (s *Factors) FindTOTP(ctx context.Context, o factor.Owner) (a factor.TOTP, err error) {
	var created, used int64
	err = s.read().Row(ctx, `SELECT `+totpColumns+` FROM totps WHERE owner_id = $1 AND owner_kind = $2`, o.ID,
		string(o.Kind)).
		Scan(&a.ID, &a.Owner.Kind, &a.Owner.ID, &a.Sealed, &a.Step, &created, &used)
	a.Created, a.Used = moment(created), moment(used)
	return a, found(err, "authenticator app")
}

// UseTOTP takes the code of a step, if none of it or of a later one was taken.
func (s *Factors) UseTOTP(ctx context.Context, a factor.TOTP) error {
	return s.once(ctx, audit.None("a use; the login has an event"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE totps SET step = $4, used = $5 WHERE id = $1 AND owner_id = $2 AND owner_kind = $3 AND step < $4`,
			a.ID, a.Owner.ID, string(a.Owner.Kind), a.Step, micros(a.Used))
		return swapped(res, err, "authenticator app")
	})
}

// swapped makes problem.Conflict of a compare-and-swap that changed nothing.
func swapped(res sql.Result, err error, thing string) error {
	if err != nil {
		return fmt.Errorf("changing %s: %w", thing, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("changing %s: %w", thing, err)
	}
	if n == 0 {
		return problem.New(problem.Conflict, "conflict", "the %s was used meanwhile", thing)
	}
	return nil
}

// DeleteTOTP deletes the authenticator app of an owner, if it has that id.
func (s *Factors) DeleteTOTP(ctx context.Context, o factor.Owner, id string) error {
	return s.deleteFactor(ctx, "totps", "factor", "''", o, id, "totp_removed")
}

// ReplaceRecoveryCodes deletes the codes of an owner and inserts others.
func (s *Factors) ReplaceRecoveryCodes(ctx context.Context, o factor.Owner, hashes []string, at time.Time) error {
	return s.change(ctx, factorEvent("recovery_codes.replaced", o, "recovery_codes", "").With(
		"codes", strconv.Itoa(len(hashes))), func(t tx) error {
		if err := t.lockOwner(ctx, o); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `DELETE FROM recovery_codes WHERE owner_id = $1 AND owner_kind = $2`, o.ID,
			string(o.Kind))
		if err != nil {
			return fmt.Errorf("deleting recovery codes: %w", err)
		}
		before, err := res.RowsAffected()
		if err != nil {
			return fmt.Errorf("deleting recovery codes: %w", err)
		}
		if what := codesChange(before, len(hashes)); what != "" {
			if err := t.tellOwner(ctx, s.now(), o, what); err != nil {
				return err
			}
		}
		args, rows := []any{o.ID, string(o.Kind), micros(at)}, make([]string, len(hashes))
		for i, hash := range hashes {
			rows[i] = fmt.Sprintf("($1, $2, $%d, $3)", i+4)
			args = append(args, hash)
		}
		if len(rows) == 0 {
			return nil
		}
		if _, err := t.Exec(ctx, `INSERT INTO recovery_codes (owner_id, owner_kind, hash, created) VALUES `+strings.Join(rows, ", "), args...); err != nil {
			return fmt.Errorf("inserting recovery codes: %w", err)
		}
		return nil
	})
}

// TakeRecoveryCode deletes a code.
func (s *Factors) TakeRecoveryCode(ctx context.Context, o factor.Owner, hash string) error {
	return s.change(ctx, factorEvent("recovery_code.used", o, "recovery_codes", ""), func(t tx) error {
		res, err := t.Exec(ctx, `DELETE FROM recovery_codes WHERE owner_id = $1 AND owner_kind = $2 AND hash = $3`, o.ID, string(o.Kind), hash)
		if err := oneRow(res, err, "recovery code"); err != nil {
			return err
		}
		if err := t.placeOwner(ctx, o); err != nil {
			return err
		}
		var left int
		if err := t.Row(ctx, `SELECT COUNT(*) FROM recovery_codes WHERE owner_id = $1 AND owner_kind = $2`, o.ID, string(o.Kind)).Scan(&left); err != nil {
			return fmt.Errorf("counting recovery codes: %w", err)
		}
		if left == 0 {
			return t.tellOwner(ctx, s.now(), o, "codes_used_up")
		}
		return t.tellOwner(ctx, s.now(), o, "code_used", "left", strconv.Itoa(left))
	})
}

// FindRecoveryCodes counts the codes that are left.
func (s *Factors) FindRecoveryCodes(ctx context.Context, o factor.Owner) (codes factor.RecoveryCodes, err error) {
	var created int64
	err = s.read().Row(ctx, `SELECT COUNT(*), COALESCE(MIN(created), 0) FROM recovery_codes WHERE owner_id = $1 AND owner_kind = $2`, o.ID, string(o.Kind)).Scan(&codes.Left, &created)
	codes.Created = moment(created)
	if err != nil {
		return codes, fmt.Errorf("counting recovery codes: %w", err)
	}
	return codes, nil
}
