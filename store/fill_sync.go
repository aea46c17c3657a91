package store

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/database"
)

// Sync makes the rows of a table equal to those of a snapshot, and returns how many rows it
// changed. Tables must be synced in the order of [Snapshot.Tables]. Sync calls progress with 1 for
// each row of the snapshot.
func (f *Filler) Sync(
	ctx context.Context, from *Snapshot, t database.Table, progress func(rows int),
) (changed int, err error) {
	changed, err = f.merge(ctx, from, t, progress)
	if !isUnique(err) {
		return changed, err
	}
	// Some rows have exchanged their unique values, so the rows cannot be updated one by one.
	return changed, f.Load(ctx, t, from.Rows(ctx, t), func(int) {})
}

// merge reads the rows of both databases in the same order. The first pass deletes rows that the
// source does not have, so that they cannot conflict with the rows that the second pass writes.
func (f *Filler) merge(
	ctx context.Context, from *Snapshot, t database.Table, progress func(rows int),
) (changed int, err error) {
	for _, deletes := range []bool{true, false} {
		p := pass{deletes: deletes, w: f.writer(t, func(int) {}), progress: progress}
		err := f.s.Snapshot(ctx, func(here *Snapshot) error {
			return compare(t, from.Rows(ctx, t), here.Rows(ctx, t), func(want, have Row) error {
				return p.handle(ctx, want, have)
			})
		})
		if err == nil {
			err = p.w.flush(ctx)
		}

		changed += p.changed
		if err != nil {
			return changed, err
		}
		if p.different == 0 {
			break // the second pass would find nothing
		}
	}
	return changed, nil
}

// A pass of merge either deletes rows or writes them.
type pass struct {
	deletes            bool
	w                  *rowWriter
	progress           func(rows int)
	changed, different int // rows that this pass changed, and rows left for the next pass
}

// handle deletes, writes or counts one row. want is its content in the source, and have is its
// content here. Either may be nil.
func (p *pass) handle(ctx context.Context, want, have Row) error {
	if want != nil && p.deletes {
		p.progress(1)
	}
	switch {
	case want != nil && have != nil && slices.Equal(want, have):
		return nil
	case p.deletes && want != nil:
		p.different++
		return nil
	}

	p.changed++
	switch {
	case want == nil:
		return p.w.delete(ctx, have)
	case have == nil:
		return p.w.insert(ctx, want)
	}
	return p.w.update(ctx, want)
}

// compare calls do for each row that a table has in at least one of two databases, in the order of
// the keys. A row that is missing from one of the databases is passed as nil.
func compare(t database.Table, left, right iter.Seq2[Row, error], do func(left, right Row) error) error {
	nextLeft, stopLeft := iter.Pull2(left)
	defer stopLeft()
	nextRight, stopRight := iter.Pull2(right)
	defer stopRight()
	order := orderOf(t)

	l, err := pull(nextLeft)
	if err != nil {
		return err
	}

	r, err := pull(nextRight)
	if err != nil {
		return err
	}

	for l != nil || r != nil {
		which := 0
		switch {
		case l == nil:
			which = 1
		case r == nil:
			which = -1
		default:
			which = order(l, r)
		}

		var left, right Row // the rows with the next key
		if which <= 0 {
			left = l
		}
		if which >= 0 {
			right = r
		}
		if err := do(left, right); err != nil {
			return err
		}
		if left != nil {
			if l, err = pull(nextLeft); err != nil {
				return err
			}
		}
		if right != nil {
			if r, err = pull(nextRight); err != nil {
				return err
			}
		}
	}
	return nil
}

// pull returns the next row, or nil after the last one.
func pull(next func() (Row, error, bool)) (Row, error) {
	row, err, ok := next()
	if !ok {
		return nil, nil
	}
	return row, err
}

// orderOf returns a function that compares rows by the columns that identify them.
func orderOf(t database.Table) func(a, b Row) int {
	var columns []int
	for _, name := range identityColumns(t) {
		columns = append(columns, slices.Index(t.Names(), name))
	}
	return func(a, b Row) int {
		for _, i := range columns {
			if c := compareValues(a[i], b[i]); c != 0 {
				return c
			}
		}
		return 0
	}
}

// compareValues compares two values of a column that identifies rows. NULL equals the empty string.
func compareValues(a, b any) int {
	if x, ok := a.(int64); ok {
		y, _ := b.(int64)
		return cmp.Compare(x, y)
	}
	x, _ := a.(string)
	y, _ := b.(string)
	return strings.Compare(x, y)
}
