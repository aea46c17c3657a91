package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
)

// SaveOutbound writes the record of a call through a gateway, unless admit returns an error for the
// usage by other calls; SaveOutbound then returns that error. If the call already has a record,
// SaveOutbound only writes its gateway, payer and lines, and when its outbound part began.
// SaveOutbound locks the project, so that concurrent calls count each other.
func (s *Calls) SaveOutbound(ctx context.Context, r calls.Record, admit func(calls.Usage) error) error {
	return s.change(ctx, callEvent(r), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE projects SET updated = updated WHERE id = $1`, r.ProjectID)
		if err = requireRow(res, err, "project"); err != nil {
			return err
		}

		u, err := t.usage(ctx, r, s.now(), r.Key)
		if err == nil {
			err = admit(u)
		}
		if err != nil {
			return err
		}

		res, err = t.Exec(ctx, `UPDATE calls SET gateway = $3, payer = $4, lines = $5, outbound_from = $6
			WHERE id = $1 AND node = $2 AND ended = 0`,
			r.Key, r.Node, r.Gateway, r.Payer, int64(r.Lines), micros(r.OutboundFrom))
		if err = requireRow(res, err, "call"); !errors.Is(err, problem.NotFound) {
			return err
		}
		_, err = t.saveCall(ctx, r)
		return err
	})
}

// OutboundUsage returns the usage of the payer, the project and the gateway of a call. If there is
// no such call, the usage is zero.
func (s *Calls) OutboundUsage(ctx context.Context, projectID, id string) (calls.Usage, error) {
	t := s.read()
	r, err := callTable.find(ctx, t, `project_id = $1 AND call_id = $2`, projectID, id)
	if err != nil {
		return calls.Usage{}, problem.IgnoreNotFound(err)
	}
	return t.usage(ctx, r, s.now(), "")
}

// usage adds up the calls through gateways that began in a project in the last day. It leaves out the
// call with the key except.
func (t tx) usage(ctx context.Context, r calls.Record, now time.Time, except string) (u calls.Usage, err error) {
	const from = `(CASE WHEN outbound_from > 0 THEN outbound_from ELSE answered END)`
	const connected = `CASE WHEN answered = 0 THEN 0 WHEN ended = 0 THEN $5 - ` + from + `
		ELSE ended - ` + from + ` END`
	const begun = `(created >= $6 OR outbound_from >= $6)`
	const its = `(payer = $3 OR payer = '' AND $3 IN (from_subscriber, guest))`
	sum := func(condition string) string {
		return `CAST(COALESCE(SUM(CASE WHEN ` + condition + ` THEN lines ELSE 0 END), 0) AS BIGINT)`
	}

	var daily, projectDaily int64
	err = t.Row(ctx, `SELECT
			`+sum(`ended = 0 AND `+its)+`, `+sum(`ended = 0`)+`, `+sum(`ended = 0 AND gateway = $7`)+`,
			`+sum(begun+` AND `+its)+`, `+sum(begun)+`,
			CAST(COALESCE(SUM(CASE WHEN `+its+` THEN `+connected+` ELSE 0 END), 0) AS BIGINT),
			CAST(COALESCE(SUM(`+connected+`), 0) AS BIGINT)
		FROM calls WHERE project_id = $1 AND id >= $2 AND gateway <> '' AND id <> $4`,
		r.ProjectID, calls.FirstKey(now.Add(-24*time.Hour)), r.Payer, except,
		micros(now), micros(now.Add(-time.Hour)), r.Gateway).Scan(
		&u.Running, &u.ProjectRunning, &u.GatewayRunning, &u.Hourly, &u.ProjectHourly, &daily, &projectDaily)
	if err != nil {
		return u, fmt.Errorf("counting calls through gateways: %w", err)
	}
	u.Daily, u.ProjectDaily = time.Duration(daily)*time.Microsecond, time.Duration(projectDaily)*time.Microsecond
	return u, nil
}
