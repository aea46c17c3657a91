package store

import (
	"context"
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

var operatorTable = table[operator.Operator]{
	name:    "operators",
	thing:   "operator",
	columns: `id, email, name, password_hash, disabled, created, updated`,
	fields: func(o *operator.Operator) []any {
		return []any{&o.ID, &o.Email, &o.Name, &o.PasswordHash, &o.Disabled, &o.Created, &o.Updated}
	},
}

// CreateOperator inserts an operator with its roles, and notifies the owners.
func (s *Operators) CreateOperator(ctx context.Context, o operator.Operator) error {
	return s.change(ctx, operatorEvent("operator.created", o), func(t tx) error {
		return insertOperator(ctx, t, o, s.now())
	})
}

func insertOperator(ctx context.Context, t tx, o operator.Operator, at time.Time) error {
	err := operatorTable.insertNew(ctx, t, &o, "",
		problem.Taken("email", "an operator with this email already exists"))
	if err != nil {
		return err
	}
	if err := insertRoles(ctx, t, o.ID, o.Roles); err != nil {
		return err
	}
	return t.mails().notifyOwners(ctx, at, o)
}

func insertRoles(ctx context.Context, t tx, id string, roles []operator.Membership) error {
	for _, m := range roles {
		_, err := t.Exec(ctx, `INSERT INTO operator_roles (operator_id, project_id, role) VALUES ($1, $2, $3)`,
			id, null(m.ProjectID), string(m.Role))
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
	return findOperator(ctx, s.read(), `o.id = $1`, id)
}

// FindOperatorByEmail finds an operator by its normalized email address.
func (s *Operators) FindOperatorByEmail(ctx context.Context, email string) (operator.Operator, error) {
	return findOperator(ctx, s.read(), `o.email = $1`, email)
}

func findOperator(ctx context.Context, t tx, condition, arg string) (operator.Operator, error) {
	o, err := operatorTable.scan(t.Row(ctx,
		`SELECT `+qualified("o", operatorTable.columns)+` FROM operators o WHERE `+condition, arg))
	if err != nil {
		return o, err
	}
	return withRoles(ctx, t, o)
}

// withRoles returns an operator with its roles.
func withRoles(ctx context.Context, t tx, o operator.Operator) (operator.Operator, error) {
	operators := []operator.Operator{o}
	if err := addRoles(ctx, t, operators); err != nil {
		return o, err
	}
	return operators[0], nil
}

// addRoles fills in the roles of each operator.
func addRoles(ctx context.Context, t tx, operators []operator.Operator) error {
	if len(operators) == 0 {
		return nil
	}
	type role struct {
		id string
		operator.Membership
	}
	scan := func(row scanner) (r role, err error) {
		err = row.Scan(&r.id, &r.ProjectID, &r.Role)
		return r, err
	}

	byID := make(map[string]*operator.Operator, len(operators))
	var ids []string
	for i := range operators {
		o := &operators[i]
		byID[o.ID] = o
		ids = append(ids, o.ID)
	}
	var w where
	w.in(`operator_id`, ids)
	roles, err := gather(ctx, t, "listing roles", scan, `SELECT operator_id, COALESCE(project_id, ''), role
		FROM operator_roles WHERE `+w.String()+` ORDER BY COALESCE(project_id, '')`, w.args...)
	if err != nil {
		return err
	}
	for _, r := range roles {
		byID[r.id].Roles = append(byID[r.id].Roles, r.Membership)
	}
	return nil
}

// ListOperators returns a page of the operators that match a filter.
func (s *Operators) ListOperators(
	ctx context.Context, f operator.Filter, q page.Query,
) (page.Page[operator.Operator], error) {
	l := operatorTable.listing(q.From)
	searched := `name || ' ' || email || ' ' || id`
	if f.OnlyTitles {
		searched = `COALESCE(NULLIF(name, ''), email)`
	}
	l.checks = containing(searched, f.Text)
	if f.Disabled != nil {
		l.checks = append(l.checks, check{`disabled = $%d`, []any{flag(*f.Disabled)}})
	}
	p, err := l.page(ctx, s.read(), q)
	if err != nil {
		return p, err
	}
	return p, addRoles(ctx, s.read(), p.Items)
}

// countOwners counts the owners of the installation who are able to sign in.
const countOwners = `SELECT COUNT(*) FROM operators o JOIN operator_roles r ON r.operator_id = o.id
	WHERE r.project_id IS NULL AND r.role = 'owner' AND o.disabled = 0 AND o.password_hash <> ''`

// keepOwner runs a change that may remove an owner, and fails if the change removes the last
// owner. These changes wait for one another, so that each counts the owners that the previous change left.
func (s *Operators) keepOwner(ctx context.Context, e audit.Event, do func(tx) error) error {
	return s.change(ctx, e, func(t tx) error {
		if _, err := t.Exec(ctx, `UPDATE sequences SET value = value + 1 WHERE name = 'operators'`); err != nil {
			return fmt.Errorf("locking operators: %w", err)
		}
		var before, after int
		if err := t.Row(ctx, countOwners).Scan(&before); err != nil {
			return fmt.Errorf("counting owners: %w", err)
		}

		if err := do(t); err != nil {
			return err
		}
		if err := t.Row(ctx, countOwners).Scan(&after); err != nil {
			return fmt.Errorf("counting owners: %w", err)
		}
		if before > 0 && after == 0 {
			return problem.New(problem.Conflict, "last_owner",
				"this is the last owner of the installation: create another owner first")
		}
		return nil
	})
}

// UpdateOperator writes the fields that are not nil. If the password changes, or the operator is
// disabled, it ends all logins of the operator except the login with the id keep, and makes the
// links for the operator invalid.
func (s *Operators) UpdateOperator(
	ctx context.Context, id string, c operator.Change, at time.Time, keep string,
) (operator.Operator, error) {
	return resultOf(ctx, s.keepOwner, operatorChange(id, c), func(t tx) (o operator.Operator, err error) {
		res, err := t.Exec(ctx, `UPDATE operators SET name = COALESCE($2, name),
				password_hash = COALESCE($3, password_hash), disabled = COALESCE($4, disabled), updated = $5
			WHERE id = $1`, id, c.Name, c.PasswordHash, flagOf(c.Disabled), micros(at))
		if err = requireRow(res, err, "operator"); err != nil {
			return o, err
		}
		if c.Roles != nil {
			if err := replaceRoles(ctx, t, id, c.Roles); err != nil {
				return o, err
			}
		}

		if c.PasswordHash != nil || c.Disabled != nil && *c.Disabled {
			if err := endOperator(ctx, t, id, keep, at); err != nil {
				return o, err
			}
		}
		if c.PasswordHash != nil {
			if err := t.mails().notifyOperator(ctx, at, id, mail.OperatorPassword); err != nil {
				return o, err
			}
		}

		// If the operator may no longer create invitations, the invitations that it created become
		// invalid.
		o, err = findOperator(ctx, t, `o.id = $1`, id)
		if err != nil {
			return o, err
		}
		if o.Check(operator.KeepOperators, "") == nil {
			return o, nil
		}
		return o, endLinksOf(ctx, t, o.Email, at)
	})
}

func replaceRoles(ctx context.Context, t tx, id string, roles []operator.Membership) error {
	if _, err := t.Exec(ctx, `DELETE FROM operator_roles WHERE operator_id = $1`, id); err != nil {
		return fmt.Errorf("deleting roles: %w", err)
	}
	return insertRoles(ctx, t, id, roles)
}

// endLinksOf invalidates all links that an operator has created. It is called when the operator
// loses the right to create links, so that people chosen by this operator cannot use them to get
// access.
func endLinksOf(ctx context.Context, t tx, email string, at time.Time) error {
	res, err := t.Exec(ctx, `UPDATE operator_links SET used = $2 WHERE made_by = $1 AND used = 0`, email, micros(at))
	n, err := countChanged(res, err, "an operator's links")
	if err != nil {
		return err
	}
	if n > 0 {
		t.event.Add("links_ended", strconv.FormatInt(n, 10))
	}
	return nil
}

// endOperator ends the logins of an operator, except the login with the id keep, and makes the
// links for the operator invalid.
func endOperator(ctx context.Context, t tx, id, keep string, at time.Time) error {
	_, err := t.Exec(ctx, `UPDATE operator_sessions SET ended = $3 WHERE operator_id = $1 AND id <> $2 AND ended = 0`,
		id, keep, micros(at))
	if err != nil {
		return fmt.Errorf("ending an operator's sessions: %w", err)
	}
	_, err = t.Exec(ctx, `UPDATE operator_links SET used = $2 WHERE operator_id = $1 AND used = 0`, id, micros(at))
	if err != nil {
		return fmt.Errorf("ending an operator's links: %w", err)
	}
	return nil
}

// DeleteOperator deletes an operator and its roles, logins, links and factors. The links that the
// operator has created for others become invalid.
func (s *Operators) DeleteOperator(ctx context.Context, id string) error {
	return s.keepOwner(ctx, audit.Of("operator.deleted", "", "operator", id), func(t tx) error {
		o, err := findOperator(ctx, t, `o.id = $1`, id)
		if err != nil {
			return err
		}
		if err := endLinksOf(ctx, t, o.Email, s.now()); err != nil {
			return err
		}
		if err := t.deleteFactors(ctx, factor.Operator, "= $1", id); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `DELETE FROM operators WHERE id = $1`, id)
		return requireRow(res, err, "operator")
	})
}

// SweepOperators deletes the logins that ended or expired before the time before, and the links that
// expired before this time.
func (s *Operators) SweepOperators(ctx context.Context, before time.Time) error {
	return s.change(ctx, audit.None("expired rows"), func(t tx) error {
		for _, query := range []string{
			`DELETE FROM operator_sessions WHERE expires < $1 OR ended > 0 AND ended < $1`,
			`DELETE FROM operator_links WHERE expires < $1`,
		} {
			if _, err := t.Exec(ctx, query, micros(before)); err != nil {
				return fmt.Errorf("sweeping operators: %w", err)
			}
		}
		return nil
	})
}
