package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/operator"
)

// tellOperator queues the letter that tells an operator of what opens its account, with
// names and values of facts beside those of where it comes from. None goes to who is disabled.
func (t tx) tellOperator(ctx context.Context, at time.Time, id string, kind mail.Kind, more ...string) error {
	return t.tellOperators(ctx, at, id, kind, `id = $1 AND disabled = 0`, more...)
}

// tellOwners queues the letter that tells each owner of the installation that there is
// another operator.
func (t tx) tellOwners(ctx context.Context, at time.Time, o operator.Operator) error {
	var roles []string
	for _, m := range o.Roles {
		if role := string(m.Role); !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return t.tellOperators(ctx, at, o.ID, mail.OperatorAdded, `id <> $1 AND disabled = 0 AND password_hash <> ''
		AND EXISTS (SELECT 1 FROM operator_roles r WHERE r.operator_id = operators.id AND r.project_id IS NULL AND r.role = 'owner')`,
		"new", o.Email, "role", strings.Join(roles, ", "))
}

func (t tx) tellOperators(ctx context.Context, at time.Time, id string, kind mail.Kind, who string, more ...string) error {
	facts, err := t.operatorFacts(ctx, at, id)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(more); i += 2 {
		facts[more[i]] = more[i+1]
	}
	to, err := gather(ctx, t, "finding operators", scanID,
		`SELECT email FROM operators WHERE `+who+` ORDER BY id`, id)
	if err != nil {
		return err
	}
	var letters []mail.Letter
	for _, email := range to {
		letter, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("making mail id: %w", err)
		}
		letters = append(letters, mail.Letter{ID: letter.String(), Kind: kind, To: email, Facts: facts, Created: at})
	}
	return t.queueLetters(ctx, letters...)
}

// operatorFacts tell where a change comes from: by whom, where that is another than the
// operator.
func (t tx) operatorFacts(ctx context.Context, at time.Time, id string) (map[string]string, error) {
	from := audit.From(ctx)
	facts := from.Facts(at)
	if from.Actor.Kind != audit.Operator {
		return facts, nil
	}
	delete(facts, "by")
	facts["agent"], facts["address"] = from.Agent, from.Address
	if from.Actor.ID == id {
		return facts, nil
	}
	by, err := t.findOperator(ctx, `o.id = $1`, from.Actor.ID)
	facts["maker"] = by.Email
	return facts, err
}
