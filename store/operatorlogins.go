package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

var operatorLoginTable = table[operator.Session]{
	name:  "operator_sessions",
	thing: "session",
	columns: `id, operator_id, browser, proven, amr, began, fresh, seen, expires, ended,
	user_agent, address`,
	fields: func(l *operator.Session) []any {
		return []any{&l.ID, &l.OperatorID, &l.Browser, &l.Proven, &l.AMR, &l.Began, &l.Fresh, &l.Seen, &l.Expires,
			&l.Ended, &l.UserAgent, &l.Address}
	},
}

// CreateOperatorSession inserts a login if its operator still has the same password and is not
// disabled. If the operator has not used the device before, it also queues a notice.
func (s *Operators) CreateOperatorSession(ctx context.Context, l operator.Session, passwordHash string) error {
	l.Ended = time.Time{}
	e := audit.Of("login", "", "operator", l.OperatorID).By(audit.Operator, l.OperatorID).
		With("session", l.ID, "amr", strings.Join(l.AMR, " "), "proven", strconv.FormatBool(l.Proven),
			"user_agent", l.UserAgent)
	return s.change(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE operators SET updated = updated
			WHERE id = $1 AND password_hash = $2 AND disabled = 0`, l.OperatorID, passwordHash)
		conflict := problem.New(problem.Conflict, "operator_changed",
			"the operator has changed since its password was checked")
		if err := requireRowOr(conflict, res, err, "operator"); err != nil {
			return err
		}
		if err := operatorLoginTable.insert(ctx, t, &l, "operator"); err != nil {
			return err
		}
		if l.Unseen {
			return t.mails().notifyOperator(ctx, l.Began, l.OperatorID, mail.OperatorDevice)
		}
		return nil
	})
}

// FindOperatorSession finds the login that belongs to a browser, together with its operator.
func (s *Operators) FindOperatorSession(
	ctx context.Context, browser string,
) (l operator.Session, o operator.Operator, err error) {
	t := s.read()
	fields := operatorLoginTable.fields(&l)
	for i, f := range fields {
		fields[i] = scanTarget(f)
	}
	o, err = operatorTable.scanWith(t.Row(ctx, `SELECT `+qualified("o", operatorTable.columns)+`, `+
		qualified("s", operatorLoginTable.columns)+`
		FROM operator_sessions s JOIN operators o ON o.id = s.operator_id WHERE s.browser = $1`, browser), fields...)
	if err != nil {
		return operator.Session{}, o, err
	}
	o, err = withRoles(ctx, t, o)
	return l, o, err
}

// RaiseOperatorSession records how a login was authenticated, and moves it to the browser
// l.Browser, if the login has not ended and still belongs to the browser old.
func (s *Operators) RaiseOperatorSession(ctx context.Context, l operator.Session, old string) error {
	e := audit.Of("session.raised", "", "operator", l.OperatorID).By(audit.Operator, l.OperatorID).
		With("session", l.ID, "amr", strings.Join(l.AMR, " "), "proven", strconv.FormatBool(l.Proven))
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE operator_sessions SET browser = $3, proven = $4, amr = $5, fresh = $6, seen = $7
				WHERE id = $1 AND browser = $2 AND ended = 0`,
			l.ID, old, l.Browser, flag(l.Proven), strings.Join(l.AMR, " "), micros(l.Fresh), micros(l.Seen))
		return requireRowOr(problem.New(problem.Conflict, "session_changed",
			"the session ended or was confirmed in the meantime"), res, err, "session")
	})
}

// askForFactor requires a second factor in all logins that the operator began with only a password.
// It is called when the operator gets the first factor, so that an attacker who knows only the
// password cannot continue. The login in which the factor was set up is raised separately.
func (t tx) askForFactor(ctx context.Context, o factor.Owner) error {
	if o.Kind != factor.Operator {
		return nil
	}
	_, err := t.Exec(ctx, `UPDATE operator_sessions SET proven = 0
		WHERE operator_id = $1 AND amr = 'pwd' AND ended = 0`, o.ID)
	if err != nil {
		return fmt.Errorf("requiring a factor in an operator's sessions: %w", err)
	}
	return nil
}

// SeeOperatorSession records that a login was used.
func (s *Operators) SeeOperatorSession(ctx context.Context, id string, at time.Time) error {
	return s.once(ctx, audit.None("a use"), func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE operator_sessions SET seen = $2 WHERE id = $1 AND seen < $2`, id, micros(at))
		if err != nil {
			return fmt.Errorf("recording the use of an operator's session: %w", err)
		}
		return nil
	})
}

// ListOperatorSessions returns the logins of an operator that are proven and have neither ended nor
// expired, newest first. It returns at most 100 logins.
func (s *Operators) ListOperatorSessions(
	ctx context.Context, operatorID string, now time.Time,
) ([]operator.Session, error) {
	return operatorLoginTable.gather(ctx, s.read(), `
		WHERE operator_id = $1 AND ended = 0 AND expires > $2 AND proven = 1
		ORDER BY id DESC LIMIT 100`, operatorID, micros(now))
}

// EndOperatorSession ends one login of an operator. If id is "", it ends all logins except the
// login with the id keep.
func (s *Operators) EndOperatorSession(ctx context.Context, operatorID, id, keep string, at time.Time) error {
	action := "session.ended"
	if id == "" {
		action = "session.ended_all"
	}

	e := audit.Of(action, "", "operator", operatorID).With("session", id, "all_but", keep)
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE operator_sessions SET ended = $4
				WHERE operator_id = $1 AND ended = 0 AND (id = $2 OR $2 = '' AND id <> $3)`,
			operatorID, id, keep, micros(at))
		n, err := countChanged(res, err, "an operator's session")
		if err != nil {
			return err
		}
		if n == 0 {
			t.event.Drop()
		}
		return nil
	})
}
