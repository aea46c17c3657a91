package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/mail"
)

// tellOwner queues the letter that tells a subscriber or an operator of a change of its factors, where
// it has an e-mail: what became of them, and beside that names and values of facts.
func (t tx) tellOwner(ctx context.Context, at time.Time, o factor.Owner, what string, more ...string) error {
	if o.Kind == factor.Operator {
		return t.tellOperator(ctx, at, o.ID, mail.OperatorFactor, append([]string{"what", what}, more...)...)
	}
	facts := audit.From(ctx).Facts(at)
	facts["what"] = what
	for i := 0; i+1 < len(more); i += 2 {
		facts[more[i]] = more[i+1]
	}
	text, err := json.Marshal(facts)
	if err != nil {
		return fmt.Errorf("writing mail: %w", err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("making mail id: %w", err)
	}
	err = t.Later(ctx, `INSERT INTO mails (id, project_id, subscriber_id, kind, recipient, facts, state, created, due)
		SELECT CAST($1 AS TEXT), project_id, id, CAST($2 AS TEXT), email, CAST($3 AS TEXT), 'pending', CAST($4 AS BIGINT), 0 FROM subscribers WHERE id = $5 AND email IS NOT NULL`,
		id.String(), string(mail.FactorChanged), string(text), micros(at), o.ID)
	if err != nil {
		return fmt.Errorf("queueing mail: %w", err)
	}
	return nil
}

// codesChange says what has become of recovery codes, where there were some: of the first
// their owner hears by what they come with.
func codesChange(before int64, now int) string {
	switch {
	case before == 0:
		return ""
	case now == 0:
		return "codes_removed"
	}
	return "codes_replaced"
}
