package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// The kinds of names of deleted subscribers. An erasure can find data by an email or a reference,
// because only these are unique in a project.
const (
	keptEmail     = "email"
	keptReference = "reference"
	keptFullName  = "full_name"
)

// nameToKeep returns the name by which readers of the audit trail know a subscriber, and the kind of
// this name.
func nameToKeep(s fabric.Subscriber) (name, kind string) {
	if s.Email != "" {
		return s.Email, keptEmail
	}
	if full := s.FullName(); full != "" {
		return full, keptFullName
	}
	return s.Reference, keptReference
}

// keepName stores the name of a subscriber that a transaction deletes.
func (t tx) keepName(ctx context.Context, s fabric.Subscriber, now time.Time) error {
	name, kind := nameToKeep(s)
	if name == "" {
		return nil
	}
	err := t.Later(ctx, `INSERT INTO deleted_names (id, project_id, name, kind, deleted) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, kind = excluded.kind, deleted = excluded.deleted`,
		s.ID, s.ProjectID, name, kind, micros(now))
	if err != nil {
		return fmt.Errorf("keeping a name: %w", err)
	}
	return nil
}

// keptSubscriber returns a deleted subscriber with its kept email or reference. It returns the zero
// value if neither was kept, or if another subscriber now has the same email or reference.
func keptSubscriber(ctx context.Context, t tx, projectID, id string) (sub fabric.Subscriber, err error) {
	var name, kind string
	err = checkRow(t.Row(ctx, `SELECT name, kind FROM deleted_names WHERE id = $1 AND project_id = $2
		AND NOT EXISTS (SELECT 1 FROM subscribers s WHERE s.project_id = $2
			AND (s.email = deleted_names.name OR s.reference = deleted_names.name))`,
		id, projectID).Scan(&name, &kind), "name")
	switch {
	case err != nil:
		return sub, problem.IgnoreNotFound(err)
	case kind == keptEmail, kind == "" && strings.Contains(name, "@"): // older versions kept no kind
		sub.Email = name
	case kind == keptReference:
		sub.Reference = name
	}
	return sub, nil
}

// eraseNames deletes the kept name of a subscriber that was already deleted. It also clears the names
// of deleted subscribers with the same email, but keeps the ids, so that these subscribers can be
// erased, too.
func (e *erasure) eraseNames(ctx context.Context) error {
	res, err := e.tx.Exec(ctx, `DELETE FROM deleted_names WHERE project_id = $2 AND id = $1`, e.id, e.projectID)
	deleted, err := countChanged(res, err, "names")
	if err != nil {
		return err
	}
	if deleted > 0 {
		e.result.Deleted["names"] = deleted
	}
	if e.email == "" {
		return nil
	}

	res, err = e.tx.Exec(ctx, `UPDATE deleted_names SET name = '', kind = ''
		WHERE project_id = $1 AND LOWER(name) = $2`, e.projectID, lower(e.email))
	cleared, err := countChanged(res, err, "names")
	if err != nil {
		return err
	}
	if cleared > 0 {
		e.result.Anonymized["names"] = cleared
	}
	return nil
}

// FindDeletedName returns the name of a deleted subscriber: its email, name or reference. The name is
// "" if it was erased with another account of the same person. If the subscriber was erased, or the
// name is no longer kept, the error is problem.NotFound.
func (s *Subscribers) FindDeletedName(ctx context.Context, projectID, id string) (name string, err error) {
	err = s.read().Row(ctx, `SELECT name FROM deleted_names WHERE id = $1 AND project_id = $2`,
		id, projectID).Scan(&name)
	return name, checkRow(err, "name")
}

// FindDeletedNamed returns the ids of deleted subscribers whose kept name equals the given name,
// ignoring the case of A to Z. It returns at most limit ids.
func (s *Subscribers) FindDeletedNamed(ctx context.Context, projectID, name string, limit int) ([]string, error) {
	return gather(ctx, s.read(), "finding deleted subscribers", scanID, `SELECT id FROM deleted_names
		WHERE project_id = $1 AND LOWER(name) = $2 AND name <> '' ORDER BY id LIMIT $3`, projectID, lower(name), limit)
}

// ForgetDeletedNames deletes the names of subscribers that were deleted before the given time.
func (s *Subscribers) ForgetDeletedNames(ctx context.Context, before time.Time) error {
	return s.sweep(ctx, `DELETE FROM deleted_names WHERE id IN (
		SELECT id FROM deleted_names WHERE deleted < $2 ORDER BY deleted LIMIT $1)`, micros(before))
}
