package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

var operatorLinkTable = table[operator.Link]{
	name:    "operator_links",
	thing:   "link",
	columns: `id, hash, operator_id, email, project_id, role, made_by, created, expires, used`,
	fields: func(l *operator.Link) []any {
		return []any{&l.ID, &l.Hash, nullableOf(&l.OperatorID), &l.Email, nullableOf(&l.Role.ProjectID), &l.Role.Role,
			&l.MadeBy, &l.Created, &l.Expires, &l.Used}
	},
}

// CreateOperatorLink inserts a link. If alone is set, it fails if there is an operator, or another
// invitation that is still valid. Concurrent changes to the rights of the link's creator wait until
// CreateOperatorLink returns.
func (s *Operators) CreateOperatorLink(ctx context.Context, l operator.Link, alone bool) error {
	return s.keepOwner(ctx, linkEvent("operator_link.created", l), func(t tx) error {
		if !alone {
			return insertLink(ctx, t, l)
		}
		var others int
		err := t.Row(ctx, `SELECT (SELECT COUNT(*) FROM operators) + (SELECT COUNT(*) FROM operator_links
			WHERE operator_id IS NULL AND used = 0 AND expires > $1)`, micros(l.Created)).Scan(&others)
		if err != nil {
			return fmt.Errorf("counting operators: %w", err)
		}
		if others > 0 {
			return problem.New(problem.Conflict, "has_operators",
				"an operator, or a link for the first one, already exists")
		}
		return insertLink(ctx, t, l)
	})
}

// insertLink inserts a link if its creator has the right to create it. If the link is for an
// existing operator, that operator is notified.
func insertLink(ctx context.Context, t tx, l operator.Link) error {
	if l.MadeBy != "" {
		by, err := findOperator(ctx, t, `o.email = $1`, l.MadeBy)
		if err != nil {
			return err
		}
		if err := by.Check(operator.KeepOperators, ""); err != nil {
			return err
		}
	}

	if err := operatorLinkTable.insert(ctx, t, &l, "project"); err != nil {
		return err
	}
	if l.OperatorID != "" {
		return t.mails().notifyOperator(ctx, l.Created, l.OperatorID, mail.OperatorLink)
	}
	return nil
}

// invitation is the condition for unused links that invite a new operator.
const invitation = `operator_id IS NULL AND used = 0`

// ListInvitations returns a page of unused invitations, newest first. It includes expired
// invitations until they are deleted.
func (s *Operators) ListInvitations(ctx context.Context, q page.Query) (page.Page[operator.Link], error) {
	l := operatorLinkTable.listing(q.From)
	l.desc = true
	l.where.always(invitation)
	return l.page(ctx, s.read(), q)
}

// WithdrawInvitation makes an invitation invalid.
func (s *Operators) WithdrawInvitation(ctx context.Context, id string, at time.Time) (operator.Link, error) {
	e := audit.Of("operator_link.withdrawn", "", "operator", "")
	return resultOf(ctx, s.change, e, func(t tx) (operator.Link, error) {
		l, err := withdraw(ctx, t, id, at)
		if err != nil {
			return l, err
		}
		*t.event = linkEvent("operator_link.withdrawn", l)
		return l, nil
	})
}

// RenewInvitation makes an invitation invalid, and replaces it with a new one.
func (s *Operators) RenewInvitation(
	ctx context.Context, id string, renew func(operator.Link) operator.Link,
) (operator.Link, error) {
	e := audit.Of("operator_link.created", "", "operator", "")
	return resultOf(ctx, s.keepOwner, e, func(t tx) (operator.Link, error) {
		old, err := withdraw(ctx, t, id, s.now())
		if err != nil {
			return operator.Link{}, err
		}
		l := renew(old)
		*t.event = linkEvent("operator_link.created", l).With("in_place_of", old.ID)
		return l, insertLink(ctx, t, l)
	})
}

// withdraw makes an invitation invalid, and returns it.
func withdraw(ctx context.Context, t tx, id string, at time.Time) (operator.Link, error) {
	l, err := operatorLinkTable.scan(t.Row(ctx, `UPDATE operator_links SET used = $2
		WHERE id = $1 AND `+invitation+` RETURNING `+operatorLinkTable.columns, id, micros(at)))
	return l, conflictIfMissing(problem.NoSuch("invitation"), err)
}

// FindOperatorLink finds a link by its hash.
func (s *Operators) FindOperatorLink(ctx context.Context, hash string) (operator.Link, error) {
	return operatorLinkTable.find(ctx, s.read(), `hash = $1`, hash)
}

// UseOperatorLink uses a link, which then becomes invalid. If the link is an invitation,
// UseOperatorLink inserts the operator. Otherwise it sets the password of the link's operator, and
// ends the operator's logins.
func (s *Operators) UseOperatorLink(
	ctx context.Context, hash string, o operator.Operator, at time.Time,
) (operator.Operator, error) {
	e := audit.Of("operator_link.used", "", "operator", "")
	return resultOf(ctx, s.change, e, func(t tx) (operator.Operator, error) {
		l, err := operatorLinkTable.scan(t.Row(ctx, `UPDATE operator_links SET used = $2
			WHERE hash = $1 AND used = 0 AND expires > $2 RETURNING `+operatorLinkTable.columns, hash, micros(at)))
		if err != nil {
			return o, err
		}
		t.event.Add("link", l.ID)
		if l.OperatorID == "" {
			return o, acceptInvitation(ctx, t, o, at)
		}
		return resetOperatorPassword(ctx, t, l.OperatorID, o.PasswordHash, at)
	})
}

// acceptInvitation inserts an invited operator. The operator is also the actor of this change.
func acceptInvitation(ctx context.Context, t tx, o operator.Operator, at time.Time) error {
	t.event.Target.ID = o.ID
	t.event.Actor = audit.Actor{Kind: audit.Operator, ID: o.ID}
	return insertOperator(ctx, t, o, at)
}

// resetOperatorPassword sets the password of an operator, ends all its logins, and queues an email
// about the new password.
func resetOperatorPassword(
	ctx context.Context, t tx, id, passwordHash string, at time.Time,
) (o operator.Operator, err error) {
	t.event.Target.ID = id
	res, err := t.Exec(ctx, `UPDATE operators SET password_hash = $2, updated = $3 WHERE id = $1`,
		id, passwordHash, micros(at))
	if err = requireRow(res, err, "operator"); err != nil {
		return o, err
	}
	if err := endOperator(ctx, t, id, "", at); err != nil {
		return o, err
	}
	if err := t.mails().notifyOperator(ctx, at, id, mail.OperatorPassword); err != nil {
		return o, err
	}
	return findOperator(ctx, t, `o.id = $1`, id)
}
