package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// Counts records how often events happened in each project on each day. Events are counted in
// memory when they are committed. FlushCounts writes one row for each count that changed,
// regardless of the number of events.
type Counts struct{ *core }

// keepCounts is how long counts are kept.
const keepCounts = 400 * 24 * time.Hour

const secondsPerDay = 24 * 60 * 60

// A tally holds the counts that have not been written yet.
type tally struct {
	mu     sync.Mutex
	counts map[countKey]int64
	active map[activeKey]bool
}

type countKey struct {
	project string
	day     int64
	of      fabric.Counted
}

type activeKey struct {
	project, subscriber string
	day                 int64
}

// countedActions maps the audited actions that are counted to the names of their counts.
var countedActions = map[string]fabric.Counted{
	"login":            fabric.CountedSignIns,
	"call.ended":       fabric.CountedCalls,
	"recording.stored": fabric.CountedRecordings,
}

// note counts a committed event.
func (t *tally) note(e audit.Event, now time.Time) {
	of := countedActions[e.Action]
	if of == "" || e.Outcome != audit.Done || e.ProjectID == "" || e.Unwritten() {
		return
	}
	t.add(e.ProjectID, of, now)
	if of == fabric.CountedSignIns && e.Target.ID != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.active == nil {
			t.active = make(map[activeKey]bool)
		}
		t.active[activeKey{project: e.ProjectID, subscriber: e.Target.ID, day: dayOf(now)}] = true
	}
}

func (t *tally) add(projectID string, of fabric.Counted, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[countKey]int64)
	}
	t.counts[countKey{project: projectID, day: dayOf(now), of: of}]++
}

// take returns the counts and sets them to zero.
func (t *tally) take() (counts map[countKey]int64, active map[activeKey]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts, active = t.counts, t.active
	t.counts, t.active = nil, nil
	return counts, active
}

// dayOf returns the number of days from 1970 to a time, in UTC.
func dayOf(at time.Time) int64 { return at.Unix() / secondsPerDay }

// monthOf returns the number of months from 1970 to a day.
func monthOf(day int64) int64 {
	date := time.Unix(day*secondsPerDay, 0).UTC()
	return int64(date.Year()-1970)*12 + int64(date.Month()) - 1
}

// CountToken counts a token that was issued in a project.
func (s *Counts) CountToken(projectID string) { s.tally.add(projectID, fabric.CountedTokens, s.now()) }

// FlushCounts writes the counts since the last call. If it fails, these counts are lost.
func (s *Counts) FlushCounts(ctx context.Context) error {
	counts, active := s.tally.take()
	if len(counts) == 0 {
		return nil
	}

	err := s.change(ctx, audit.None("counts for people to look at"), func(t tx) error {
		sums := maps.Clone(counts)
		if err := countActive(ctx, t, active, sums); err != nil {
			return err
		}

		for _, k := range sortedKeys(sums) {
			_, err := t.Exec(ctx, `INSERT INTO daily_counts (project_id, day, what, n)
				SELECT id, $2, $3, $4 FROM projects WHERE id = $1
				ON CONFLICT (project_id, day, what) DO UPDATE SET n = daily_counts.n + excluded.n`,
				k.project, k.day, string(k.of), sums[k])
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing daily counts: %w", err)
	}
	return nil
}

// countActive counts each subscriber once for each day and once for each month with a login, and adds
// these counts to sums.
func countActive(ctx context.Context, t tx, active map[activeKey]bool, sums map[countKey]int64) error {
	keys := slices.Collect(maps.Keys(active))
	// In this order, nodes do not deadlock, and an earlier day of a subscriber comes first.
	slices.SortFunc(keys, func(x, y activeKey) int {
		return cmp.Or(strings.Compare(x.subscriber, y.subscriber), cmp.Compare(x.day, y.day))
	})

	for _, k := range keys {
		var day, month int64
		_, err := t.findRow(ctx, "last active day of a subscriber", `SELECT day, month FROM active_days
			WHERE subscriber_id = $1`, []any{k.subscriber}, &day, &month)
		if err != nil {
			return err
		}
		if k.day <= day {
			continue
		}

		res, err := t.Exec(ctx, `INSERT INTO active_days (subscriber_id, day, month)
			SELECT id, $2, $3 FROM subscribers WHERE id = $1
			ON CONFLICT (subscriber_id) DO UPDATE SET day = excluded.day, month = excluded.month
			WHERE active_days.day < excluded.day`, k.subscriber, k.day, monthOf(k.day))
		if err = requireRow(res, err, "last active day of a subscriber"); err != nil {
			if problem.IgnoreNotFound(err) == nil {
				continue // another node counted the subscriber, or the subscriber was deleted
			}
			return err
		}

		sums[countKey{project: k.project, day: k.day, of: fabric.CountedActive}]++
		if monthOf(k.day) > month {
			sums[countKey{project: k.project, day: k.day, of: fabric.CountedMonthly}]++
		}
	}
	return nil
}

// sortedKeys returns the keys in a fixed order, so that nodes do not deadlock.
func sortedKeys(sums map[countKey]int64) []countKey {
	keys := slices.Collect(maps.Keys(sums))
	slices.SortFunc(keys, func(x, y countKey) int {
		return strings.Compare(fmt.Sprint(x.project, x.day, x.of), fmt.Sprint(y.project, y.day, y.of))
	})
	return keys
}

// ListCounts returns the counts of a project from a day on, oldest first.
func (s *Counts) ListCounts(ctx context.Context, projectID string, from time.Time) ([]fabric.DailyCount, error) {
	scan := func(row scanner) (fabric.DailyCount, error) {
		var day int64
		c := fabric.DailyCount{ProjectID: projectID}
		if err := row.Scan(&day, &c.Of, &c.N); err != nil {
			return c, err
		}
		c.Day = time.Unix(day*secondsPerDay, 0).UTC()
		return c, nil
	}
	return gather(ctx, s.read(), "listing daily counts", scan, `SELECT day, what, n FROM daily_counts
		WHERE project_id = $1 AND day >= $2 ORDER BY day, what`, projectID, dayOf(from))
}

// SweepCounts deletes counts older than keepCounts.
func (s *Counts) SweepCounts(ctx context.Context) error {
	return s.sweep(ctx, `DELETE FROM daily_counts WHERE (project_id, day, what) IN (
		SELECT project_id, day, what FROM daily_counts WHERE day < $2 LIMIT $1)`, dayOf(s.now().Add(-keepCounts)))
}
