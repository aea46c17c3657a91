package backups

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/store"
)

// A Copied describes the result of copying rows.
type Copied struct {
	Tables  []backup.Sum
	Rows    int64 // number of rows in the copy
	Changed int   // number of rows that were written or deleted
}

// A Progress counts the rows or files that were copied, out of an expected number.
type Progress interface {
	ExpectThings(rows int)
	Steps(rows int)
}

// Copy makes the target database equal to the source as it is when Copy is called. Then it compares
// the two. It does not change the source. If an earlier copy was interrupted, or the source has changed
// since that copy, Copy writes only the rows that differ.
func Copy(ctx context.Context, from, to store.Config, p Progress) (c Copied, err error) {
	from.ReadOnly = true
	from.Patience = patience
	to.Patience = patience
	source, err := store.Open(ctx, from)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()

	err = source.Snapshot(ctx, func(snapshot *store.Snapshot) error {
		if err := snapshot.CheckWhole(ctx); err != nil {
			return fmt.Errorf("reading the source: %w", err)
		}
		schema, err := snapshot.Schema(ctx)
		if err != nil {
			return err
		}
		target, err := store.OpenFiller(ctx, store.FillConfig{Config: to, Schema: schema})
		if err != nil {
			return err
		}
		err = c.fill(ctx, snapshot, target, p)
		return errors.Join(err, target.Close())
	})
	return c, err
}

// fill copies the rows of a snapshot, and compares the copy with it.
func (c *Copied) fill(ctx context.Context, from *store.Snapshot, to *store.Filler, p Progress) error {
	tables, err := from.Tables(ctx)
	if err != nil {
		return err
	}
	rows, err := from.Count(ctx, tables)
	if err != nil {
		return err
	}
	p.ExpectThings(rows)

	for _, table := range tables {
		changed, err := to.Sync(ctx, from, table, p.Steps)
		if err != nil {
			return err
		}
		c.Changed += changed
	}

	checked := func(string) { p.Steps(0) }
	want, err := sumsOf(ctx, from, checked)
	if err != nil {
		return err
	}

	c.Tables, err = Sums(ctx, to.Store(), checked)
	if err != nil {
		return err
	}
	if err := backup.Compare(c.Tables, want); err != nil {
		return fmt.Errorf("the copy differs from its source: %w", err)
	}

	for _, table := range c.Tables {
		c.Rows += table.Rows
	}
	return to.Finish(ctx)
}
