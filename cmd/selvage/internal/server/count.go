package server

import (
	"context"
	"log/slog"
	"time"
)

// countsEvery is the interval at which counts are stored.
const countsEvery = 10 * time.Second

// count stores the counts of each day at intervals, until ctx ends.
func (a *App) count(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(countsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return // closing the store writes the remaining counts
		case <-tick.C:
		}
		if err := a.Store.FlushCounts(ctx); err != nil && ctx.Err() == nil {
			log.Warn("writing daily counts", "error", err)
		}
		if a.Recordings == nil {
			continue
		}
		if err := a.Recordings.FlushAccesses(ctx); err != nil && ctx.Err() == nil {
			log.Warn("writing accesses to recordings", "error", err)
		}
	}
}
