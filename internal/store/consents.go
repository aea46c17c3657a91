package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// FindConsent gives the scopes that a subscriber has agreed to for a client.
func (s *Store) FindConsent(ctx context.Context, subscriberID, clientID string) ([]string, error) {
	var scope string
	err := s.read().Row(ctx, `SELECT scope FROM consents WHERE subscriber_id = $1 AND client_id = $2`, subscriberID, clientID).Scan(&scope)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, problem.NoSuch("consent")
	}
	if err != nil {
		return nil, fmt.Errorf("reading consent: %w", err)
	}
	return strings.Fields(scope), nil
}

// PutConsent replaces the scopes that a subscriber has agreed to for a client.
func (s *Store) PutConsent(ctx context.Context, subscriberID, clientID string, scopes []string, now time.Time) error {
	return s.once(ctx, func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO consents (subscriber_id, client_id, scope, updated) VALUES ($1, $2, $3, $4)
			ON CONFLICT (subscriber_id, client_id) DO UPDATE SET scope = excluded.scope, updated = excluded.updated`,
			subscriberID, clientID, strings.Join(scopes, " "), micros(now))
		if isForeignKey(err) {
			return problem.NoSuch("client or subscriber")
		}
		if err != nil {
			return fmt.Errorf("writing consent: %w", err)
		}
		return nil
	})
}
