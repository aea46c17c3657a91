package recordings

import (
	"context"
	"errors"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// maxBulk is the maximum number of recordings that a Bulk changes.
const maxBulk = 10_000

// A Bulk changes all recordings that match a filter.
type Bulk struct {
	Filter Filter
	Delete bool      // delete the recordings; otherwise mark them
	Mark   MarkInput // checked, but not applied, if Delete is set
	DryRun bool      // only count
	// Expect is the number of recordings that the caller expects to match, from a dry run. If a
	// different number matches, nothing is changed. A negative number means no expectation.
	Expect int64
}

// A BulkResult sums up a [Bulk].
type BulkResult struct {
	Matched int64 // number of matching recordings
	Bytes   int64 // the size of the matching recordings
	Changed int64
	Refused int64 // recordings that could not be changed, for example because of a hold
}

// Change applies a change to all recordings that match its filter. If more than 10,000 recordings
// match, it returns problem.Invalid and changes nothing. Each recording is changed separately, so an
// error or the end of ctx leaves some recordings unchanged.
func (r *Recordings) Change(ctx context.Context, b Bulk) (sum BulkResult, err error) {
	if err := b.Mark.Check(); err != nil {
		return sum, err
	}
	var sids []string
	q := page.Query{Size: page.MaxSize}
	for {
		found, err := r.List(ctx, b.Filter, q)
		if err != nil {
			return sum, err
		}
		for _, rec := range found.Items {
			sum.Matched++
			sum.Bytes += rec.Bytes
			if sum.Matched <= maxBulk {
				sids = append(sids, rec.Sid)
			}
		}
		q.From = found.Next
		if q.From == "" {
			break
		}
	}

	switch {
	case b.DryRun:
		return sum, nil
	case sum.Matched > maxBulk:
		return sum, problem.BadParam("filter", "%d recordings match; at most %d can be changed at once",
			sum.Matched, maxBulk)
	case b.Expect >= 0 && b.Expect != sum.Matched:
		return sum, problem.New(problem.Conflict, "conflict",
			"%d recordings match, %d were expected; nothing was changed", sum.Matched, b.Expect)
	}
	err = r.changeEach(ctx, b, sids, &sum)
	return sum, err
}

// changeEach changes the recordings with these Sids, and counts in sum how many were changed and
// refused.
func (r *Recordings) changeEach(ctx context.Context, b Bulk, sids []string, sum *BulkResult) error {
	for _, sid := range sids {
		var err error
		if b.Delete {
			err = r.Delete(ctx, b.Filter.ProjectID, sid)
		} else {
			_, err = r.Mark(ctx, b.Filter.ProjectID, sid, b.Mark)
		}

		first := problem.First(err)
		switch {
		case err == nil:
			sum.Changed++
		case errors.Is(err, problem.NotFound): // deleted by somebody else
		case first != nil && (first.Kind == problem.Conflict || first.Kind == problem.Invalid):
			sum.Refused++
		default:
			return err
		}
	}
	return nil
}
