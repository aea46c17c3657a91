package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// FindConsent returns the scopes that a subscriber has agreed to for a client.
func (s *Grants) FindConsent(ctx context.Context, subscriberID, clientID string) ([]string, error) {
	var scope string
	err := s.read().Row(ctx, `SELECT scope FROM consents WHERE subscriber_id = $1 AND client_id = $2`,
		subscriberID, clientID).Scan(&scope)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, problem.NoSuch("consent")
	}
	if err != nil {
		return nil, fmt.Errorf("reading consent: %w", err)
	}
	return strings.Fields(scope), nil
}

// ListConsents returns a page of what a subscriber has agreed to, by client.
func (s *Grants) ListConsents(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[fabric.Consent], error) {
	l := listing[fabric.Consent]{
		thing: "consents", columns: `o.client_id, c.name, o.scope, o.updated`, from: "consents o JOIN clients c ON c.id = o.client_id",
		key: []string{"o.client_id"}, start: startAt(q.From),
		scan: func(row scanner) (o fabric.Consent, err error) {
			var scope string
			var updated int64
			err = row.Scan(&o.ClientID, &o.ClientName, &scope, &updated)
			o.Scope, o.Updated = strings.Fields(scope), moment(updated)
			return o, found(err, "consent")
		},
		id: func(o fabric.Consent) string { return o.ClientID },
	}
	l.where.and(`c.project_id = $%d`, projectID)
	l.where.and(`o.subscriber_id = $%d`, subscriberID)
	return l.page(ctx, s.read(), q)
}

// RevokeConsent takes back what a subscriber has agreed to for a client, and ends the
// client's grants with their access tokens; ending gives the revocation of a grant.
// Where there is neither, it is a [problem.NotFound].
func (s *Grants) RevokeConsent(ctx context.Context, subscriberID, clientID string, now time.Time, ending func(grantID string) revocation.Revocation) error {
	return s.change(ctx, audit.Of("consent.revoked", "", "subscriber", subscriberID).With("client", clientID),
		func(t tx) error {
			// Who redeems a code waits here for us, and then finds no consent; or we for
			// them, and then find their grant.
			var scope string
			err := t.Row(ctx, `DELETE FROM consents WHERE subscriber_id = $1 AND client_id = $2 RETURNING scope`,
				subscriberID, clientID).Scan(&scope)
			none := found(err, "consent")
			if none != nil && !errors.Is(none, problem.NotFound) {
				return none
			}
			grants, err := gather(ctx, t, "finding grants", func(row scanner) (id string, err error) {
				return id, row.Scan(&id)
			},
				`SELECT id FROM grants WHERE subscriber_id = $1 AND client_id = $2 AND revoked = 0 ORDER BY id`, subscriberID, clientID)
			if err != nil {
				return err
			}
			if len(grants) == 0 && none != nil {
				return none
			}
			if t.event.ProjectID, err = t.projectOf(ctx, clientID); err != nil {
				return err
			}
			t.event.Add("scope", scope, "grants", strconv.Itoa(len(grants)))
			for _, id := range grants {
				if err := t.Later(ctx, `UPDATE grants SET revoked = $2 WHERE id = $1 AND revoked = 0`, id, micros(now)); err != nil {
					return fmt.Errorf("ending grants: %w", err)
				}
			}
			for _, id := range grants {
				if err := t.revoke(ctx, s.ending(ending(id))); err != nil {
					return err
				}
			}
			return nil
		})
}

// AddConsent adds to the scopes that a subscriber has agreed to for a client.
func (s *Grants) AddConsent(ctx context.Context, subscriberID, clientID string, scopes []string, now time.Time) error {
	return s.change(ctx, audit.Of("consent.given", "", "subscriber", subscriberID).
		By(audit.Subscriber, subscriberID).With("client", clientID, "scope", strings.Join(scopes, " ")),
		func(t tx) error {
			_, err := t.Exec(ctx, `INSERT INTO consents (subscriber_id, client_id, scope, updated) VALUES ($1, $2, '', $3) ON CONFLICT DO NOTHING`,
				subscriberID, clientID, micros(now))
			if isForeignKey(err) {
				return problem.NoSuch("client or subscriber")
			}
			if err != nil {
				return fmt.Errorf("writing consent: %w", err)
			}
			if t.event.ProjectID, err = t.projectOf(ctx, clientID); err != nil {
				return err
			}
			agreed, err := t.lockConsent(ctx, subscriberID, clientID)
			if err != nil {
				return err
			}
			for _, scope := range scopes {
				if !slices.Contains(agreed, scope) {
					agreed = append(agreed, scope)
				}
			}
			err = t.Later(ctx, `UPDATE consents SET scope = $3, updated = $4 WHERE subscriber_id = $1 AND client_id = $2`,
				subscriberID, clientID, strings.Join(agreed, " "), micros(now))
			if err != nil {
				return fmt.Errorf("writing consent: %w", err)
			}
			return nil
		})
}

// lockConsent returns the scopes that a subscriber has agreed to for a client, which
// nobody else adds to or takes back before the end of the transaction.
func (t tx) lockConsent(ctx context.Context, subscriberID, clientID string) ([]string, error) {
	var scope string
	err := t.Row(ctx, `UPDATE consents SET updated = updated WHERE subscriber_id = $1 AND client_id = $2 RETURNING scope`, subscriberID, clientID).Scan(&scope)
	return strings.Fields(scope), found(err, "consent")
}
