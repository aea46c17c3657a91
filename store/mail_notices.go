package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/operator"
)

// A mailTx queues emails within a change.
type mailTx struct{ tx }

func (t tx) mails() mailTx { return mailTx{t} }

// notifyOwner queues an email about a change to a factor of a subscriber or operator, if the owner
// has an email address. what names the change, and becomes a fact of the letter. more holds further
// facts: each name is followed by its value.
func (t mailTx) notifyOwner(ctx context.Context, at time.Time, o factor.Owner, what string, more ...string) error {
	if o.Kind == factor.Operator {
		return t.notifyOperator(ctx, at, o.ID, mail.OperatorFactor, append([]string{"what", what}, more...)...)
	}
	facts := audit.From(ctx).Facts(at)
	facts["what"] = what
	addFacts(facts, more)
	text, err := jsonText(facts)
	if err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("creating mail id: %w", err)
	}

	err = t.Later(ctx, `INSERT INTO mails (id, project_id, subscriber_id, kind, recipient, facts, state, created, due)
			SELECT CAST($1 AS TEXT), project_id, id, CAST($2 AS TEXT), email, CAST($3 AS TEXT), 'pending',
				CAST($4 AS BIGINT), 0
			FROM subscribers WHERE id = $5 AND email IS NOT NULL`,
		id.String(), string(mail.FactorChanged), text, micros(at), o.ID)
	if err != nil {
		return fmt.Errorf("queueing mail: %w", err)
	}
	return nil
}

// addFacts adds the facts in more, in which each name is followed by its value.
func addFacts(facts map[string]string, more []string) {
	for i := 0; i+1 < len(more); i += 2 {
		facts[more[i]] = more[i+1]
	}
}

// notifyOperator queues an email about a change to an operator's credentials, unless the operator
// is disabled. more holds facts: each name is followed by its value. Facts about the origin of the
// change are added.
func (t mailTx) notifyOperator(ctx context.Context, at time.Time, id string, kind mail.Kind, more ...string) error {
	return t.notifyOperators(ctx, at, id, kind, `id = $1 AND disabled = 0`, more...)
}

// notifyOwners queues an email about a new operator to all other owners of the installation who are
// able to sign in.
func (t mailTx) notifyOwners(ctx context.Context, at time.Time, o operator.Operator) error {
	var roles []string
	for _, m := range o.Roles {
		if role := string(m.Role); !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return t.notifyOperators(ctx, at, o.ID, mail.OperatorAdded, `id <> $1 AND disabled = 0 AND password_hash <> ''
		AND EXISTS (SELECT 1 FROM operator_roles r
			WHERE r.operator_id = operators.id AND r.project_id IS NULL AND r.role = 'owner')`,
		"new", o.Email, "role", strings.Join(roles, ", "))
}

// notifyOperators queues emails about the operator with the given id. They are sent to all
// operators that meet condition.
func (t mailTx) notifyOperators(
	ctx context.Context, at time.Time, id string, kind mail.Kind, condition string, more ...string,
) error {
	facts, err := t.operatorFacts(ctx, at, id)
	if err != nil {
		return err
	}

	addFacts(facts, more)
	recipients, err := gather(ctx, t.tx, "finding operators", scanID,
		`SELECT email FROM operators WHERE `+condition+` ORDER BY id`, id)
	if err != nil {
		return err
	}

	var letters []mail.Letter
	for _, email := range recipients {
		letterID, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("creating mail id: %w", err)
		}
		letters = append(letters, mail.Letter{
			ID:      letterID.String(),
			Kind:    kind,
			To:      email,
			Facts:   facts,
			Created: at,
		})
	}
	return t.queueLetters(ctx, letters...)
}

// operatorFacts returns facts about the origin of a change to an operator. If another operator made
// the change, the facts name that operator.
func (t mailTx) operatorFacts(ctx context.Context, at time.Time, id string) (map[string]string, error) {
	origin := audit.From(ctx)
	facts := origin.Facts(at)
	if origin.Actor.Kind != audit.Operator {
		return facts, nil
	}
	delete(facts, "by")
	facts["agent"] = origin.Agent
	facts["address"] = origin.Address
	if origin.Actor.ID == id {
		return facts, nil
	}
	by, err := findOperator(ctx, t.tx, `o.id = $1`, origin.Actor.ID)
	if err != nil {
		return nil, err
	}
	facts["maker"] = by.Email
	return facts, nil
}
