package server

import (
	"context"
	"log/slog"
	"time"
)

// countsEvery is the interval at which counts are written.
const countsEvery = 10 * time.Second

// count writes the daily counts and the accesses to recordings to the database every countsEvery,
// until ctx is done.
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
