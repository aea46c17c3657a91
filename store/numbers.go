package store

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// numberTable joins numbers with the resources that handle their calls.
var numberTable = table[fabric.PhoneNumber]{
	name:  "phone_numbers",
	thing: "phone number",
	columns: `id, project_id, number, created, COALESCE((SELECT resource_id FROM phone_routes
		WHERE phone_routes.project_id = phone_numbers.project_id AND phone_routes.id = phone_numbers.id
			AND handler = 'calling'), '')`,
	fields: func(n *fabric.PhoneNumber) []any {
		return []any{&n.ID, &n.ProjectID, &n.Number, &n.Created, &n.ResourceID}
	},
}

// CreateNumber inserts a phone number, unless any project already has it.
func (s *Resources) CreateNumber(ctx context.Context, n fabric.PhoneNumber) error {
	e := audit.Of("phone_number.created", n.ProjectID, "phone_number", n.ID).With("number", n.Number)
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `INSERT INTO phone_numbers (id, project_id, number, created)
			VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, n.ID, n.ProjectID, n.Number, micros(n.Created))
		if isForeignKey(err) {
			return problem.NoSuch("project")
		}
		return requireInserted(res, err, "phone number", problem.Taken("number", "Number has already been taken"))
	})
}

// FindNumber finds a phone number by its project and id.
func (s *Resources) FindNumber(ctx context.Context, projectID, id string) (fabric.PhoneNumber, error) {
	return numberTable.find(ctx, s.read(), `id = $2 AND project_id = $1`, projectID, id)
}

// FindNumberByDigits finds a phone number of any project.
func (s *Resources) FindNumberByDigits(ctx context.Context, number string) (fabric.PhoneNumber, error) {
	return numberTable.find(ctx, s.read(), `number = $1`, number)
}

// ListNumbers returns a page of a project's phone numbers.
func (s *Resources) ListNumbers(
	ctx context.Context, projectID string, q page.Query,
) (page.Page[fabric.PhoneNumber], error) {
	l := numberTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// DeleteNumber deletes a phone number and its routes.
func (s *Resources) DeleteNumber(ctx context.Context, projectID, id string) error {
	return s.once(ctx, audit.Of("phone_number.deleted", projectID, "phone_number", id), func(t tx) error {
		err := t.Row(ctx, `DELETE FROM phone_numbers WHERE id = $2 AND project_id = $1 RETURNING number`,
			projectID, id).Scan(new(string))
		if err = checkRow(err, "phone number"); err != nil {
			return err
		}
		_, err = t.Exec(ctx, `DELETE FROM phone_routes WHERE id = $2 AND project_id = $1`, projectID, id)
		if err != nil {
			return fmt.Errorf("deleting routes: %w", err)
		}
		return nil
	})
}
