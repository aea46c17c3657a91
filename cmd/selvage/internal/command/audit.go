package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/span"
)

// eventJSON is an event in JSON. With lane, seq and hash, another program can verify the chain.
type eventJSON struct {
	ID         string            `json:"id"`
	At         time.Time         `json:"at"`
	ProjectID  string            `json:"project_id,omitempty"`
	Action     string            `json:"action"`
	Outcome    audit.Outcome     `json:"outcome"`
	ActorKind  audit.ActorKind   `json:"actor_kind"`
	ActorID    string            `json:"actor_id,omitempty"`
	TargetKind string            `json:"target_kind"`
	TargetID   string            `json:"target_id,omitempty"`
	Address    string            `json:"address,omitempty"`
	RequestID  string            `json:"request_id,omitempty"`
	Detail     map[string]string `json:"detail,omitempty"`
	Lane       int               `json:"lane"`
	Seq        int64             `json:"seq"`
	Hash       string            `json:"hash"`
}

func newEventJSON(e audit.Event) eventJSON {
	return eventJSON{
		ID:         e.ID,
		At:         e.At.UTC(),
		ProjectID:  e.ProjectID,
		Action:     e.Action,
		Outcome:    e.Outcome,
		ActorKind:  e.Actor.Kind,
		ActorID:    e.Actor.ID,
		TargetKind: e.Target.Kind,
		TargetID:   e.Target.ID,
		Address:    e.Address,
		RequestID:  e.RequestID,
		Detail:     e.Detail,
		Lane:       e.Lane,
		Seq:        e.Seq,
		Hash:       e.Hash,
	}
}

var eventView = cli.View[audit.Event]{
	ID:   func(e audit.Event) string { return e.ID },
	JSON: func(e audit.Event) any { return newEventJSON(e) },
	Facts: []cli.Fact[audit.Event]{
		{Name: "At", Value: func(e audit.Event) string { return e.At.Local().Format("2006-01-02 15:04:05") }},
		{Name: "Action", Value: func(e audit.Event) string { return e.Action }},
		{Name: "Outcome", Value: func(e audit.Event) string { return string(e.Outcome) }},
		{
			Name: "Actor",
			Value: func(e audit.Event) string {
				return strings.TrimSpace(string(e.Actor.Kind) + " " + e.Actor.ID)
			},
		},
		{
			Name: "Target",
			Value: func(e audit.Event) string {
				return strings.TrimSpace(e.Target.Kind + " " + e.Target.ID)
			},
		},
		{Name: "Address", Value: func(e audit.Event) string { return e.Address }},
		{Name: "Request", Minor: true, Value: func(e audit.Event) string { return e.RequestID }},
		{Name: "Detail", Value: func(e audit.Event) string { return e.DetailText() }},
	},
}

// auditCommands builds the commands for the audit trail.
type auditCommands struct{ *commands }

func (c auditCommands) command() *cobra.Command {
	ls := c.listCommand()
	export := c.exportCommand()
	addAuditFilter(ls.Flags())
	addAuditFilter(export.Flags())
	return cli.Noun("audit", "The audit trail: every change and refusal, and who caused it",
		ls, c.verifyCommand(), export)
}

func (c auditCommands) listCommand() *cobra.Command {
	ls := cli.Command("list", "List changes and refusals, and who caused them", c.with(c.listAudit))
	ls.Long = `List events of the audit trail in order, newest last: the last hundred or, with --since, all since
that time. With --follow, new events are printed until the command is interrupted.`
	ls.Flags().Bool("follow", false, "print new events as they happen")
	ls.Flags().Int("limit", 100, "maximum `number` of events; only the newest are listed")
	return ls
}

func (c auditCommands) verifyCommand() *cobra.Command {
	verify := cli.Command("verify", "Verify the chains of the audit trail", c.with(c.verifyAudit))
	verify.Long = `Verify that no event was changed, removed or inserted, and print how many there are. If a chain is
broken, the command prints where and exits with status 1.

The command also prints the end of each chain. If you keep these elsewhere, a later verify with
--end LANE:SEQ:HASH checks that the event at that position is unchanged. This detects a database that was
restored to an earlier state.`
	verify.Flags().StringSlice("end", nil, "an `end`, LANE:SEQ:HASH, that an earlier verify printed; repeatable")
	return verify
}

func (c auditCommands) exportCommand() *cobra.Command {
	export := cli.Command("export", "Write the audit trail for other programs, oldest first",
		c.with(c.exportAudit))
	export.Long = `Write all events, or those that match the filters, as JSON objects, one per line, or as CSV. CSV
cells are escaped so that spreadsheets do not treat them as formulas. actor_name and target_name are the
current names of the actor and the target. They are not part of the hash chain.`
	export.Flags().String("format", "jsonl", "`jsonl` or csv")
	return export
}

// addAuditFilter adds the flags that auditFilter reads.
func addAuditFilter(f *pflag.FlagSet) {
	f.String("project", "", "only events of the `project` with this id")
	f.String("action", "",
		"only this `action`, such as client.updated, or all actions with this prefix, such as client")
	f.String("outcome", "", "only this `outcome`: done or refused")
	f.String("actor", "", "only events whose actor has this `id`")
	f.String("target", "", "only events whose target has this `id`")
	f.String("since", "", "from this `time` on: 2030-01-31, 2030-01-31T12:00:00Z, or an age, such as 2h or 7d")
	f.String("until", "", "before this `time`")
}

// auditFilter returns the filter that the flags describe.
func auditFilter(cmd *cobra.Command, now time.Time) (f audit.Filter, err error) {
	get := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
	f = audit.Filter{
		ProjectID: get("project"),
		Action:    get("action"),
		Outcome:   audit.Outcome(get("outcome")),
		Actor:     get("actor"),
		Target:    get("target"),
	}
	if f.Outcome != "" && f.Outcome != audit.Done && f.Outcome != audit.Refused {
		return f, cli.Usagef("--outcome must be done or refused; it is %q", f.Outcome)
	}

	var sinceErr, untilErr error
	f.Since, sinceErr = parseTime("since", get("since"), now)
	f.Until, untilErr = parseTime("until", get("until"), now)
	return f, errors.Join(sinceErr, untilErr)
}

// parseTime parses the value of a flag: a time, a day, or an age such as 2h.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	ago := span.Span{Most: 100 * 365 * span.Day}
	if ago.Set(text) == nil {
		return now.Add(-ago.Length), nil
	}

	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, cli.Usagef(
			"--%s needs a time, such as 2030-01-31, 2030-01-31T12:00:00Z, 2h or 7d; it is %q", flag, text)
	}
	return parsed, nil
}

// listAudit prints the newest events, and with --follow those that happen afterwards.
func (c auditCommands) listAudit(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	f, err := auditFilter(cmd, time.Now())
	if err != nil {
		return err
	}
	limit, _ := cmd.Flags().GetInt("limit")
	if limit < 1 {
		return cli.Usagef("--limit must be at least 1; it is %d", limit)
	}
	if !f.Since.IsZero() && !cmd.Flags().Changed("limit") {
		limit = 1 << 30 // no limit
	}

	ends, err := a.Store.AuditHeads(ctx) // read before the events, so that --follow misses none
	if err != nil {
		return err
	}
	events, err := lastEvents(ctx, a, f, limit)
	if err != nil {
		return err
	}
	if follow, _ := cmd.Flags().GetBool("follow"); follow {
		return c.followAudit(ctx, a, f, events, ends)
	}
	return cli.List(c.Env, eventView, events)
}

// lastEvents returns the newest events that match f, at most limit of them, oldest first.
func lastEvents(ctx context.Context, a *app, f audit.Filter, limit int) (events []audit.Event, err error) {
	q := page.Query{}
	for {
		q.Size = min(page.MaxSize, limit-len(events))
		found, err := a.Store.ListAudit(ctx, f, q)
		if err != nil {
			return nil, err
		}
		events = append(events, found.Items...)
		if found.Next == "" || len(events) >= limit {
			slices.Reverse(events)
			return events, nil
		}
		q.From = found.Next
	}
}

// pollInterval is the time between two reads with --follow.
const pollInterval = 500 * time.Millisecond

// followAudit prints events up to ends, and then everything after ends until ctx is done.
func (c auditCommands) followAudit(
	ctx context.Context, a *app, f audit.Filter, events []audit.Event, ends []audit.Head,
) error {
	seen := make(map[int]int64) // the last sequence number of each lane
	for _, end := range ends {
		seen[end.Lane] = end.Seq
	}
	for _, e := range events {
		if e.Seq > seen[e.Lane] {
			continue // the loop below prints it
		}
		if err := c.printEvent(e); err != nil {
			return err
		}
	}

	for {
		fresh, err := readAfter(ctx, a, seen)
		if err != nil {
			return err
		}

		for _, e := range fresh {
			if !f.Fits(e) {
				continue
			}
			if err := c.printEvent(e); err != nil {
				return err
			}
		}

		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollInterval):
		}
	}
}

// readAfter returns the events after the sequence numbers in seen, in the order in which they
// happened. It updates seen.
func readAfter(ctx context.Context, a *app, seen map[int]int64) ([]audit.Event, error) {
	var fresh []audit.Event
	for lane, seq := range seen {
		more, err := a.Store.ReadLane(ctx, lane, seq, page.MaxSize)
		if err != nil {
			return nil, err
		}
		if len(more) > 0 {
			seen[lane] = more[len(more)-1].Seq
		}
		fresh = append(fresh, more...)
	}
	slices.SortFunc(fresh, func(a, b audit.Event) int { return strings.Compare(a.ID, b.ID) })
	return fresh, nil
}

// printEvent prints one event on a line.
func (c auditCommands) printEvent(e audit.Event) error {
	switch c.Output {
	case "id":
		return cli.PrintIDs(c.Env, eventView.ID, e)
	case "json":
		return c.PrintJSON(newEventJSON(e))
	}
	var cells []string
	for _, f := range eventView.Facts {
		if text := f.Value(e); text != "" {
			cells = append(cells, cli.Sanitize(text))
		}
	}
	_, err := fmt.Fprintln(c.Stdout, strings.Join(cells, "  "))
	return err
}
