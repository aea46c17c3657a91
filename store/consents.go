package store

import (
	"context"
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

// FindConsent returns the scopes to which a subscriber has consented for a client.
func (s *Grants) FindConsent(ctx context.Context, subscriberID, clientID string) ([]string, error) {
	var scopes []string
	err := s.read().Row(ctx, `SELECT scope FROM consents WHERE subscriber_id = $1 AND client_id = $2`,
		subscriberID, clientID).Scan(scanTarget(&scopes))
	return scopes, checkRow(err, "consent")
}

// ListConsents returns a page of a subscriber's consents, in the order of client ids.
func (s *Grants) ListConsents(
	ctx context.Context, projectID, subscriberID string, q page.Query,
) (page.Page[fabric.Consent], error) {
	consents := selection{
		thing: "consents", columns: `o.client_id, c.name, o.scope, o.updated`,
		from: "consents o JOIN clients c ON c.id = o.client_id", key: []string{"o.client_id"}, start: startAt(q.From),
	}
	l := listing[fabric.Consent]{
		selection: consents,
		scan: func(row scanner) (o fabric.Consent, err error) {
			err = row.Scan(&o.ClientID, &o.ClientName, scanTarget(&o.Scope), scanTarget(&o.Updated))
			return o, checkRow(err, "consent")
		},
		id: func(o fabric.Consent) string { return o.ClientID },
	}
	l.where.and(`c.project_id = $%d`, projectID)
	l.where.and(`o.subscriber_id = $%d`, subscriberID)
	return l.page(ctx, s.read(), q)
}

// RevokeConsent deletes a subscriber's consent for a client. It also ends the client's grants and
// their access tokens; ending returns the revocation for a grant. If there is no consent and no
// grant, the error is [problem.NotFound].
func (s *Grants) RevokeConsent(
	ctx context.Context, subscriberID, clientID string, now time.Time,
	ending func(grantID string) revocation.Revocation,
) error {
	e := audit.Of("consent.revoked", "", "subscriber", subscriberID).With("client", clientID)
	return s.change(ctx, e, func(t tx) error {
		// If a code is redeemed concurrently, one of the two changes waits for the other. If the
		// redemption waits, it then finds no consent. If this change waits, it then finds the new
		// grant.
		var scope string
		err := checkRow(t.Row(ctx, `DELETE FROM consents WHERE subscriber_id = $1 AND client_id = $2 RETURNING scope`,
			subscriberID, clientID).Scan(&scope), "consent")
		if err != nil && !errors.Is(err, problem.NotFound) {
			return err
		}
		grants, listErr := gather(ctx, t, "finding grants", scanID, `SELECT id FROM grants
			WHERE subscriber_id = $1 AND client_id = $2 AND revoked = 0 ORDER BY id`, subscriberID, clientID)
		if listErr != nil {
			return listErr
		}
		if len(grants) == 0 && err != nil {
			return err
		}

		if t.event.ProjectID, err = t.projectOf(ctx, clientID); err != nil {
			return err
		}
		t.event.Add("scope", scope, "grants", strconv.Itoa(len(grants)))
		for _, id := range grants {
			err := t.Later(ctx, `UPDATE grants SET revoked = $2 WHERE id = $1 AND revoked = 0`, id, micros(now))
			if err != nil {
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

// AddConsent adds scopes to a subscriber's consent for a client.
func (s *Grants) AddConsent(
	ctx context.Context, subscriberID, clientID string, scopes []string, now time.Time,
) error {
	e := audit.Of("consent.given", "", "subscriber", subscriberID).
		By(audit.Subscriber, subscriberID).With("client", clientID, "scope", strings.Join(scopes, " "))
	return s.change(ctx, e, func(t tx) error {
		// The row must exist before it can be locked.
		_, err := t.Exec(ctx, `INSERT INTO consents (subscriber_id, client_id, scope, updated)
			VALUES ($1, $2, '', $3) ON CONFLICT DO NOTHING`, subscriberID, clientID, micros(now))
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

// lockConsent returns the scopes to which a subscriber has consented for a client. Until the
// transaction ends, no other change can add scopes or revoke the consent.
func (t tx) lockConsent(ctx context.Context, subscriberID, clientID string) (scopes []string, err error) {
	err = t.Row(ctx, `UPDATE consents SET updated = updated WHERE subscriber_id = $1 AND client_id = $2
		RETURNING scope`, subscriberID, clientID).Scan(scanTarget(&scopes))
	return scopes, checkRow(err, "consent")
}
