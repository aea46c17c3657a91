package command

import (
	"context"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/span"
	"github.com/spf13/cobra"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An auditEvent is an event in JSON. Its place and hash let somebody else keep watch over
// the chain.
type auditEvent struct {
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

func showEvent(e audit.Event) auditEvent {
	return auditEvent{
		e.ID, e.At.UTC(), e.ProjectID, e.Action, e.Outcome, e.Actor.Kind, e.Actor.ID, e.Target.Kind,
		e.Target.ID, e.Address, e.RequestID, e.Detail, e.Lane, e.Seq, e.Hash,
	}
}

var auditEvents = cli.View[audit.Event]{
	ID:   func(e audit.Event) string { return e.ID },
	JSON: func(e audit.Event) any { return showEvent(e) },
	Facts: []cli.Fact[audit.Event]{
		{Name: "At", Value: func(e audit.Event) string { return e.At.Local().Format("2006-01-02 15:04:05") }},
		{Name: "Action", Value: func(e audit.Event) string { return e.Action }},
		{Name: "Outcome", Value: func(e audit.Event) string { return string(e.Outcome) }},
		{Name: "Actor", Value: func(e audit.Event) string {
			return strings.TrimSpace(string(e.Actor.Kind) + " " + e.Actor.ID)
		}},
		{Name: "Target", Value: func(e audit.Event) string {
			return strings.TrimSpace(e.Target.Kind + " " + e.Target.ID)
		}},
		{Name: "Address", Value: func(e audit.Event) string { return e.Address }},
		{Name: "Request", Minor: true, Value: func(e audit.Event) string { return e.RequestID }},
		{Name: "Detail", Value: func(e audit.Event) string { return e.DetailText() }},
	},
}

func (c *commands) auditCommand() *cobra.Command {
	ls := &cobra.Command{
		Use: "list", Short: "List what was done, by whom, and what was refused",
		Long: "Lists events of the audit trail in their order, the newest last: the last hundred, or with --since all from then on.\n" +
			"With --follow it goes on with what happens, until it is ended.",
		Args: cli.NoArguments, RunE: c.with(c.listAudit),
	}
	ls.Flags().Bool("follow", false, "go on with what happens")
	ls.Flags().Int("limit", 100, "how many events at most, the newest")
	verify := &cobra.Command{
		Use: "verify", Short: "Walk the chains of the audit trail, and tell where they are broken",
		Long: "Walks the chains and tells how many events there are, and where one was changed, taken out or put in. The exit status is then 1.\n" +
			"The ends that it prints can be kept elsewhere: with --end LANE:SEQ:HASH it also tells whether the event there is still the same,\n" +
			"which shows a database that was put back to an earlier state.",
		Args: cli.NoArguments, RunE: c.with(c.verifyAudit),
	}
	verify.Flags().StringSlice("end", nil, "an `end`, LANE:SEQ:HASH, that an earlier verify has printed; any number")
	export := &cobra.Command{
		Use: "export", Short: "Write the audit trail for other programs, the oldest first",
		Long: "Writes all events, or those of the filters, as a JSON object a line, or as CSV whose cells no spreadsheet takes for a formula.",
		Args: cli.NoArguments, RunE: c.with(c.exportAudit),
	}
	export.Flags().String("format", "jsonl", "`jsonl` or csv")
	for _, cmd := range []*cobra.Command{ls, export} {
		f := cmd.Flags()
		f.String("project", "", "only those of a `project`, its id")
		f.String("action", "", "only an `action`, such as login or client.updated, or client for all of that kind")
		f.String("outcome", "", "only those that were done, or refused")
		f.String("actor", "", "only those of an actor, by its `id`")
		f.String("target", "", "only those done to something, by its `id`")
		f.String("since", "", "from a `time` on: 2030-01-31, 2030-01-31T12:00:00Z, or how long ago, such as 2h or 7d")
		f.String("until", "", "before a `time`")
	}
	return cli.Noun("audit", "The audit trail: what was done, by whom, and what was refused", ls, verify, export)
}

// auditFilter returns what the flags say.
func auditFilter(cmd *cobra.Command, now time.Time) (f audit.Filter, err error) {
	get := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
	f = audit.Filter{ProjectID: get("project"), Action: get("action"), Outcome: audit.Outcome(get("outcome")),
		Actor: get("actor"), Target: get("target")}
	if f.Outcome != "" && f.Outcome != audit.Done && f.Outcome != audit.Refused {
		return f, cli.Usagef("--outcome is done or refused; it is %q", f.Outcome)
	}
	var errs []error
	for name, at := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if *at, err = when(get(name), now); err != nil {
			errs = append(errs, cli.Usagef("--%s needs a time, such as 2030-01-31, 2030-01-31T12:00:00Z, 2h or 7d; it is %q", name, get(name)))
		}
	}
	return f, errors.Join(errs...)
}

// when reads a time, or how long ago it was.
func when(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	ago := span.Span{Most: 100 * 365 * span.Day}
	if ago.Set(text) == nil {
		return now.Add(-ago.Length), nil
	}
	if at, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return at, nil
	}
	return time.Parse(time.RFC3339, text)
}

func (c *commands) listAudit(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	f, err := auditFilter(cmd, time.Now())
	if err != nil {
		return err
	}
	limit, _ := cmd.Flags().GetInt("limit")
	if limit < 1 {
		return cli.Usagef("--limit needs a number from 1 on; it is %d", limit)
	}
	if !f.Since.IsZero() && !cmd.Flags().Changed("limit") {
		limit = 1 << 30
	}
	ends, err := a.Store.AuditHeads(ctx) // before the events: what comes behind is followed
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
	return cli.List(c.Env, auditEvents, events)
}

// lastEvents returns the newest events, in their order.
func lastEvents(ctx context.Context, a *app, f audit.Filter, limit int) (events []audit.Event, err error) {
	q := page.Query{}
	for {
		q.Size = min(page.MaxSize, limit-len(events))
		p, err := a.Store.ListAudit(ctx, f, q)
		if err != nil {
			return nil, err
		}
		events = append(events, p.Items...)
		if p.Next == "" || len(events) >= limit {
			slices.Reverse(events)
			return events, nil
		}
		q.From = p.Next
	}
}

// followEvery is how often it is looked for what has happened.
const followEvery = 500 * time.Millisecond

// followAudit prints events, and then what is behind the ends, until ctx ends.
func (c *commands) followAudit(ctx context.Context, a *app, f audit.Filter, events []audit.Event, ends []audit.Head) error {
	behind := make(map[int]int64)
	for _, end := range ends {
		behind[end.Lane] = end.Seq
	}
	for _, e := range events {
		if e.Seq <= behind[e.Lane] {
			if err := c.printEvent(e); err != nil {
				return err
			}
		}
	}
	for {
		var fresh []audit.Event
		for _, end := range ends {
			more, err := a.Store.ReadLane(ctx, end.Lane, behind[end.Lane], page.MaxSize)
			if err != nil {
				return err
			}
			if len(more) > 0 {
				behind[end.Lane] = more[len(more)-1].Seq
			}
			fresh = append(fresh, more...)
		}
		slices.SortFunc(fresh, func(a, b audit.Event) int { return strings.Compare(a.ID, b.ID) })
		for _, e := range fresh {
			if f.Fits(e) {
				if err := c.printEvent(e); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
}

// printEvent prints one event of many, each on a line.
func (c *commands) printEvent(e audit.Event) error {
	switch c.Output {
	case "id":
		return cli.PrintIDs(c.Env, auditEvents.ID, e)
	case "json":
		return c.PrintJSON(showEvent(e))
	}
	var cells []string
	for _, f := range auditEvents.Facts {
		if text := f.Value(e); text != "" {
			cells = append(cells, cli.Sanitize(text))
		}
	}
	_, err := fmt.Fprintln(c.Stdout, strings.Join(cells, "  "))
	return err
}

func (c *commands) verifyAudit(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	expected, _ := cmd.Flags().GetStringSlice("end")
	r, err := a.Store.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	for _, text := range expected {
		broken, err := checkEnd(ctx, a, text)
		if err != nil {
			return err
		}
		if broken != nil {
			r.Broken = append(r.Broken, broken)
		}
	}
	if err := c.printReport(r); err != nil || len(r.Broken) == 0 {
		return err
	}
	return fmt.Errorf("the audit trail is broken: %w", errors.Join(r.Broken...))
}

// checkEnd tells whether the event at an end that somebody has kept is still the same.
func checkEnd(ctx context.Context, a *app, text string) (broken, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return nil, cli.Usagef("--end is LANE:SEQ:HASH; it is %q", text)
	}
	lane, laneErr := strconv.Atoi(parts[0])
	seq, seqErr := strconv.ParseInt(parts[1], 10, 64)
	if laneErr != nil || seqErr != nil {
		return nil, cli.Usagef("--end is LANE:SEQ:HASH; it is %q", text)
	}
	heads, err := a.Store.AuditHeads(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range heads {
		if h.Lane == lane && (seq < h.PrunedSeq || seq == h.PrunedSeq && parts[2] == h.PrunedHash) {
			return nil, nil // it was pruned, as the code of what was says
		}
	}
	events, err := a.Store.ReadLane(ctx, lane, seq-1, 1)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 || events[0].Seq != seq || events[0].Hash != parts[2] {
		return &audit.Break{Lane: lane, Seq: seq, What: "it is not the one that --end says"}, nil
	}
	return nil, nil
}
