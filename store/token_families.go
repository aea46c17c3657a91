package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Families holds the families of subscriber tokens. A family is a chain of refresh tokens.
type Families struct{ *core }

// RotateFamily advances a family by one generation. Each generation can be used once. The first use
// of the first generation inserts the family's row. Using a generation again revokes the family: used
// is then false, and err is nil. This is also the result for a family that is unknown or already
// revoked.
func (s *Families) RotateFamily(ctx context.Context, u fabric.FamilyUse) (used bool, err error) {
	err = s.once(ctx, audit.None("a use that replaces tokens"), func(t tx) (err error) {
		used, err = t.rotate(ctx, u)
		return err
	})
	if err != nil || used {
		return used, err
	}

	e := audit.Of("token.reused", u.ProjectID, "token", u.ID).
		With("subscriber", u.SubscriberID, "client", u.ClientID).
		Refuse("the refresh token was used before; its family is revoked")
	return false, s.change(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE families SET revoked = 1 WHERE id = $1 AND revoked = 0`, u.ID)
		n, err := countChanged(res, err, "family")
		if err != nil {
			return err
		}
		if n == 0 { // the family is unknown or already revoked
			t.event.Drop()
			return nil
		}
		return t.revoke(ctx, s.ending(u.Revocation))
	})
}

func (t tx) rotate(ctx context.Context, u fabric.FamilyUse) (bool, error) {
	var res sql.Result
	var err error
	if u.Generation == 0 {
		res, err = t.Exec(ctx, `INSERT INTO families
				(id, project_id, subscriber_id, client_id, generation, created, used, expires)
				VALUES ($1, $2, $3, $4, 1, $5, $6, $7) ON CONFLICT (id) DO NOTHING`,
			u.ID, u.ProjectID, u.SubscriberID, u.ClientID, micros(u.Created), micros(u.Used), micros(u.Expires))
	} else {
		res, err = t.Exec(ctx, `UPDATE families SET generation = generation + 1, used = $4,
				expires = CASE WHEN expires < $3 THEN $3 ELSE expires END
			WHERE id = $1 AND generation = $2 AND revoked = 0`, u.ID, u.Generation, micros(u.Expires), micros(u.Used))
	}
	if isForeignKey(err) {
		return false, problem.NoSuch("project")
	}
	n, err := countChanged(res, err, "family")
	return n == 1, err
}

// SweepFamilies deletes the families whose tokens have all expired.
func (s *Families) SweepFamilies(ctx context.Context) error {
	return s.sweep(ctx, `DELETE FROM families WHERE id IN (
		SELECT id FROM families WHERE expires <= $2 ORDER BY expires LIMIT $1) AND expires <= $2`, micros(s.now()))
}

// ListFamilies returns a page of a subscriber's families, newest first.
func (s *Families) ListFamilies(
	ctx context.Context, projectID, subscriberID string, q page.Query,
) (page.Page[fabric.Family], error) {
	families := selection{
		thing: "families", columns: `id, client_id, created, used, generation, expires, revoked`, from: "families",
		key: []string{"id"}, start: startAt(q.From), desc: true,
	}
	l := listing[fabric.Family]{
		selection: families,
		scan: func(row scanner) (f fabric.Family, err error) {
			err = row.Scan(&f.ID, &f.ClientID, scanTarget(&f.Created), scanTarget(&f.Used), &f.Refreshes,
				scanTarget(&f.Expires), &f.Revoked)
			return f, checkRow(err, "token")
		},
		id: func(f fabric.Family) string { return f.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	l.where.and(`subscriber_id = $%d`, subscriberID)
	l.where.always(`subscriber_id <> ''`) // must contain the condition of the index
	return l.page(ctx, s.read(), q)
}

// RevokeFamily revokes the family with the id r.ID.
func (s *Families) RevokeFamily(ctx context.Context, projectID, subscriberID string, r revocation.Revocation) error {
	e := audit.Of("token.revoked", projectID, "token", r.ID).With("subscriber", subscriberID)
	return s.change(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE families SET revoked = 1
			WHERE id = $1 AND project_id = $2 AND subscriber_id = $3`, r.ID, projectID, subscriberID)
		if err = requireRow(res, err, "token"); err != nil {
			return err
		}
		return t.revoke(ctx, s.ending(r))
	})
}

// RevokeToken writes the revocation of a token of a project. If the token is a refresh token that was
// used, RevokeToken also marks its family as revoked, for display in lists.
func (s *Families) RevokeToken(ctx context.Context, projectID string, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("token.revoked", projectID, r.Kind, r.ID), func(t tx) error {
		if r.Kind == revocation.Family {
			err := t.Later(ctx, `UPDATE families SET revoked = 1 WHERE id = $1 AND project_id = $2`, r.ID, projectID)
			if err != nil {
				return fmt.Errorf("revoking family: %w", err)
			}
		}
		return t.revoke(ctx, r)
	})
}

// endFamilies marks all families of a subscriber as revoked, for display in lists. The tokens
// themselves end because of the revocation.
func (t tx) endFamilies(ctx context.Context, subscriberID string) error {
	err := t.Later(ctx, `UPDATE families SET revoked = 1
		WHERE subscriber_id = $1 AND subscriber_id <> '' AND revoked = 0`, subscriberID)
	if err != nil {
		return fmt.Errorf("revoking families: %w", err)
	}
	return nil
}
