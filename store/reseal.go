package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/internal/audit"
)

// A SecretColumn is a column of secrets that are sealed with the master key.
type SecretColumn struct {
	Table, Column string

	// Key lists the columns that identify a row. Name derives the name of the row's secret from the
	// values of these columns.
	Key  []string
	Name func(key []string) string
}

// A Resealer seals a secret with the newest master key. current is true if the secret was already
// sealed with that key.
type Resealer = func(name, sealed string) (resealed string, current bool, err error)

// resealBatch is the number of rows that Reseal reads at a time.
const resealBatch = 500

// Reseal seals the secrets of a column with the newest master key, and returns how many it sealed.
// It does not overwrite a secret that another process has changed since Reseal read it. It skips
// secrets that cannot be opened, and returns their errors at the end.
func (s *Ring) Reseal(ctx context.Context, c SecretColumn, reseal Resealer) (changed int, err error) {
	after := make([]string, len(c.Key))
	var errs []error
	for {
		rows, err := s.sealedRows(ctx, c, after)
		if err != nil {
			return changed, errors.Join(append(errs, err)...)
		}

		for _, r := range rows {
			text, current, err := reseal(c.Name(r.key), r.sealed)
			if err != nil {
				errs = append(errs, fmt.Errorf("a row of table %s: %w", c.Table, err))
				continue
			}
			if current {
				continue
			}
			if err := s.putSealed(ctx, c, r, text); err != nil {
				return changed, err
			}
			changed++
		}

		if len(rows) < resealBatch {
			return changed, errors.Join(errs...)
		}
		after = rows[len(rows)-1].key
	}
}

// A sealedRow is a row with a secret.
type sealedRow struct {
	key    []string
	sealed string
}

// sealedRows returns the next batch of rows with secrets, in the order of their keys.
func (s *Ring) sealedRows(ctx context.Context, c SecretColumn, after []string) ([]sealedRow, error) {
	var args []any
	for _, k := range after {
		args = append(args, k)
	}
	columns := quoted(c.Key)
	query := fmt.Sprintf(`SELECT %s, "%s" FROM "%s" WHERE (%s) > (%s) AND "%s" <> '' ORDER BY %s LIMIT %d`,
		columns, c.Column, c.Table, columns, params(0, len(after)), c.Column, columns, resealBatch)

	return gather(ctx, s.read(), "reading secrets", func(row scanner) (r sealedRow, err error) {
		r.key = make([]string, len(c.Key))
		var dest []any
		for i := range r.key {
			dest = append(dest, &r.key[i])
		}
		err = row.Scan(append(dest, &r.sealed)...)
		return r, err
	}, query, args...)
}

// putSealed replaces the secret of a row, unless it has changed since it was read.
func (s *Ring) putSealed(ctx context.Context, c SecretColumn, r sealedRow, text string) error {
	query := fmt.Sprintf(`UPDATE "%s" SET "%s" = $1 WHERE "%s" = $2`, c.Table, c.Column, c.Column)
	args := []any{text, r.sealed}
	for i, k := range c.Key {
		query += fmt.Sprintf(` AND "%s" = $%d`, k, i+3)
		args = append(args, r.key[i])
	}
	return s.once(ctx, audit.None("the same secret, sealed again"), func(t tx) error {
		if _, err := t.Exec(ctx, query, args...); err != nil {
			return fmt.Errorf("updating secret: %w", err)
		}
		return nil
	})
}
