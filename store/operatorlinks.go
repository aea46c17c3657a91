package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// CreateOperatorLink inserts a link. Whoever changes the rights of its maker waits, or has
// been waited for.
func (s *Operators) CreateOperatorLink(ctx context.Context, l operator.Link, alone bool) error {
	return s.keepOwner(ctx, linkEvent("operator_link.created", l), func(t tx) error {
		if alone {
			var others int
			err := t.Row(ctx, `SELECT (SELECT COUNT(*) FROM operators) + (SELECT COUNT(*) FROM operator_links WHERE operator_id IS NULL AND used = 0 AND expires > $1)`,
				micros(l.Created)).Scan(&others)
			if err != nil {
				return fmt.Errorf("counting operators: %w", err)
			}
			if others > 0 {
				return problem.New(problem.Conflict, "has_operators",
					"there is an operator, or a link for the first one")
			}
		}
		return t.insertLink(ctx, l)
	})
}

// insertLink inserts a link, if who makes it may.
func (t tx) insertLink(ctx context.Context, l operator.Link) error {
	if l.MadeBy != "" {
		if by, err := t.findOperator(ctx, `o.email = $1`, l.MadeBy); err != nil {
			return err
		} else if err := by.Check(operator.KeepOperators, ""); err != nil {
			return err
		}
	}
	_, err := t.Exec(ctx, `INSERT INTO operator_links (`+
		linkColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		l.ID, l.Hash, null(l.OperatorID), l.Email, null(l.Role.ProjectID), string(l.Role.Role), l.MadeBy,
		micros(l.Created), micros(l.Expires), micros(l.Used))
	switch {
	case isForeignKey(err):
		return problem.NoSuch("project")
	case err != nil:
		return fmt.Errorf("inserting link: %w", err)
	}
	if l.OperatorID != "" {
		return t.tellOperator(ctx, l.Created, l.OperatorID, mail.OperatorLink)
	}
	return nil
}

// invitation is the condition that a link lets an operator to come in, and did not yet.
const invitation = `operator_id IS NULL AND used = 0`

// ListInvitations returns a page of the links for operators to come that were not used, the
// newest first; those that are over are among them until they are swept.
func (s *Operators) ListInvitations(ctx context.Context, q page.Query) (page.Page[operator.Link], error) {
	l := listing[operator.Link]{
		thing: "invitations", columns: linkColumns, from: "operator_links", key: []string{"id"},
		start: startAt(q.From), desc: true,
		scan: scanLink, id: func(l operator.Link) string { return l.ID },
	}
	l.where.always(invitation)
	return l.page(ctx, s.read(), q)
}

// WithdrawInvitation ends a link for an operator to come.
func (s *Operators) WithdrawInvitation(ctx context.Context, id string, at time.Time) (l operator.Link, err error) {
	err = s.change(ctx, audit.Of("operator_link.withdrawn", "", "operator", ""), func(t tx) error {
		if l, err = t.withdraw(ctx, id, at); err == nil {
			*t.event = linkEvent("operator_link.withdrawn", l)
		}
		return err
	})
	return l, err
}

// RenewInvitation puts a link into the place of another, which ends.
func (s *Operators) RenewInvitation(ctx context.Context, id string, renew func(operator.Link) operator.Link) (l operator.Link, err error) {
	err = s.keepOwner(ctx, audit.Of("operator_link.created", "", "operator", ""), func(t tx) error {
		old, err := t.withdraw(ctx, id, s.now())
		if err != nil {
			return err
		}
		l = renew(old)
		*t.event = linkEvent("operator_link.created", l).With("in_place_of", old.ID)
		return t.insertLink(ctx, l)
	})
	return l, err
}

// withdraw ends a link for an operator to come, and gives it as it is then.
func (t tx) withdraw(ctx context.Context, id string, at time.Time) (operator.Link, error) {
	l, err := scanLink(t.Row(ctx, `UPDATE operator_links SET used = $2 WHERE id = $1 AND `+
		invitation+` RETURNING `+linkColumns, id, micros(at)))
	if errors.Is(err, problem.NotFound) {
		return l, problem.NoSuch("invitation")
	}
	return l, err
}

const linkColumns = `id, hash, operator_id, email, project_id, role, made_by, created, expires, used`

func scanLink(row scanner) (l operator.Link, err error) {
	var id, project *string
	var created, expires, used int64
	err = row.Scan(&l.ID, &l.Hash, &id, &l.Email, &project, &l.Role.Role, &l.MadeBy, &created, &expires, &used)
	if id != nil {
		l.OperatorID = *id
	}
	if project != nil {
		l.Role.ProjectID = *project
	}
	l.Created, l.Expires, l.Used = moment(created), moment(expires), moment(used)
	return l, found(err, "link")
}

// FindOperatorLink finds a link by its hash.
func (s *Operators) FindOperatorLink(ctx context.Context, hash string) (operator.Link, error) {
	return scanLink(s.read().Row(ctx, `SELECT `+linkColumns+` FROM operator_links WHERE hash = $1`, hash))
}

// UseOperatorLink uses a link up, and makes or changes its operator.
func (s *Operators) UseOperatorLink(ctx context.Context, hash string, o operator.Operator, at time.Time) (operator.Operator, error) {
	err := s.change(ctx, audit.Of("operator_link.used", "", "operator", ""), func(t tx) error {
		l, err := scanLink(t.Row(ctx, `UPDATE operator_links SET used = $2 WHERE hash = $1 AND used = 0 AND expires > $2 RETURNING `+linkColumns, hash, micros(at)))
		if err != nil {
			return err
		}
		t.event.Target.ID = l.OperatorID
		t.event.Add("link", l.ID)
		if l.OperatorID == "" {
			t.event.Target.ID = o.ID
			t.event.Actor = audit.Actor{Kind: audit.Operator, ID: o.ID}
			return t.insertOperator(ctx, o, at)
		}
		res, err := t.Exec(ctx, `UPDATE operators SET password_hash = $2, updated = $3 WHERE id = $1`,
			l.OperatorID, o.PasswordHash, micros(at))
		if err := oneRow(res, err, "operator"); err != nil {
			return err
		}
		if err := t.endOperator(ctx, l.OperatorID, "", at); err != nil {
			return err
		}
		if err := t.tellOperator(ctx, at, l.OperatorID, mail.OperatorPassword); err != nil {
			return err
		}
		o, err = t.findOperator(ctx, `o.id = $1`, l.OperatorID)
		return err
	})
	return o, err
}
