package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// keepName stores the name of a subscriber that a transaction deletes.
func (t tx) keepName(ctx context.Context, s fabric.Subscriber, now time.Time) error {
	name := cmp.Or(s.Email, s.FullName(), s.Reference)
	if name == "" {
		return nil
	}
	err := t.Later(ctx, `INSERT INTO deleted_names (id, project_id, name, deleted) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, deleted = excluded.deleted`,
		s.ID, s.ProjectID, name, micros(now))
	if err != nil {
		return fmt.Errorf("keeping a name: %w", err)
	}
	return nil
}

// keptSubscriber returns what an erasure still knows of a subscriber that was deleted before: its
// name, as an email or a reference. It leaves out a name that another subscriber has now.
func keptSubscriber(ctx context.Context, t tx, projectID, id string) (sub fabric.Subscriber, err error) {
	var name string
	err = checkRow(t.Row(ctx, `SELECT name FROM deleted_names WHERE id = $1 AND project_id = $2
		AND NOT EXISTS (SELECT 1 FROM subscribers s WHERE s.project_id = $2
			AND (s.email = deleted_names.name OR s.reference = deleted_names.name))`,
		id, projectID).Scan(&name), "name")
	if err != nil && !errors.Is(err, problem.NotFound) {
		return sub, err
	}
	if strings.Contains(name, "@") {
		sub.Email = name
	} else {
		sub.Reference = name
	}
	return sub, nil
}

// eraseNames deletes the kept name of a subscriber that was deleted before, and those of deleted
// subscribers with the same email.
func eraseNames(ctx context.Context, t tx, projectID, id, email string, e *fabric.Erasure) error {
	res, err := t.Exec(ctx, `DELETE FROM deleted_names WHERE project_id = $2
		AND (id = $1 OR $3 <> '' AND LOWER(name) = LOWER($3))`, id, projectID, email)
	n, err := countChanged(res, err, "names")
	if n > 0 {
		e.Deleted["names"] = n
	}
	return err
}

// FindDeletedName returns the name of a deleted subscriber: its email, name or reference. If the name
// is not kept, the error is problem.NotFound.
func (s *Subscribers) FindDeletedName(ctx context.Context, projectID, id string) (name string, err error) {
	err = s.read().Row(ctx, `SELECT name FROM deleted_names WHERE id = $1 AND project_id = $2`,
		id, projectID).Scan(&name)
	return name, checkRow(err, "name")
}

// FindDeletedNamed returns the ids of deleted subscribers whose kept name equals the given name,
// ignoring the case of A to Z. It returns at most the given number.
func (s *Subscribers) FindDeletedNamed(ctx context.Context, projectID, name string, most int) ([]string, error) {
	return gather(ctx, s.read(), "finding deleted subscribers", scanID, `SELECT id FROM deleted_names
		WHERE project_id = $1 AND LOWER(name) = LOWER($2) ORDER BY id LIMIT $3`, projectID, name, most)
}

// ForgetDeletedNames deletes the names of subscribers that were deleted before the given time.
func (s *Subscribers) ForgetDeletedNames(ctx context.Context, before time.Time) error {
	return s.sweep(ctx, `DELETE FROM deleted_names WHERE id IN (
		SELECT id FROM deleted_names WHERE deleted < $2 ORDER BY deleted LIMIT $1)`, micros(before))
}
