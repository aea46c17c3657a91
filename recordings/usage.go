package recordings

import (
	"context"
	"time"
)

// A Usage sums up the recordings that a project stored on one day.
type Usage struct {
	Day        time.Time // midnight in UTC
	Recordings int64
	Seconds    int64
	Bytes      int64 // uploaded bytes
	Price      int64 // in millionths of a dollar
	Stored     int64 // stored bytes that have not been deleted; shared bytes count once
}

// A UsageStore sums up recordings.
type UsageStore interface {
	// ListUsage returns the usage of a project on each day with recordings. from is the first day,
	// and before is the day after the last. The oldest day comes first. Deleted recordings count.
	ListUsage(ctx context.Context, projectID string, from, before time.Time) ([]Usage, error)
}

// Usage returns the usage of a project on each day. from is the first day, and before is the day
// after the last. Days without recordings are omitted. A recording counts on the day on which it
// was stored, even after it is deleted.
func (r *Recordings) Usage(ctx context.Context, projectID string, from, before time.Time) ([]Usage, error) {
	return r.c.Store.ListUsage(ctx, projectID, from, before)
}

// SumUsage adds up the usage of several days.
func SumUsage(days []Usage) (sum Usage) {
	for _, d := range days {
		sum.Recordings += d.Recordings
		sum.Seconds += d.Seconds
		sum.Bytes += d.Bytes
		sum.Price += d.Price
		sum.Stored += d.Stored
	}
	return sum
}
