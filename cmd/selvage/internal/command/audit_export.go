package command

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator/names"
)

// An exportedEvent is an event with the names of its actor and its target.
type exportedEvent struct {
	audit.Event
	actor, target string
}

// exportedJSON is an exported event in JSON.
type exportedJSON struct {
	eventJSON
	ActorName  string `json:"actor_name,omitempty"`
	TargetName string `json:"target_name,omitempty"`
}

// exportAudit prints the events that the flags select, with names, as JSON lines or CSV.
func (c auditCommands) exportAudit(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	f, err := auditFilter(cmd, time.Now())
	if err != nil {
		return err
	}

	format, _ := cmd.Flags().GetString("format")
	switch format {
	case "jsonl":
		enc := json.NewEncoder(c.Stdout)
		enc.SetEscapeHTML(false)
		return exportEvents(ctx, a, f, func(e exportedEvent) error {
			return enc.Encode(exportedJSON{
				eventJSON:  newEventJSON(e.Event),
				ActorName:  e.actor,
				TargetName: e.target,
			})
		})
	case "csv":
		w := csv.NewWriter(c.Stdout)
		if err := w.Write(audit.NamedCSVHeader); err != nil {
			return err
		}
		err := exportEvents(ctx, a, f, func(e exportedEvent) error {
			return w.Write(e.NamedCSV(e.actor, e.target))
		})
		w.Flush()
		return cmp.Or(err, w.Error()) // a failed write returns the same error twice
	}
	return cli.Usagef("--format must be jsonl or csv; it is %q", format)
}

// exportEvents calls write for each event, a page at a time.
func exportEvents(ctx context.Context, a *app, f audit.Filter, write func(exportedEvent) error) error {
	finder := names.Finder{
		Fabric:     a.Fabric,
		Clients:    a.IDP,
		Operators:  a.Operators,
		Calls:      a.CallRecords,
		Rooms:      a.RoomSessions,
		Recordings: a.Store.ListRecordings,
	}
	known := finder.Begin()
	q := page.Query{Size: page.MaxSize}
	for {
		found, err := a.Store.ExportAudit(ctx, f, q)
		if err != nil {
			return err
		}

		for _, e := range found.Items {
			named, err := withNames(ctx, known, e)
			if err != nil {
				return err
			}
			if err := write(named); err != nil {
				return fmt.Errorf("writing audit trail: %w", err)
			}
		}
		if found.Next == "" {
			return nil
		}
		q.From = found.Next
	}
}

// withNames adds to an event the names of its actor and target.
func withNames(ctx context.Context, known *names.Lookup, e audit.Event) (exportedEvent, error) {
	actor, err := known.Actor(ctx, e)
	if err != nil {
		return exportedEvent{}, err
	}
	target, err := known.Target(ctx, e)
	if err != nil {
		return exportedEvent{}, err
	}
	return exportedEvent{Event: e, actor: actor.String(), target: target.String()}, nil
}
