package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/revocation"
)

// DeleteProject deletes the project with the id r.ID, along with all its rows. If the project is large,
// or if the database cancels the statement because it takes too long, DeleteProject first revokes the
// tokens, and deletes most rows in short transactions. It does so even if ctx is done, for at most
// deleteFor. If it is interrupted in this time, it can be repeated.
func (s *Projects) DeleteProject(ctx context.Context, r revocation.Revocation) error {
	large, err := s.isLarge(ctx, r.ID)
	if err != nil {
		return err
	}
	if !large {
		if err := s.deleteProject(ctx, r); !database.IsCanceled(err) {
			return err
		}
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteFor)
	defer cancel()
	if err := s.emptyProject(ctx, r); err != nil {
		return err
	}
	return s.deleteProject(ctx, r)
}

// largeProject is the number of rows at which a project counts as large, if one of projectTables has that
// many. On SQLite, all other changes wait while a project is deleted in a single transaction.
const largeProject = 1000

// isLarge reports whether the project has at least largeProject rows in one of projectTables.
func (s *Projects) isLarge(ctx context.Context, id string) (bool, error) {
	for _, rows := range projectTables {
		var n int
		err := s.read().Row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM `+rows.table+`
			WHERE project_id = $1 LIMIT $2) AS entries`, id, largeProject).Scan(&n)
		if err != nil {
			return false, fmt.Errorf("counting %s of a project: %w", rows.table, err)
		}
		if n == largeProject {
			return true, nil
		}
	}
	return false, nil
}

// deleteFor is the maximum time that DeleteProject takes for a large project, and that DeleteClient takes
// for a client with very many rows.
const deleteFor = time.Hour

// deleteProject is like DeleteProject, in a single transaction.
func (s *Projects) deleteProject(ctx context.Context, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("project.deleted", r.ID, "project", r.ID), func(t tx) error {
		if err := t.recordings().lockUnheld(ctx, r.ID); err != nil {
			return err
		}

		// Delete factors here, because no foreign key does.
		err := t.deleteFactors(ctx, factor.Subscriber, "IN (SELECT id FROM subscribers WHERE project_id = $1)", r.ID)
		if err != nil {
			return err
		}
		res, err := t.Exec(ctx, `DELETE FROM projects WHERE id = $1`, r.ID)
		if err = requireRow(res, err, "project"); err != nil {
			return err
		}
		return t.revoke(ctx, s.ending(r))
	})
}

// projectTables are the tables that may have very many rows of a project. Rows of most other tables
// belong to a row of these.
var projectTables = []projectRows{
	{"recordings", true},
	{"callback_deliveries", true},
	{"messages", false},
	{"conversations", false},
	{"calls", true},
	{"room_sessions", true},
	{"subscribers", true},
	{"families", false},
	{"clients", true},
	{"deleted_names", false},
	{"addresses", false},
	{"resources", true},
}

// projectRows describes a table with rows of projects.
type projectRows struct {
	table   string
	ordered bool // whether it has an index of project_id and id
}

// emptyBatch is the maximum number of rows that emptyProject deletes in one transaction. Each of them
// may have many rows of other tables.
const emptyBatch = 100

// emptyProject revokes all earlier tokens of the project, and those that are issued within deleteFor. Then
// it deletes most rows of the project, except recordings on hold. If any recording is on hold before the
// first deletion, it returns an error and changes nothing.
func (s *Projects) emptyProject(ctx context.Context, r revocation.Revocation) error {
	err := s.change(ctx, audit.Of("project.deletion_begun", r.ID, "project", r.ID), func(t tx) error {
		if err := t.recordings().lockUnheld(ctx, r.ID); err != nil {
			return err
		}
		begun := r
		begun.Until = s.now().Add(deleteFor) // the project must be usable again if its deletion fails
		return t.revoke(ctx, s.ending(begun))
	})
	if err != nil {
		return err
	}

	for _, rows := range projectTables {
		var ids []string
		for more := true; more; more = len(ids) == emptyBatch {
			after := ""
			if rows.ordered && len(ids) > 0 {
				after = ids[len(ids)-1]
			}
			err := s.change(ctx, audit.None("rows of a project that is being deleted"), func(t tx) (err error) {
				ids, err = t.deleteSome(ctx, rows, r.ID, after)
				return err
			})
			if err != nil {
				return fmt.Errorf("deleting %s of a project: %w", rows.table, err)
			}
		}
	}
	return nil
}

// deleteSome deletes up to emptyBatch rows of a project from a table, and returns their ids. In an
// ordered table, it begins after the given id, so that it does not read deleted rows again.
func (t tx) deleteSome(ctx context.Context, rows projectRows, projectID, after string) ([]string, error) {
	condition := `TRUE`
	if rows.table == "recordings" {
		condition = `hold = ''`
	}
	query := `SELECT id FROM ` + rows.table + ` WHERE project_id = $1 AND ` + condition
	args := []any{projectID, emptyBatch}
	if rows.ordered {
		query += ` AND id > $3 ORDER BY id`
		args = append(args, after)
	}
	ids, err := gather(ctx, t, "finding rows", scanID, query+` LIMIT $2`, args...)
	if err != nil || len(ids) == 0 {
		return nil, err
	}

	var w where
	w.in(`id`, ids)
	if rows.table == "subscribers" { // no foreign key deletes factors
		owners := `IN (SELECT id FROM subscribers WHERE ` + w.String() + `)`
		if err := t.deleteFactors(ctx, factor.Subscriber, owners, w.args...); err != nil {
			return nil, err
		}
	}
	w.always(condition) // a recording may have been put on hold since then
	_, err = t.Exec(ctx, `DELETE FROM `+rows.table+` WHERE `+w.String(), w.args...)
	return ids, err
}
