package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

const versionColumns = `id, project_id, resource_id, number, document_version, fields, created`

func scanVersion(row scanner) (v fabric.Version, err error) {
	var fields []byte
	var created int64
	err = row.Scan(&v.ID, &v.ProjectID, &v.ResourceID, &v.Number, &v.DocumentVersion, &fields, &created)
	if err != nil {
		return v, found(err, "version")
	}
	if err := json.Unmarshal(fields, &v.Fields); err != nil {
		return v, fmt.Errorf("reading fields of version %s: %w", v.ID, err)
	}
	v.Created = moment(created)
	return v, nil
}

// CreateVersion inserts a version under the resource's next number.
func (s *Resources) CreateVersion(ctx context.Context, v fabric.Version) (fabric.Version, error) {
	fields, err := json.Marshal(v.Fields)
	if err != nil {
		return v, fmt.Errorf("writing fields: %w", err)
	}
	err = s.change(ctx, audit.Of("resource.deployed", v.ProjectID, "resource", v.ResourceID).With("version",
		v.ID), func(t tx) error {
		// Who deploys waits for who deploys the same: that is how they are numbered.
		res, err := t.Exec(ctx, `UPDATE resources SET updated = updated WHERE id = $1 AND project_id = $2`,
			v.ResourceID, v.ProjectID)
		if err := oneRow(res, err, "resource"); err != nil {
			return err
		}
		err = t.Row(ctx, `INSERT INTO resource_versions (`+versionColumns+`)
			SELECT $1, $2, $3, COALESCE(MAX(number), 0) + 1, $4, $5, $6 FROM resource_versions WHERE resource_id = $3 RETURNING number`,
			v.ID, v.ProjectID, v.ResourceID, v.DocumentVersion, string(fields), micros(v.Created)).Scan(&v.Number)
		if isUnique(err) {
			return problem.New(problem.Conflict, "conflict", "the resource is being deployed by another")
		}
		if err != nil {
			return fmt.Errorf("inserting version: %w", err)
		}
		return nil
	})
	return v, err
}

// FindVersion finds a version of a resource.
func (s *Resources) FindVersion(ctx context.Context, resourceID, id string) (fabric.Version, error) {
	return scanVersion(s.read().Row(ctx,
		`SELECT `+versionColumns+` FROM resource_versions WHERE id = $2 AND resource_id = $1`, resourceID, id))
}

// ListVersions returns a page of a resource's versions, the oldest first.
func (s *Resources) ListVersions(ctx context.Context, resourceID string, q page.Query) (page.Page[fabric.Version], error) {
	l := listing[fabric.Version]{
		thing: "versions", columns: versionColumns, from: "resource_versions", key: []string{"id"},
		start: startAt(q.From),
		scan:  scanVersion, id: func(v fabric.Version) string { return v.ID },
	}
	l.where.and(`resource_id = $%d`, resourceID)
	return l.page(ctx, s.read(), q)
}
