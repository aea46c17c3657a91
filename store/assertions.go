package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// UseAssertion inserts the digest of an assertion. One that is there already is a
// [problem.Conflict]: of many users one succeeds.
func (s *Grants) UseAssertion(ctx context.Context, hash string, expires time.Time) error {
	return s.once(ctx, audit.None("a mark that it was used; what it gave has an event"), func(t tx) error {
		res, err := t.Exec(ctx, `INSERT INTO used_assertions (hash, expires) VALUES ($1, $2) ON CONFLICT DO NOTHING`, hash, micros(expires))
		if err != nil {
			return fmt.Errorf("inserting assertion: %w", err)
		}
		return inserted(res, nil, "assertion",
			problem.New(problem.Conflict, "assertion_used", "the assertion was used before"))
	})
}
