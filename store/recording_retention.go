package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

var ruleTable = table[recordings.Rule]{
	name:    "retention_rules",
	thing:   "retention rule",
	columns: `id, project_id, tag, subscriber_id, days, created`,
	fields: func(u *recordings.Rule) []any {
		return []any{&u.ID, &u.ProjectID, &u.Tag, &u.SubscriberID, &u.Days, &u.Created}
	},
}

// AddRule inserts a retention rule. limit is the maximum number of rules of a project. If the project
// already has that many, the error is problem.Invalid. If it has a rule with the same tag and
// subscriber, the error is problem.Conflict.
func (s *Recordings) AddRule(ctx context.Context, u recordings.Rule, limit int) error {
	e := audit.Of("retention_rule.created", u.ProjectID, "retention rule", u.ID).With(
		"tag", u.Tag, "subscriber", u.SubscriberID, "days", strconv.Itoa(u.Days))
	return s.change(ctx, e, func(t tx) error {
		// Concurrent changes that add a rule to the same project wait here for one another, so that
		// each of them counts the others' rules.
		res, err := t.Exec(ctx, `UPDATE projects SET updated = updated WHERE id = $1`, u.ProjectID)
		if err = requireRow(res, err, "project"); err != nil {
			return err
		}
		var n int
		err = t.Row(ctx, `SELECT COUNT(*) FROM retention_rules WHERE project_id = $1`, u.ProjectID).Scan(&n)
		if err != nil {
			return fmt.Errorf("counting retention rules: %w", err)
		}
		if n >= limit {
			return problem.New(problem.Invalid, "too_many", "a project can have at most %d retention rules", limit)
		}
		err = ruleTable.insert(ctx, t, &u, "project")
		if isUnique(err) {
			return problem.New(problem.Conflict, "conflict",
				"there is a rule with this tag and subscriber; remove it first")
		}
		return err
	})
}

// ListRules returns the retention rules of a project, or of all projects.
func (s *Recordings) ListRules(ctx context.Context, projectID string) ([]recordings.Rule, error) {
	return ruleTable.gather(ctx, s.read(), `WHERE project_id = $1 OR $1 = '' ORDER BY id`, projectID)
}

// DeleteRule deletes a retention rule of a project.
func (s *Recordings) DeleteRule(ctx context.Context, projectID, id string) error {
	e := audit.Of("retention_rule.deleted", projectID, "retention rule", id)
	return s.change(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `DELETE FROM retention_rules WHERE project_id = $1 AND id = $2`, projectID, id)
		return requireRow(res, err, "retention rule")
	})
}

// ListKept returns at most n recordings that a retention rule may delete, oldest first. Their ids
// are between after and before. They are not on hold, and not waiting for their media.
func (s *Recordings) ListKept(
	ctx context.Context, projectID, after, before string, n int,
) ([]recordings.Kept, error) {
	scan := func(row scanner) (k recordings.Kept, err error) {
		err = row.Scan(&k.ID, &k.Sid, scanTarget(&k.Tags), &k.Bytes, scanTarget(&k.Created), scanTarget(&k.Updated))
		return k, err
	}
	kept, err := gather(ctx, s.read(), "listing recordings to keep", scan, `SELECT id, sid, tags, bytes,
			created, updated
		FROM recordings WHERE project_id = $1 AND deleted = 0 AND id > $2 AND id < $3 AND waits = 0 AND hold = ''
		ORDER BY id LIMIT $4`, projectID, after, before, n)
	if err != nil {
		return nil, err
	}
	if len(kept) == 0 {
		return nil, nil
	}
	return kept, s.addSubscribers(ctx, kept)
}

// addSubscribers sets the ids of the subscribers that own each of the recordings.
func (s *Recordings) addSubscribers(ctx context.Context, kept []recordings.Kept) error {
	byID := make(map[string]*recordings.Kept, len(kept))
	var w where
	var ids []string
	for i := range kept {
		k := &kept[i]
		byID[k.ID] = k
		ids = append(ids, k.ID)
	}
	w.in("recording_id", ids)

	type tie struct{ recording, subscriber string }
	scan := func(row scanner) (t tie, err error) {
		err = row.Scan(&t.recording, &t.subscriber)
		return t, err
	}
	ties, err := gather(ctx, s.read(), "listing owners of recordings", scan,
		`SELECT recording_id, subscriber_id FROM recording_subscribers WHERE `+w.String(), w.args...)
	if err != nil {
		return err
	}
	for _, t := range ties {
		k := byID[t.recording]
		k.SubscriberIDs = append(k.SubscriberIDs, t.subscriber)
	}
	return nil
}

// stubBatch is the maximum number of stubs that SweepRecordings deletes in one transaction. A stub is
// in many indexes, so deleting it takes longer than deleting other rows.
const stubBatch = 20

// SweepRecordings deletes the stubs of recordings that were deleted before the given time. It adds
// the usage in these stubs to the usage of their projects.
func (s *Recordings) SweepRecordings(ctx context.Context, before time.Time) error {
	for {
		n := 0
		err := s.change(ctx, audit.None("stubs of deleted recordings"), func(t tx) (err error) {
			n, err = t.recordings().sweepStubs(ctx, before)
			return err
		})
		if err != nil {
			return err
		}
		if n < stubBatch {
			return nil
		}
	}
}

// sweepStubs deletes a batch of stubs, and returns their number.
func (t recordingTx) sweepStubs(ctx context.Context, before time.Time) (n int, err error) {
	type key struct {
		project string
		day     int64
	}
	type stub struct {
		project string
		usage   recordings.Usage
	}
	scan := func(row scanner) (u stub, err error) {
		err = row.Scan(&u.project, scanTarget(&u.usage.Day), &u.usage.Seconds, &u.usage.Bytes, &u.usage.Price)
		return u, err
	}
	stubs, err := gather(ctx, t.tx, "deleting stubs", scan, `DELETE FROM recordings WHERE id IN (
			SELECT id FROM recordings WHERE deleted <> 0 AND deleted < $1 ORDER BY deleted LIMIT $2)
		RETURNING project_id, created, `+secondsSQL+`, bytes, `+priceSQL, micros(before), stubBatch)
	if err != nil {
		return 0, err
	}

	sums := make(map[key][]recordings.Usage)
	for _, u := range stubs {
		if u.usage.Bytes > 0 {
			k := key{u.project, dayOf(u.usage.Day)}
			u.usage.Recordings = 1
			sums[k] = append(sums[k], u.usage)
		}
	}

	// Concurrent sweeps lock the rows in the same order, so that they do not deadlock.
	byProjectAndDay := func(a, b key) int {
		return cmp.Or(strings.Compare(a.project, b.project), cmp.Compare(a.day, b.day))
	}
	for _, k := range slices.SortedFunc(maps.Keys(sums), byProjectAndDay) {
		sum := recordings.SumUsage(sums[k])
		err := t.Later(ctx, `INSERT INTO recording_usage (project_id, day, recordings, seconds, bytes, price)
			VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (project_id, day) DO UPDATE SET
				recordings = recording_usage.recordings + excluded.recordings,
				seconds = recording_usage.seconds + excluded.seconds,
				bytes = recording_usage.bytes + excluded.bytes, price = recording_usage.price + excluded.price`,
			k.project, k.day, sum.Recordings, sum.Seconds, sum.Bytes, sum.Price)
		if err != nil {
			return 0, fmt.Errorf("adding up usage: %w", err)
		}
	}
	return len(stubs), nil
}

// SQL for the seconds and the price of a recording, as [recordings.Recording] computes them.
const (
	secondsSQL = `CASE WHEN frames = 0 OR sample_rate = 0 THEN 0
		WHEN (2 * frames + sample_rate) / (2 * sample_rate) = 0 THEN 1
		ELSE (2 * frames + sample_rate) / (2 * sample_rate) END`
	priceSQL = `CASE WHEN status = 'completed' THEN price ELSE 0 END`
)

// storedSQL is the number of stored bytes that a recording accounts for.
const storedSQL = `CASE WHEN deleted <> 0 THEN 0 ELSE ` + liveSQL + ` END`

// liveSQL is like storedSQL, for a recording that is not deleted. If several recordings share media,
// one of them accounts for all bytes: the recording whose id is the key or, if that was deleted, the
// oldest one.
const liveSQL = `CASE WHEN media_key IS NULL THEN bytes
	WHEN EXISTS (SELECT 1 FROM recordings o
		WHERE o.id = recordings.media_key AND o.media_key IS NULL AND o.deleted = 0) THEN 0
	WHEN EXISTS (SELECT 1 FROM recordings o
		WHERE o.media_key = recordings.media_key AND o.id < recordings.id AND o.deleted = 0) THEN 0
	ELSE bytes END`

// createdDay is the day on which a recording was created. The index recordings_usage contains the
// same expression, so that the rows of a day need no sorting.
const createdDay = `(created / 86400000000)`

// ListUsage returns the usage of a project by day, in the given period.
func (s *Recordings) ListUsage(
	ctx context.Context, projectID string, from, before time.Time,
) ([]recordings.Usage, error) {
	scan := func(row scanner) (u recordings.Usage, err error) {
		var day int64
		err = row.Scan(&day, &u.Recordings, &u.Seconds, &u.Bytes, &u.Price, &u.Stored)
		u.Day = time.Unix(day*secondsPerDay, 0).UTC()
		return u, err
	}

	// PostgreSQL sums up BIGINT as NUMERIC.
	sum := func(of string) string { return `CAST(SUM(` + of + `) AS BIGINT)` }
	columns := strings.Join([]string{
		sum("recordings"), sum("seconds"), sum("bytes"), sum("price"), sum("stored"),
	}, ", ")
	return gather(ctx, s.read(), "adding up usage", scan, `SELECT day, `+columns+`
		FROM (SELECT `+createdDay+` AS day, COUNT(*) AS recordings, SUM(`+secondsSQL+`) AS seconds,
				SUM(bytes) AS bytes, SUM(`+priceSQL+`) AS price, SUM(`+storedSQL+`) AS stored
			FROM recordings WHERE project_id = $1 AND `+createdDay+` >= $2 AND `+createdDay+` < $3 AND bytes > 0
			GROUP BY `+createdDay+`
		UNION ALL SELECT day, recordings, seconds, bytes, price, 0 FROM recording_usage
			WHERE project_id = $1 AND day >= $2 AND day < $3) AS parts
		GROUP BY day ORDER BY day`,
		projectID, dayOf(from), dayOf(before))
}
