package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/page"
)

var callView = cli.View[calls.Record]{
	ID:   func(r calls.Record) string { return r.ID },
	JSON: func(r calls.Record) any { return r.Document() },
	Facts: []cli.Fact[calls.Record]{
		{Name: "ID", Value: func(r calls.Record) string { return r.ID }},
		{Name: "Project", Detail: true, Value: func(r calls.Record) string { return r.ProjectID }},
		{Name: "State", Value: func(r calls.Record) string { return string(r.State) }},
		{Name: "From", Value: func(r calls.Record) string { return formatParty(r.From) }},
		{Name: "To", Value: func(r calls.Record) string { return formatParty(r.To) }},
		{Name: "Caller", Detail: true, Value: func(r calls.Record) string { return r.From.Name }},
		{Name: "Callee", Detail: true, Value: func(r calls.Record) string { return r.To.Name }},
		{Name: "Began", Minor: true, Value: func(r calls.Record) string { return cli.FormatTime(r.Created) }},
		{Name: "Answered", Detail: true, Value: func(r calls.Record) string { return cli.FormatTime(r.Answered) }},
		{Name: "Ended", Detail: true, Value: func(r calls.Record) string { return cli.FormatTime(r.Ended) }},
		{Name: "Length", Value: formatTalkTime},
		{Name: "Reason", Value: calls.Record.Reason},
		{Name: "Cause", Detail: true, Value: func(r calls.Record) string { return r.Cause.Text }},
		{Name: "Video", Detail: true, Value: func(r calls.Record) string { return cli.YesNo(r.Video) }},
		{Name: "Recording", Detail: true, Value: func(r calls.Record) string { return r.RecordingSid }},
		{Name: "Quality", Detail: true, Value: formatQuality},
	},
}

// formatParty returns the address of a party, or the party's name if it has no address.
func formatParty(p calls.Party) string {
	if p.Address == "" {
		return p.Name
	}
	return p.Address
}

// formatTalkTime returns how long the parties were connected, or "" if nobody answered.
func formatTalkTime(r calls.Record) string {
	if r.Answered.IsZero() {
		return ""
	}
	return r.Duration(time.Now()).Round(time.Second).String()
}

// formatQuality formats the measurements of an ended call, or returns "" if no media was measured.
func formatQuality(r calls.Record) string {
	q := r.Document().Quality
	if q == nil {
		return ""
	}
	return fmt.Sprintf("MOS %.2f over %s, %.1f%% lost, jitter %.1f ms, round trip %.1f ms",
		q.MOS, q.Transport, 100*float64(q.Lost)/float64(q.Packets+q.Lost), q.JitterMs, q.RoundTripMs)
}

var findCall = inAnyProject(func(a *app) finder[calls.Record] {
	return func(ctx context.Context, projectID, id string) (calls.Record, error) {
		return a.CallRecords.Find(ctx, projectID, "", id)
	}
})

func (c *commands) callCommand() *cobra.Command {
	n := noun[calls.Record]{commands: c, view: callView, find: findCall, list: listCalls}
	ls := n.listCommand("list", "List the calls of a project, the newest first")
	ls.Flags().Bool("running", false, "only calls that have not ended")
	ls.Flags().String("subscriber", "", "only calls from or to the subscriber with this `id`")
	ls.Flags().String("result", "", "only calls that ended with this `result`: "+strings.Join(resultNames(), ", "))
	show := n.showCommand("show ID", "Show a call")
	hangUp := n.changeCommand("hangup ID", "End a running call for everybody, within a second",
		func(ctx context.Context, a *app, _ *cobra.Command, r calls.Record) (calls.Record, error) {
			if r.State == calls.Completed {
				return r, fmt.Errorf("the call %s has ended already", r.ID)
			}
			return r, a.CallRecords.HangUp(ctx, r.ProjectID, r.ID)
		})
	addProject(ls, show, hangUp)
	return cli.Noun("call", "Calls between subscribers", ls, show, hangUp)
}

func resultNames() (names []string) {
	for _, r := range calls.Results() {
		names = append(names, string(r))
	}
	return names
}

func listCalls(ctx context.Context, a *app, cmd *cobra.Command) ([]calls.Record, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}

	var filter calls.Filter
	var subscriber, result string
	filter.Running, _ = cmd.Flags().GetBool("running")
	cli.Set(cmd, "subscriber", &subscriber)
	if subscriber != "" {
		filter.Subscribers = []string{subscriber}
	}
	cli.Set(cmd, "result", &result)
	if result != "" && !slices.Contains(resultNames(), result) {
		return nil, cli.Usagef("--result must be one of %s", strings.Join(resultNames(), ", "))
	}
	filter.Result = calls.Result(result)
	return page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[calls.Record], error) {
		return a.CallRecords.List(ctx, p.ID, filter, q)
	})
}
