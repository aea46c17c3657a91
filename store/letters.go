package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
)

// Letters holds the queue of emails.
type Letters struct{ *core }

var _ mail.Queue = (*Store)(nil)

var letterTable = table[mail.Letter]{
	name:  "mails",
	thing: "mail",
	columns: `id, project_id, subscriber_id, kind, recipient, facts, state, created, due, attempts,
	error, ended`,
	fields: func(l *mail.Letter) []any {
		return []any{&l.ID, &l.ProjectID, &l.SubscriberID, &l.Kind, &l.To, asJSON{v: &l.Facts}, &l.State, &l.Created,
			&l.Due, &l.Attempts, &l.Error, &l.Ended}
	},
}

// QueueLetter queues a letter.
func (s *Letters) QueueLetter(ctx context.Context, l mail.Letter) error {
	e := audit.Of("mail.requested", l.ProjectID, "mail", l.ID).With("kind", string(l.Kind),
		"subscriber", l.SubscriberID)
	return s.change(ctx, e, func(t tx) error { return t.mails().queueLetters(ctx, l) })
}

// queueLetters queues letters in the transaction of the change that causes them.
func (t mailTx) queueLetters(ctx context.Context, letters ...mail.Letter) error {
	for _, l := range letters {
		facts, err := jsonText(l.Facts)
		if err != nil {
			return err
		}
		err = t.Later(ctx, `INSERT INTO mails
				(id, project_id, subscriber_id, kind, recipient, facts, state, created, due)
				VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, 0)`,
			l.ID, l.ProjectID, l.SubscriberID, string(l.Kind), l.To, facts, micros(l.Created))
		if err != nil {
			return fmt.Errorf("queueing mail: %w", err)
		}
	}
	return nil
}

// TakeLetters leases at most limit due letters. If several nodes request the same letter at the same
// time, only one of them gets the lease.
func (s *Letters) TakeLetters(ctx context.Context, now, lease time.Time, limit int) ([]mail.Letter, error) {
	due, err := gather(ctx, s.read(), "finding mails", scanID,
		`SELECT id FROM mails WHERE state = 'pending' AND due <= $1 ORDER BY due, id LIMIT $2`, micros(now), limit)
	if err != nil {
		return nil, err
	}
	if len(due) == 0 {
		return nil, nil
	}
	w := where{args: []any{micros(now), micros(lease)}}
	w.in(`id`, due)
	return resultOf(ctx, s.change, audit.None("a lease"), func(t tx) ([]mail.Letter, error) {
		return gather(ctx, t, "claiming mails", letterTable.scan,
			`UPDATE mails SET due = $2, attempts = attempts + 1
			WHERE state = 'pending' AND due <= $1 AND `+w.String()+` RETURNING `+letterTable.columns, w.args...)
	})
}

// SettleLetter writes the result of an attempt, or deletes the letter if it was dropped. It deletes
// the facts of letters that were sent or passed to the local mailbox.
func (s *Letters) SettleLetter(ctx context.Context, r mail.Result) error {
	return s.once(ctx, audit.None("the progress of an email"), func(t tx) error {
		var err error
		if r.Dropped {
			_, err = t.Exec(ctx, `DELETE FROM mails WHERE id = $1 AND state = 'pending'`, r.ID)
		} else {
			_, err = t.Exec(ctx, `UPDATE mails SET state = $2, error = $3, due = $4, ended = $5,
					facts = CASE WHEN $2 IN ('sent', 'kept') THEN '{}' ELSE facts END
				WHERE id = $1 AND state = 'pending'`, r.ID, string(r.State), r.Error, micros(r.Due), micros(r.Ended))
		}
		if err != nil {
			return fmt.Errorf("settling mail: %w", err)
		}
		return nil
	})
}

// LetterBacklog returns the number of waiting emails, when the oldest of them was queued, and the
// number of emails that are no longer retried.
func (s *Letters) LetterBacklog(ctx context.Context) (b mail.Backlog, err error) {
	err = s.read().Row(ctx, `SELECT count(*), COALESCE(MIN(created), 0),
			(SELECT count(*) FROM mails WHERE state = 'dead') FROM mails WHERE state = 'pending'`).
		Scan(&b.Waiting, scanTarget(&b.Oldest), &b.Dead)
	if err != nil {
		return b, fmt.Errorf("counting mails: %w", err)
	}
	return b, nil
}

// FindLetter finds an email.
func (s *Letters) FindLetter(ctx context.Context, id string) (mail.Letter, error) {
	return letterTable.find(ctx, s.read(), `id = $1`, id)
}

// ListLetters returns a page of emails in the given state, newest first; "" means any state.
func (s *Letters) ListLetters(ctx context.Context, state mail.State, q page.Query) (page.Page[mail.Letter], error) {
	l := letterTable.listing(q.From)
	l.desc = true
	if state != "" {
		l.where.and(`state = $%d`, string(state))
	}
	return l.page(ctx, s.read(), q)
}

// retried resets an email, so that it is due as if it were new.
const retried = `UPDATE mails SET state = 'pending', due = 0, attempts = 0, error = '', ended = 0 `

// RetryLetter queues an email again, if it is pending or dead.
func (s *Letters) RetryLetter(ctx context.Context, id string) (mail.Letter, error) {
	return resultOf(ctx, s.once, audit.Of("mail.retried", "", "mail", id), func(t tx) (mail.Letter, error) {
		return letterTable.scan(t.Row(ctx, retried+`WHERE id = $1 AND state NOT IN ('sent', 'kept')
			RETURNING `+letterTable.columns, id))
	})
}

// RetryDeadLetters queues all dead emails again.
func (s *Letters) RetryDeadLetters(ctx context.Context) (int, error) {
	return resultOf(ctx, s.once, audit.Of("mail.retried", "", "mail", "dead"), func(t tx) (int, error) {
		res, err := t.Exec(ctx, retried+`WHERE state = 'dead'`)
		if err != nil {
			return 0, fmt.Errorf("queueing dead letters: %w", err)
		}
		count, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		return int(count), nil
	})
}

// forgotten is the condition that an email is old enough to be deleted.
const forgotten = `(state IN ('sent', 'kept') AND ended < $2 OR state = 'dead' AND ended < $3)`

// forgetLetters deletes up to $1 emails. Each may have been queued again since the subquery found it.
var forgetLetters = `DELETE FROM mails WHERE id IN (SELECT id FROM mails WHERE ` + forgotten + ` LIMIT $1)
	AND ` + withoutIndex(forgotten)

// ForgetLetters deletes emails that were sent, or kept in the local mailbox, before sentBefore. It also
// deletes emails that became dead before deadBefore, and links that expired before expiredBefore.
func (s *Letters) ForgetLetters(ctx context.Context, sentBefore, deadBefore, expiredBefore time.Time) error {
	letters := s.sweep(ctx, forgetLetters, micros(sentBefore), micros(deadBefore))
	links := s.sweep(ctx, `DELETE FROM mail_links WHERE hash IN (
		SELECT hash FROM mail_links WHERE expires < $2 ORDER BY expires LIMIT $1)`, micros(expiredBefore))
	return errors.Join(letters, links)
}
