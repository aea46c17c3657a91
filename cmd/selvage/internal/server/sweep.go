package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/span"
)

// sweep deletes expired data at startup and every minute. It also calls finishResealing.
func (a *App) sweep(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()

	expired := pruner{a}
	var pruned time.Time // the day until which the audit trail was pruned
	for {
		var auditErr error
		pruned, auditErr = expired.pruneAudit(ctx, pruned)
		err := errors.Join(
			auditErr,
			a.finishResealing(ctx, log),
			expired.pruneHistory(ctx),
			expired.deleteExpired(ctx),
		)
		if err != nil && ctx.Err() == nil {
			log.Error("deleting expired rows", "error", err)
		}

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// A pruner deletes rows whose retention period has ended.
type pruner struct{ *App }

// pruneAudit deletes old events from the audit trail, once a day. pruned is the day until which events
// have been deleted, and pruneAudit returns its new value. After a failure, the next call tries again.
// If the trail is broken, the next attempt is a day later, because the trail stays broken.
func (a pruner) pruneAudit(ctx context.Context, pruned time.Time) (time.Time, error) {
	keep := time.Duration(a.Config.Audit.Keep)
	until := time.Now().Add(-keep).UTC().Truncate(span.Day)
	if keep <= 0 || !until.After(pruned) {
		return pruned, nil
	}

	err := a.Store.PruneAudit(ctx, until)
	var broken *audit.Break
	if err != nil && !errors.As(err, &broken) {
		return pruned, err
	}
	return until, err
}

// pruneHistory deletes calls, rooms, messages and the names of deleted subscribers that are older
// than the configuration allows.
func (a pruner) pruneHistory(ctx context.Context) error {
	now := time.Now()
	names := cmp.Or(time.Duration(a.Config.Audit.Keep), fabric.DeletedNamesFor)
	errs := []error{a.Fabric.Subscribers.ForgetDeletedNames(ctx, now.Add(-names))}
	if keep := time.Duration(a.Config.Calls.Keep); keep > 0 {
		until := now.Add(-keep)
		errs = append(errs, a.CallRecords.Prune(ctx, until), a.Store.PruneRooms(ctx, until))
	}
	if keep := time.Duration(a.Config.Messages.Keep); keep > 0 {
		errs = append(errs, a.Chat.Prune(ctx, now.Add(-keep)))
	}
	return errors.Join(errs...)
}

// deleteExpired deletes what no request can use anymore.
func (a pruner) deleteExpired(ctx context.Context) error {
	errs := []error{
		a.Store.SweepRevocations(ctx),
		a.Store.SweepFamilies(ctx),
		a.IDP.Sweep(ctx),
		a.Fabric.Deliveries.Sweep(ctx),
		a.Operators.Sweep(ctx),
		a.IDP.Letters.Sweep(ctx),
		a.Store.SweepCounts(ctx),
	}
	if a.Recordings != nil {
		errs = append(errs, a.Recordings.Sweep(ctx))
	}
	return errors.Join(errs...)
}
