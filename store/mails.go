package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
)

// Letters holds the queue of mails.
type Letters struct{ *core }

var _ mail.Queue = (*Store)(nil)

const letterColumns = `id, project_id, subscriber_id, kind, recipient, facts, state, created, due, attempts, error, ended`

func scanLetter(row scanner) (l mail.Letter, err error) {
	var facts string
	var created, due, ended int64
	err = row.Scan(&l.ID, &l.ProjectID, &l.SubscriberID, &l.Kind, &l.To, &facts, &l.State, &created, &due,
		&l.Attempts, &l.Error, &ended)
	if err == nil {
		err = json.Unmarshal([]byte(facts), &l.Facts)
	}
	l.Created, l.Due, l.Ended = moment(created), moment(due), moment(ended)
	return l, found(err, "mail")
}

// QueueLetter inserts a letter that is to be sent.
func (s *Letters) QueueLetter(ctx context.Context, l mail.Letter) error {
	return s.change(ctx, audit.Of("mail.requested", l.ProjectID, "mail", l.ID).With("kind", string(l.Kind)),
		func(t tx) error { return t.queueLetters(ctx, l) })
}

// queueLetters inserts letters along with what causes them.
func (t tx) queueLetters(ctx context.Context, letters ...mail.Letter) error {
	for _, l := range letters {
		facts, err := json.Marshal(l.Facts)
		if err != nil {
			return fmt.Errorf("writing mail: %w", err)
		}
		err = t.Later(ctx, `INSERT INTO mails (id, project_id, subscriber_id, kind, recipient, facts, state, created, due) VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, 0)`,
			l.ID, l.ProjectID, l.SubscriberID, string(l.Kind), l.To, string(facts), micros(l.Created))
		if err != nil {
			return fmt.Errorf("queueing mail: %w", err)
		}
	}
	return nil
}

// TakeLetters leases letters that are due: of several nodes that ask for the same, the
// second finds a lease where it looks again.
func (s *Letters) TakeLetters(ctx context.Context, now, lease time.Time, most int) (all []mail.Letter, err error) {
	due, err := gather(ctx, s.read(), "looking for mails", scanID,
		`SELECT id FROM mails WHERE state = 'pending' AND due <= $1 ORDER BY due, id LIMIT $2`, micros(now), most)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	err = s.change(ctx, audit.None("a lease"), func(t tx) error {
		args := []any{micros(now), micros(lease)}
		for _, id := range due {
			args = append(args, id)
		}
		all, err = gather(ctx, t, "taking mails", scanLetter, `UPDATE mails SET due = $2, attempts = attempts + 1
			WHERE state = 'pending' AND due <= $1 AND id IN (`+params(2, len(due))+`) RETURNING `+
			letterColumns, args...)
		return err
	})
	return all, err
}

// SettleLetter writes what an attempt came to. What was sent, or is kept elsewhere, keeps no facts.
func (s *Letters) SettleLetter(ctx context.Context, r mail.Result) error {
	return s.once(ctx, audit.None("how far a mail is"), func(t tx) error {
		var err error
		if r.Dropped {
			_, err = t.Exec(ctx, `DELETE FROM mails WHERE id = $1 AND state = 'pending'`, r.ID)
		} else {
			_, err = t.Exec(ctx, `UPDATE mails SET state = $2, error = $3, due = $4, ended = $5, facts = CASE WHEN $2 IN ('sent', 'kept') THEN '{}' ELSE facts END
				WHERE id = $1 AND state = 'pending'`, r.ID, string(r.State), r.Error, micros(r.Due), micros(r.Ended))
		}
		if err != nil {
			return fmt.Errorf("settling mail: %w", err)
		}
		return nil
	})
}

// LetterBacklog tells how many mails wait, since when, and how many were given up.
func (s *Letters) LetterBacklog(ctx context.Context) (b mail.Backlog, err error) {
	var us int64
	err = s.read().Row(ctx, `SELECT count(*), COALESCE(MIN(created), 0), (SELECT count(*) FROM mails WHERE state = 'dead') FROM mails WHERE state = 'pending'`).
		Scan(&b.Waiting, &us, &b.Dead)
	if err != nil {
		return b, fmt.Errorf("counting mails: %w", err)
	}
	b.Oldest = moment(us)
	return b, nil
}

// FindLetter finds a mail.
func (s *Letters) FindLetter(ctx context.Context, id string) (mail.Letter, error) {
	return scanLetter(s.read().Row(ctx, `SELECT `+letterColumns+` FROM mails WHERE id = $1`, id))
}

// ListLetters returns a page of mails, the newest first; "" is every state.
func (s *Letters) ListLetters(ctx context.Context, state mail.State, q page.Query) (page.Page[mail.Letter], error) {
	l := listing[mail.Letter]{
		thing: "mails", columns: letterColumns, from: "mails", key: []string{"id"}, start: startAt(q.From),
		desc: true,
		scan: scanLetter, id: func(l mail.Letter) string { return l.ID },
	}
	if state != "" {
		l.where.and(`state = $%d`, string(state))
	}
	return l.page(ctx, s.read(), q)
}

// RetryLetter makes a mail wait again that was given up, or waits already.
func (s *Letters) RetryLetter(ctx context.Context, id string) (l mail.Letter, err error) {
	err = s.once(ctx, audit.Of("mail.retried", "", "mail", id), func(t tx) error {
		l, err = scanLetter(t.Row(ctx, `UPDATE mails SET state = 'pending', due = 0, attempts = 0, error = '', ended = 0 WHERE id = $1 AND state NOT IN ('sent', 'kept') RETURNING `+letterColumns, id))
		return err
	})
	return l, err
}

// RetryDeadLetters makes all wait again that were given up.
func (s *Letters) RetryDeadLetters(ctx context.Context) (n int, err error) {
	err = s.once(ctx, audit.Of("mail.retried", "", "mail", "dead"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE mails SET state = 'pending', due = 0, attempts = 0, error = '', ended = 0 WHERE state = 'dead'`)
		if err != nil {
			return fmt.Errorf("queueing dead letters: %w", err)
		}
		count, err := res.RowsAffected()
		n = int(count)
		return err
	})
	return n, err
}

// ForgetLetters deletes what was sent, or given up, before a moment, and links that
// have expired.
func (s *Letters) ForgetLetters(ctx context.Context, sent, dead, expired time.Time) error {
	return s.change(ctx, audit.None("what is over"), func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM mails WHERE state IN ('sent', 'kept') AND ended < $1 OR state = 'dead' AND ended < $2`, micros(sent), micros(dead)); err != nil {
			return fmt.Errorf("forgetting mails: %w", err)
		}
		if _, err := t.Exec(ctx, `DELETE FROM mail_links WHERE expires < $1`, micros(expired)); err != nil {
			return fmt.Errorf("forgetting links: %w", err)
		}
		return nil
	})
}
