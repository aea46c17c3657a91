package store

import (
	"context"
	"errors"
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

const operatorSessionColumns = `s.id, s.operator_id, s.browser, s.proven, s.amr, s.began, s.fresh, s.seen, s.expires, s.ended, s.user_agent, s.address`

// An operatorSession is a row on its way.
type operatorSession struct {
	operator.Session
	amr                                 string
	began, fresh, seen, expires, finish int64
}

func (r *operatorSession) into() []any {
	return []any{&r.ID, &r.OperatorID, &r.Browser, &r.Proven, &r.amr, &r.began, &r.fresh, &r.seen, &r.expires,
		&r.finish, &r.UserAgent, &r.Address}
}

func (r *operatorSession) session() operator.Session {
	s := r.Session
	s.AMR = strings.Fields(r.amr)
	s.Began, s.Fresh, s.Seen, s.Expires, s.Ended = moment(r.began), moment(r.fresh), moment(r.seen), moment(r.expires), moment(r.finish)
	return s
}

// CreateOperatorSession inserts a session, if its operator still has the password and
// is not disabled.
func (s *Operators) CreateOperatorSession(ctx context.Context, l operator.Session, passwordHash string) error {
	return s.change(ctx, audit.Of("login", "", "operator", l.OperatorID).By(audit.Operator, l.OperatorID).
		With("session", l.ID, "amr", strings.Join(l.AMR, " "), "proven", strconv.FormatBool(l.Proven),
			"user_agent", l.UserAgent), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE operators SET updated = updated WHERE id = $1 AND password_hash = $2 AND disabled = 0`, l.OperatorID, passwordHash)
		if err := oneRow(res, err, "operator"); errors.Is(err, problem.NotFound) {
			return problem.New(problem.Conflict, "operator_changed",
				"the operator has changed since its password was checked")
		} else if err != nil {
			return err
		}
		_, err = t.Exec(ctx, `INSERT INTO operator_sessions (id, operator_id, browser, proven, amr, began, fresh, seen, expires, ended, user_agent, address)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11)`, l.ID, l.OperatorID, l.Browser,
			flag(l.Proven), strings.Join(l.AMR, " "),
			micros(l.Began), micros(l.Fresh), micros(l.Seen), micros(l.Expires), l.UserAgent, l.Address)
		if err != nil {
			return fmt.Errorf("inserting operator's session: %w", err)
		}
		if l.Unseen {
			return t.tellOperator(ctx, l.Began, l.OperatorID, mail.OperatorDevice)
		}
		return nil
	})
}

// FindOperatorSession finds the session of a browser, with its operator.
func (s *Operators) FindOperatorSession(ctx context.Context, browser string) (operator.Session, operator.Operator, error) {
	var r operatorSession
	t := s.read()
	o, err := scanOperator(t.Row(ctx, `SELECT `+operatorColumns+`, `+operatorSessionColumns+`
		FROM operator_sessions s JOIN operators o ON o.id = s.operator_id WHERE s.browser = $1`, browser),
		r.into()...)
	if err != nil {
		return operator.Session{}, o, err
	}
	all := []operator.Operator{o}
	err = t.addRoles(ctx, all)
	return r.session(), all[0], err
}

// RaiseOperatorSession writes what a session was raised to.
func (s *Operators) RaiseOperatorSession(ctx context.Context, l operator.Session, old string) error {
	return s.once(ctx, audit.Of("session.raised", "", "operator", l.OperatorID).By(audit.Operator, l.OperatorID).
		With("session", l.ID, "amr", strings.Join(l.AMR, " "), "proven", strconv.FormatBool(l.Proven)),
		func(t tx) error {
			res, err := t.Exec(ctx, `UPDATE operator_sessions SET browser = $3, proven = $4, amr = $5, fresh = $6, seen = $7 WHERE id = $1 AND browser = $2 AND ended = 0`,
				l.ID, old, l.Browser, flag(l.Proven), strings.Join(l.AMR, " "), micros(l.Fresh), micros(l.Seen))
			if err := oneRow(res, err, "session"); errors.Is(err, problem.NotFound) {
				return problem.New(problem.Conflict, "session_changed",
					"the session has ended or was raised meanwhile")
			} else if err != nil {
				return err
			}
			return nil
		})
}

// askForFactor has the sessions of an operator that a password alone has begun show a second
// factor, now that there is one: who had the password before has no more than that. Whoever
// has just set it up raises its own.
func (t tx) askForFactor(ctx context.Context, o factor.Owner) error {
	if o.Kind != factor.Operator {
		return nil
	}
	if _, err := t.Exec(ctx, `UPDATE operator_sessions SET proven = 0 WHERE operator_id = $1 AND amr = 'pwd' AND ended = 0`, o.ID); err != nil {
		return fmt.Errorf("asking an operator's sessions for a factor: %w", err)
	}
	return nil
}

// SeeOperatorSession notes that a session was used.
func (s *Operators) SeeOperatorSession(ctx context.Context, id string, at time.Time) error {
	return s.once(ctx, audit.None("a use"), func(t tx) error {
		if _, err := t.Exec(ctx, `UPDATE operator_sessions SET seen = $2 WHERE id = $1 AND seen < $2`, id, micros(at)); err != nil {
			return fmt.Errorf("seeing operator's session: %w", err)
		}
		return nil
	})
}

// ListOperatorSessions returns the sessions of an operator that have not ended.
func (s *Operators) ListOperatorSessions(ctx context.Context, operatorID string, now time.Time) ([]operator.Session, error) {
	return gather(ctx, s.read(), "listing an operator's sessions", func(row scanner) (operator.Session, error) {
		var r operatorSession
		err := row.Scan(r.into()...)
		return r.session(), err
	}, `SELECT `+operatorSessionColumns+` FROM operator_sessions s WHERE s.operator_id = $1 AND s.ended = 0 AND s.expires > $2 AND s.proven = 1
		ORDER BY s.id DESC LIMIT 100`, operatorID, micros(now))
}

// EndOperatorSession ends one session of an operator, or all but keep.
func (s *Operators) EndOperatorSession(ctx context.Context, operatorID, id, keep string, at time.Time) error {
	action := "session.ended"
	if id == "" {
		action = "session.ended_all"
	}
	return s.once(ctx, audit.Of(action, "", "operator", operatorID).With("session", id, "all_but", keep),
		func(t tx) error {
			res, err := t.Exec(ctx, `UPDATE operator_sessions SET ended = $4 WHERE operator_id = $1 AND ended = 0 AND (id = $2 OR $2 = '' AND id <> $3)`,
				operatorID, id, keep, micros(at))
			if err != nil {
				return fmt.Errorf("ending an operator's session: %w", err)
			}
			if n, err := res.RowsAffected(); err != nil || n > 0 {
				return err
			}
			t.event.Drop()
			return nil
		})
}
