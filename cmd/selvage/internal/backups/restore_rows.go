package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/mediastore"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

// load writes the rows and the media, and compares the rows with the manifest.
func (r *Restore) load(ctx context.Context, rows store.Config, mediaDir string) (err error) {
	f, err := store.OpenFiller(ctx, store.FillConfig{Config: rows, Schema: r.header.Schema})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r.filling = true

	media, err := mediastore.Open(r.Config, r.keys, mediaDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, media.Close()) }()
	r.bucket = media.Bucket

	tables, err := tablesOf(ctx, f.Store())
	if err != nil {
		return err
	}

	var deleted []string
	_, r.manifest, err = r.Archive.Read(r.Identities, backup.Visitor{
		Header: func(h backup.Header) error {
			if err := checkTables(tables, h.Tables); err != nil {
				return err
			}
			return clearTables(ctx, f, tables, h.Tables)
		},
		Rows: func(t backup.Table, archived iter.Seq2[[]any, error]) error {
			return f.Load(ctx, tables[t.Name], archived, func(int) { r.Progress(t.Name) })
		},
		Bytes: func(o backup.Object, content io.Reader) error { return restoreBytes(media, o, content) },
		Object: func(o backup.Object) error {
			r.Progress(o.Key)
			if o.Deleted {
				deleted = append(deleted, o.Key)
			}
			isElsewhere := !r.header.Inside && !o.Deleted && !o.Missing
			if !isElsewhere {
				return ctx.Err()
			}
			err := r.Archive.Bytes(r.header, o, r.Identities, func(content io.Reader) error {
				return restoreBytes(media, o, content)
			})
			return errors.Join(ctx.Err(), err)
		},
	})
	if err != nil {
		return err
	}

	// The origin is checked again, because the file could have been replaced since the first check.
	if err := CheckOrigin(r.header, r.manifest, r.master); err != nil {
		return err
	}
	media.Settle()

	sums, err := Sums(ctx, f.Store(), r.Progress)
	if err != nil {
		return fmt.Errorf("checking the restored rows: %w", err)
	}
	if err := backup.Compare(sums, r.manifest.Tables); err != nil {
		return fmt.Errorf("checking the restored rows: %w", err)
	}
	return f.DropMedia(ctx, deleted, time.Now())
}

// restoreBytes writes one object of the archive to the media.
func restoreBytes(media blob.Store, o backup.Object, content io.Reader) error {
	return media.Restore(o.Key, o.Part, func(w io.Writer) error {
		_, err := io.Copy(w, content)
		return err
	})
}

// tablesOf returns the tables of a database by their names.
func tablesOf(ctx context.Context, rows *store.Store) (map[string]database.Table, error) {
	named := make(map[string]database.Table)
	err := rows.Snapshot(ctx, func(s *store.Snapshot) error {
		tables, err := s.Tables(ctx)
		if err != nil {
			return err
		}
		for _, t := range tables {
			named[t.Name] = t
		}
		return nil
	})
	return named, err
}

// clearTables deletes all rows that an earlier, failed restore into the database has left.
func clearTables(
	ctx context.Context, f *store.Filler, tables map[string]database.Table, archived []backup.Table,
) error {
	none := func(func(store.Row, error) bool) {}
	for _, t := range archived {
		if err := f.Load(ctx, tables[t.Name], none, func(int) {}); err != nil {
			return err
		}
	}
	return nil
}

// checkTables returns an error if the columns of a backup differ from those of the schema.
func checkTables(tables map[string]database.Table, archived []backup.Table) error {
	for _, t := range archived {
		current := fmt.Sprint(backup.TableOf(tables[t.Name]).Columns)
		saved := fmt.Sprint(t.Columns)
		if saved != current {
			return fmt.Errorf("table %s has the columns %s in the backup, and %s in this version",
				t.Name, saved, current)
		}
	}
	if len(archived) != len(tables) {
		return fmt.Errorf("the backup has %d tables, this version %d", len(archived), len(tables))
	}
	return nil
}

// Sums returns the number of rows and the SHA-256 of each table.
func Sums(ctx context.Context, rows *store.Store, progress func(table string)) (sums []backup.Sum, err error) {
	err = rows.Snapshot(ctx, func(s *store.Snapshot) error {
		sums, err = sumsOf(ctx, s, progress)
		return err
	})
	return sums, err
}

func sumsOf(ctx context.Context, s *store.Snapshot, progress func(table string)) (sums []backup.Sum, err error) {
	tables, err := s.Tables(ctx)
	if err != nil {
		return nil, err
	}

	for _, t := range tables {
		digest := backup.NewDigest()
		for row, err := range s.Rows(ctx, t) {
			if err != nil {
				return nil, err
			}
			if _, err := digest.Add(row); err != nil {
				return nil, err
			}
		}
		sums = append(sums, digest.Sum(t.Name))
		progress(t.Name)
	}
	return sums, nil
}

// end updates the schema, verifies the audit trail, and ends all logins and tokens. Then it places
// the media, and lets servers use the rows. The times of tokens are in whole seconds, so end waits for the
// next second; otherwise tokens that are issued later could seem as old as those that it has ended.
func (r *Restore) end(ctx context.Context, rows store.Config, media string) (err error) {
	masters, err := keys.FindMasters(ctx, archivedRing{masters: r.masters}, r.master)
	if err != nil {
		return err
	}
	rows.Audit, err = audit.NewKey(r.master, masters.Earlier()...)
	if err != nil {
		return err
	}
	f, err := store.OpenFiller(ctx, store.FillConfig{Config: rows})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	if err := r.verifyAudit(ctx, f.Store()); err != nil {
		return err
	}
	next := time.Now().Truncate(time.Second).Add(time.Second)
	if err := f.Store().EndAll(ctx, next.Add(-time.Microsecond)); err != nil {
		return err
	}

	select {
	case <-time.After(time.Until(next)):
	case <-ctx.Done():
		return ctx.Err()
	}

	if err := r.placeMedia(media); err != nil { // before the rows that name them can be used
		return err
	}
	return f.Used(ctx)
}

// verifyAudit returns an error if the restored audit trail has breaks.
func (r *Restore) verifyAudit(ctx context.Context, rows *store.Store) error {
	if r.AcceptBrokenAudit {
		return nil
	}
	if err := rows.SealAudit(ctx); err != nil { // as a server does after an upgrade
		return err
	}

	found, err := rows.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	if len(found.Broken) > 0 {
		return fmt.Errorf("the audit trail in the backup is broken: %w; set --accept-broken-audit to restore it "+
			"anyway", errors.Join(found.Broken...))
	}
	r.Progress("audit trail")
	return nil
}
