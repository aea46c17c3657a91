package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/keys"
)

var masterTable = table[keys.MasterRecord]{
	name:    "master_keys",
	thing:   "master key",
	columns: `generation, fingerprint, sealed, leaked, replaced, resealed`,
	fields: func(m *keys.MasterRecord) []any {
		return []any{&m.Generation, &m.Fingerprint, &m.Sealed, &m.Leaked, &m.Replaced, &m.Resealed}
	},
}

// MasterKeys returns the records of all master keys, oldest first. There are none until the first
// rotation.
func (s *Ring) MasterKeys(ctx context.Context) ([]keys.MasterRecord, error) {
	return masterTable.gather(ctx, s.watch(), `ORDER BY generation`)
}

// ReplaceMaster stores a new master key, and the ring sealed with it. From then on, events of the
// audit trail are written with the new key. The records of earlier events are authenticated with
// it, if they were valid. Tampering remains detectable. The error is [problem.Conflict] if the ring
// or the master key was changed in the meantime.
func (s *Ring) ReplaceMaster(ctx context.Context, p keys.Replacement, to *audit.Key) error {
	from := s.auditKey.Load()
	newest := p.Masters[len(p.Masters)-1]
	before := p.Masters[len(p.Masters)-2]
	e := audit.Of("master_key.replaced", "", "master_key", newest.Fingerprint).With(
		"before", before.Fingerprint, "leaked", strconv.FormatBool(before.Leaked))
	if err := e.Check(); err != nil {
		return err
	}
	return s.changeOnce(ctx, e, func(t tx) error {
		if err := t.countRing(ctx); err != nil {
			return err
		}
		if err := t.putMasters(ctx, p); err != nil {
			return err
		}

		if _, err := t.Exec(ctx, `UPDATE audit_heads SET seq = seq`); err != nil {
			return err // locks the lanes
		}
		heads, err := t.auditHeads(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(heads, func(h audit.Head) bool { return h.Generation != from.Generation() }) {
			return errRingChanged
		}
		if err := t.rebind(ctx, p.Ring, heads, from, to); err != nil {
			return err
		}
		if err := t.rewriteSpans(ctx, from, to); err != nil {
			return err
		}
		for _, h := range heads {
			if err := t.handOver(ctx, h, from, to); err != nil {
				return err
			}
		}
		*t.keys = to
		return nil
	})
}

func (t tx) putMasters(ctx context.Context, p keys.Replacement) error {
	known, err := masterTable.gather(ctx, t, `ORDER BY generation`)
	if err != nil {
		return err
	}
	if len(known) > 0 && len(known) != len(p.Masters)-1 || len(known) == 0 && len(p.Masters) != 2 {
		return errRingChanged
	}
	if _, err := t.Exec(ctx, `DELETE FROM master_keys`); err != nil {
		return fmt.Errorf("replacing master keys: %w", err)
	}
	for _, m := range p.Masters {
		err := t.Later(ctx, `INSERT INTO master_keys (`+masterTable.columns+`) VALUES ($1, $2, $3, $4, $5, $6)`,
			m.Generation, m.Fingerprint, m.Sealed, flag(m.Leaked), micros(m.Replaced), micros(m.Resealed))
		if err != nil {
			return fmt.Errorf("inserting master key: %w", err)
		}
	}
	return nil
}

// rebind stores the ring sealed with the new master key. Keys that were bound to the beginning of the
// trail stay bound to it.
func (t tx) rebind(ctx context.Context, ring []keys.Resealed, heads []audit.Head, from, to *audit.Key) error {
	beginning := ""
	for _, h := range heads {
		if h.Begun() {
			beginning = h.PrunedHash
			break
		}
	}

	bonds, err := t.ringBonds(ctx)
	if err != nil {
		return err
	}
	for _, k := range bonds {
		bound := k.bound
		if beginning != "" && from.Binds(k.kid, beginning, k.bound) {
			bound = to.Bind(k.kid, beginning)
		}

		i := slices.IndexFunc(ring, func(r keys.Resealed) bool { return r.Kid == k.kid })
		old, sealed := "", ""
		if i >= 0 {
			old, sealed = ring[i].Old, ring[i].New
		}
		res, err := t.Exec(ctx, `UPDATE ring SET sealed = $2, bound = $3 WHERE kid = $1 AND sealed = $4`,
			k.kid, sealed, bound, old)
		if err := requireRowOr(errRingChanged, res, err, "ring key"); err != nil {
			return err
		}
	}
	return nil
}

// rewriteSpans authenticates the records of earlier parts with the new key.
func (t tx) rewriteSpans(ctx context.Context, from, to *audit.Key) error {
	spans, err := spanTable.gather(ctx, t, `ORDER BY lane, generation`)
	if err != nil {
		return err
	}
	for _, s := range spans {
		if !from.SealsSpan(s) {
			continue
		}
		err := t.Later(ctx, `UPDATE audit_spans SET mac = $3 WHERE lane = $1 AND generation = $2`,
			s.Lane, s.Generation, to.SpanMac(s))
		if err != nil {
			return fmt.Errorf("updating audit spans: %w", err)
		}
	}
	return nil
}

// handOver ends the part of a lane that was written with the old key. The new key authenticates a
// lane only if the old key did.
func (t tx) handOver(ctx context.Context, h audit.Head, from, to *audit.Key) error {
	mac, pruned := h.Mac, h.PrunedMac
	if from.Ends(h) {
		mac = to.Mac(audit.EndOfLane, h.Lane, h.Seq, h.Hash)
	}
	if h.PrunedMac == from.Mac(audit.PrunedUntil, h.Lane, h.PrunedSeq, h.PrunedHash) {
		pruned = to.Mac(audit.PrunedUntil, h.Lane, h.PrunedSeq, h.PrunedHash)
	}
	err := t.Later(ctx, `UPDATE audit_heads SET mac = $2, pruned_mac = $3, generation = $4 WHERE lane = $1`,
		h.Lane, mac, pruned, to.Generation())
	if err != nil {
		return fmt.Errorf("updating ends of audit lanes: %w", err)
	}

	span := audit.Span{Lane: h.Lane, Generation: from.Generation(), Seq: h.Seq, Hash: h.Hash}
	err = t.Later(ctx, `INSERT INTO audit_spans (`+spanTable.columns+`) VALUES ($1, $2, $3, $4, $5)`,
		span.Lane, span.Generation, span.Seq, span.Hash, to.SpanMac(span))
	if err != nil {
		return fmt.Errorf("inserting audit span: %w", err)
	}
	return nil
}

// MarkResealed records when all secrets were found sealed with the newest master key.
func (s *Ring) MarkResealed(ctx context.Context, generation int64, at time.Time) error {
	return s.once(ctx, audit.None("progress"), func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE master_keys SET resealed = $2 WHERE generation = $1`, generation, micros(at))
		if err != nil {
			return fmt.Errorf("updating master key: %w", err)
		}
		return nil
	})
}

// A Sealed is a column of secrets that the master key seals.
type Sealed struct {
	Table, Column string
	Key           []string // the columns that identify a row, and from which Name derives the secret's name
	Name          func(key []string) string
}

// resealBatch is the number of rows that Reseal reads at once.
const resealBatch = 500

// Reseal replaces each secret of a column by the result of again, unless fresh is set. Secrets that
// are changed in the meantime, or cannot be opened, are left alone. It returns how many secrets it
// replaced.
func (s *Ring) Reseal(
	ctx context.Context, c Sealed, again func(name, sealed string) (text string, fresh bool, err error),
) (replaced int, err error) {
	from := make([]string, len(c.Key))
	var errs []error
	for {
		rows, err := s.sealedRows(ctx, c, from)
		if err != nil {
			return replaced, errors.Join(append(errs, err)...)
		}

		for _, r := range rows {
			text, fresh, err := again(c.Name(r.key), r.sealed)
			if err != nil {
				errs = append(errs, fmt.Errorf("a row of table %s: %w", c.Table, err))
				continue
			}
			if fresh {
				continue
			}
			if err := s.reseal(ctx, c, r, text); err != nil {
				return replaced, err
			}
			replaced++
		}
		if len(rows) < resealBatch {
			return replaced, errors.Join(errs...)
		}
		from = rows[len(rows)-1].key
	}
}

type sealedRow struct {
	key    []string
	sealed string
}

func (s *Ring) sealedRows(ctx context.Context, c Sealed, from []string) ([]sealedRow, error) {
	columns, after := quoted(c.Key), "$1"
	args := []any{from[0]}
	for i, k := range from[1:] {
		after += fmt.Sprintf(", $%d", i+2)
		args = append(args, k)
	}
	query := fmt.Sprintf(`SELECT %s, "%s" FROM "%s" WHERE (%s) > (%s) AND "%s" <> '' ORDER BY %s LIMIT %d`,
		columns, c.Column, c.Table, columns, after, c.Column, columns, resealBatch)
	return gather(ctx, s.read(), "reading secrets", func(row scanner) (r sealedRow, err error) {
		r.key = make([]string, len(c.Key))
		var dest []any
		for i := range r.key {
			dest = append(dest, &r.key[i])
		}
		return r, row.Scan(append(dest, &r.sealed)...)
	}, query, args...)
}

func (s *Ring) reseal(ctx context.Context, c Sealed, r sealedRow, text string) error {
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
