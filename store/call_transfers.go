package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// SaveTransfer writes the result of a transfer. A failed transfer leaves the callee and the legs
// unchanged. If the call has ended, SaveTransfer writes nothing. If another node has taken over the
// call, the error is [calls.ErrTaken].
//
// If the callee becomes the caller, the callee's name is read from the row, because the callee may have
// been erased.
func (s *Calls) SaveTransfer(ctx context.Context, r calls.Record, t calls.Transfer) error {
	return s.change(ctx, transferEvent(r, t), func(tx tx) error {
		set := `gateway = $3, lines = $4, outbound_from = $5, payer = CASE WHEN $3 = '' THEN '' ELSE payer END`
		args := []any{r.Key, r.Node, r.Gateway, int64(r.Lines), micros(r.OutboundFrom)}
		if t.Swapped {
			set += `, from_name = to_name, from_address = to_address, from_address_id = to_address_id,
				from_subscriber = to_subscriber`
		}
		if t.Cause == (calls.Cause{}) {
			set += `, guest = $6, caller_leg = $7, callee_leg = $8,
				to_name = $9, to_address = $10, to_address_id = $11, to_subscriber = $12`
			args = append(args, r.Guest, r.CallerLeg, r.CalleeLeg,
				r.To.Name, r.To.Address, r.To.AddressID, r.To.SubscriberID)
		}

		res, err := tx.Exec(ctx, `UPDATE calls SET `+set+` WHERE id = $1 AND node = $2 AND ended = 0`, args...)
		err = requireRow(res, err, "call")
		if errors.Is(err, problem.NotFound) {
			return unsavedCall(ctx, tx, r)
		}
		if err != nil {
			return fmt.Errorf("writing a transfer: %w", err)
		}
		return nil
	})
}

// transferEvent returns the audit event for a transfer.
func transferEvent(r calls.Record, t calls.Transfer) audit.Event {
	action := "call.transferred"
	if t.Cause != (calls.Cause{}) {
		action = "call.transfer_failed"
	}

	e := audit.Of(action, r.ProjectID, "call", r.ID)
	if t.Cause == (calls.Cause{}) {
		e = e.With("to", auditedParty(r.To))
	} else {
		e = e.With("cause", t.Cause.Text)
	}
	if r.Gateway != "" {
		e = e.With("gateway", r.Gateway)
	}
	if t.Refusal != "" {
		e = e.With("reason", t.Refusal)
	}
	if t.By.SubscriberID != "" {
		e = e.By(audit.Subscriber, t.By.SubscriberID)
	}
	return e
}
