package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
)

// SaveOutbound writes the record of a new call through a gateway, unless admit returns an error. It
// locks the project, so that concurrent calls see each other.
func (s *Calls) SaveOutbound(ctx context.Context, r calls.Record, admit func(calls.Usage) error) error {
	return s.change(ctx, callEvent(r), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE projects SET updated = updated WHERE id = $1`, r.ProjectID)
		if err := requireRow(res, err, "project"); err != nil {
			return err
		}
		u, err := t.usage(ctx, r, s.now())
		if err == nil {
			err = admit(u)
		}
		if err != nil {
			return err
		}
		return t.saveCall(ctx, r)
	})
}

// OutboundUsage returns what the caller and the project of a call have used.
func (s *Calls) OutboundUsage(ctx context.Context, projectID, id string) (calls.Usage, error) {
	t := s.read()
	r, err := callTable.find(ctx, t, `project_id = $1 AND call_id = $2`, projectID, id)
	if err != nil {
		return calls.Usage{}, problem.IgnoreNotFound(err)
	}
	return t.usage(ctx, r, s.now())
}

// usage sums up the calls of the last day through gateways. A caller is a subscriber or, if the call
// has none, the holder of a guest token.
func (t tx) usage(ctx context.Context, r calls.Record, now time.Time) (u calls.Usage, err error) {
	const connected = `CASE WHEN answered = 0 THEN 0 WHEN ended = 0 THEN $5 - answered ELSE ended - answered END`
	const its = `from_subscriber = $3 AND guest = $4`
	var daily, projectDaily int64
	err = t.Row(ctx, `SELECT
			COUNT(CASE WHEN ended = 0 AND `+its+` THEN 1 END), COUNT(CASE WHEN ended = 0 THEN 1 END),
			COUNT(CASE WHEN ended = 0 AND gateway = $7 THEN 1 END),
			COUNT(CASE WHEN created >= $6 AND `+its+` THEN 1 END), COUNT(CASE WHEN created >= $6 THEN 1 END),
			CAST(COALESCE(SUM(CASE WHEN `+its+` THEN `+connected+` ELSE 0 END), 0) AS BIGINT),
			CAST(COALESCE(SUM(`+connected+`), 0) AS BIGINT)
		FROM calls WHERE project_id = $1 AND id >= $2 AND gateway <> ''`,
		r.ProjectID, calls.FirstKey(now.Add(-24*time.Hour)), r.From.SubscriberID, r.Guest,
		micros(now), micros(now.Add(-time.Hour)), r.Gateway).Scan(
		&u.Running, &u.ProjectRunning, &u.GatewayRunning, &u.Hourly, &u.ProjectHourly, &daily, &projectDaily)
	if err != nil {
		return u, fmt.Errorf("counting calls through gateways: %w", err)
	}
	u.Daily, u.ProjectDaily = time.Duration(daily)*time.Microsecond, time.Duration(projectDaily)*time.Microsecond
	return u, nil
}
