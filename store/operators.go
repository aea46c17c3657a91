package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// Operators holds operators, their roles, links and logins.
type Operators struct{ *core }

var _ operator.Store = (*Store)(nil)

const operatorColumns = `o.id, o.email, o.name, o.password_hash, o.disabled, o.created, o.updated`

func scanOperator(row scanner, more ...any) (o operator.Operator, err error) {
	var created, updated int64
	err = row.Scan(append([]any{&o.ID, &o.Email, &o.Name, &o.PasswordHash, &o.Disabled, &created, &updated},
		more...)...)
	o.Created, o.Updated = moment(created), moment(updated)
	return o, found(err, "operator")
}

// CreateOperator inserts an operator with its roles.
func (s *Operators) CreateOperator(ctx context.Context, o operator.Operator) error {
	return s.change(ctx, operatorEvent("operator.created", o), func(t tx) error {
		return t.insertOperator(ctx, o, s.now())
	})
}

// insertOperator inserts an operator with its roles, and tells the owners.
func (t tx) insertOperator(ctx context.Context, o operator.Operator, at time.Time) error {
	res, err := t.Exec(ctx, `INSERT INTO operators (id, email, name, password_hash, disabled, created, updated) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT DO NOTHING`, o.ID, o.Email, o.Name, o.PasswordHash, flag(o.Disabled), micros(o.Created),
		micros(o.Updated))
	if err := inserted(res, err, "operator", problem.Taken("email", "an operator with this email already exists")); err != nil {
		return err
	}
	if err := t.insertRoles(ctx, o.ID, o.Roles); err != nil {
		return err
	}
	return t.tellOwners(ctx, at, o)
}

func (t tx) insertRoles(ctx context.Context, id string, roles []operator.Membership) error {
	for _, m := range roles {
		_, err := t.Exec(ctx, `INSERT INTO operator_roles (operator_id, project_id, role) VALUES ($1, $2, $3)`, id, null(m.ProjectID), string(m.Role))
		switch {
		case isForeignKey(err):
			return problem.NoSuch("project")
		case err != nil:
			return fmt.Errorf("inserting role: %w", err)
		}
	}
	return nil
}

// FindOperator finds an operator by its id.
func (s *Operators) FindOperator(ctx context.Context, id string) (operator.Operator, error) {
	return s.read().findOperator(ctx, `o.id = $1`, id)
}

// FindOperatorByEmail finds an operator by its normalized e-mail.
func (s *Operators) FindOperatorByEmail(ctx context.Context, email string) (operator.Operator, error) {
	return s.read().findOperator(ctx, `o.email = $1`, email)
}

func (t tx) findOperator(ctx context.Context, condition, arg string) (operator.Operator, error) {
	o, err := scanOperator(t.Row(ctx, `SELECT `+operatorColumns+` FROM operators o WHERE `+condition, arg))
	if err != nil {
		return o, err
	}
	all := []operator.Operator{o}
	err = t.addRoles(ctx, all)
	return all[0], err
}

// addRoles returns operators their roles.
func (t tx) addRoles(ctx context.Context, all []operator.Operator) error {
	if len(all) == 0 {
		return nil
	}
	type role struct {
		id string
		operator.Membership
	}
	at := make(map[string]*operator.Operator, len(all))
	ids := make([]any, len(all))
	for i := range all {
		at[all[i].ID], ids[i] = &all[i], all[i].ID
	}
	roles, err := gather(ctx, t, "listing roles", func(row scanner) (r role, err error) {
		return r, row.Scan(&r.id, &r.ProjectID, &r.Role)
	}, `SELECT operator_id, COALESCE(project_id, ''), role FROM operator_roles WHERE operator_id IN (`+
		params(0, len(ids))+`) ORDER BY COALESCE(project_id, '')`, ids...)
	for _, r := range roles {
		at[r.id].Roles = append(at[r.id].Roles, r.Membership)
	}
	return err
}

// ListOperators returns a page of all operators.
func (s *Operators) ListOperators(ctx context.Context, q page.Query) (page.Page[operator.Operator], error) {
	l := listing[operator.Operator]{
		thing: "operators", columns: operatorColumns, from: "operators o", key: []string{"o.id"},
		start: startAt(q.From),
		scan:  func(row scanner) (operator.Operator, error) { return scanOperator(row) },
		id:    func(o operator.Operator) string { return o.ID },
	}
	p, err := l.page(ctx, s.read(), q)
	if err != nil {
		return p, err
	}
	return p, s.read().addRoles(ctx, p.Items)
}

// owners counts who can sign in as an owner of the installation.
const owners = `SELECT COUNT(*) FROM operators o JOIN operator_roles r ON r.operator_id = o.id
	WHERE r.project_id IS NULL AND r.role = 'owner' AND o.disabled = 0 AND o.password_hash <> ''`

// keepOwner runs a change which may take an owner away. Those that could wait for each
// other, so that each counts what the one before it has left.
func (s *Operators) keepOwner(ctx context.Context, e audit.Event, do func(tx) error) error {
	return s.change(ctx, e, func(t tx) error {
		if _, err := t.Exec(ctx, `UPDATE sequences SET value = value + 1 WHERE name = 'operators'`); err != nil {
			return fmt.Errorf("locking operators: %w", err)
		}
		var before, after int
		if err := t.Row(ctx, owners).Scan(&before); err != nil {
			return fmt.Errorf("counting owners: %w", err)
		}
		if err := do(t); err != nil {
			return err
		}
		if err := t.Row(ctx, owners).Scan(&after); err != nil {
			return fmt.Errorf("counting owners: %w", err)
		}
		if before > 0 && after == 0 {
			return problem.New(problem.Conflict, "last_owner",
				"this is the last owner of the installation: make another one first")
		}
		return nil
	})
}

// UpdateOperator writes what is not nil.
func (s *Operators) UpdateOperator(ctx context.Context, id string, c operator.Change, at time.Time, keep string) (o operator.Operator, err error) {
	err = s.keepOwner(ctx, operatorChange(id, c), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE operators SET name = COALESCE($2, name), password_hash = COALESCE($3, password_hash),
			disabled = COALESCE($4, disabled), updated = $5 WHERE id = $1`, id, c.Name, c.PasswordHash, flagOf(c.Disabled), micros(at))
		if err := oneRow(res, err, "operator"); err != nil {
			return err
		}
		if c.Roles != nil {
			if _, err := t.Exec(ctx, `DELETE FROM operator_roles WHERE operator_id = $1`, id); err != nil {
				return fmt.Errorf("deleting roles: %w", err)
			}
			if err := t.insertRoles(ctx, id, c.Roles); err != nil {
				return err
			}
		}
		if c.PasswordHash != nil || c.Disabled != nil && *c.Disabled {
			if err := t.endOperator(ctx, id, keep, at); err != nil {
				return err
			}
		}
		if c.PasswordHash != nil {
			if err := t.tellOperator(ctx, at, id, mail.OperatorPassword); err != nil {
				return err
			}
		}
		if o, err = t.findOperator(ctx, `o.id = $1`, id); err != nil || o.Check(operator.KeepOperators, "") == nil {
			return err
		}
		return t.endLinksOf(ctx, o.Email, at)
	})
	return o, err
}

// endLinksOf ends the links that an operator made who may make none any more: they would
// let in whom it chose.
func (t tx) endLinksOf(ctx context.Context, email string, at time.Time) error {
	res, err := t.Exec(ctx, `UPDATE operator_links SET used = $2 WHERE made_by = $1 AND used = 0`, email, micros(at))
	if err != nil {
		return fmt.Errorf("ending an operator's links: %w", err)
	}
	n, err := res.RowsAffected()
	if n > 0 {
		t.event.Add("links_ended", strconv.FormatInt(n, 10))
	}
	return err
}

// endOperator ends the sessions of an operator, but for keep, and its links.
func (t tx) endOperator(ctx context.Context, id, keep string, at time.Time) error {
	_, err := t.Exec(ctx, `UPDATE operator_sessions SET ended = $3 WHERE operator_id = $1 AND id <> $2 AND ended = 0`, id, keep, micros(at))
	if err == nil {
		_, err = t.Exec(ctx, `UPDATE operator_links SET used = $2 WHERE operator_id = $1 AND used = 0`, id,
			micros(at))
	}
	if err != nil {
		return fmt.Errorf("ending an operator's sessions: %w", err)
	}
	return nil
}

// DeleteOperator deletes an operator; its roles, sessions, links and factors go with it,
// and the links that it made end.
func (s *Operators) DeleteOperator(ctx context.Context, id string) error {
	return s.keepOwner(ctx, audit.Of("operator.deleted", "", "operator", id), func(t tx) error {
		o, err := t.findOperator(ctx, `o.id = $1`, id)
		if err != nil {
			return err
		}
		if err := t.endLinksOf(ctx, o.Email, s.now()); err != nil {
			return err
		}
		if err := t.deleteFactors(ctx, factor.Operator, "= $1", id); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `DELETE FROM operators WHERE id = $1`, id)
		return oneRow(res, err, "operator")
	})
}

// SweepOperators deletes sessions and links that were over before a moment.
func (s *Operators) SweepOperators(ctx context.Context, before time.Time) error {
	return s.change(ctx, audit.None("what has expired"), func(t tx) error {
		_, err := t.Exec(ctx, `DELETE FROM operator_sessions WHERE expires < $1 OR ended > 0 AND ended < $1`,
			micros(before))
		_, err2 := t.Exec(ctx, `DELETE FROM operator_links WHERE expires < $1`, micros(before))
		if err := errors.Join(err, err2); err != nil {
			return fmt.Errorf("sweeping operators: %w", err)
		}
		return nil
	})
}
