package command

import (
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

func (c auditCommands) exportAudit(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	f, err := auditFilter(cmd, time.Now())
	if err != nil {
		return err
	}

	var write func(exportedEvent) error
	switch format := cmd.Flags().Lookup("format").Value.String(); format {
	case "jsonl":
		enc := json.NewEncoder(c.Stdout)
		enc.SetEscapeHTML(false)
		write = func(e exportedEvent) error {
			return enc.Encode(exportedJSON{newEventJSON(e.Event), e.actor, e.target})
		}
	case "csv":
		w := csv.NewWriter(c.Stdout)
		defer w.Flush()
		if err := w.Write(audit.NamedCSVHeader); err != nil {
			return err
		}
		write = func(e exportedEvent) error { return w.Write(e.NamedCSV(e.actor, e.target)) }
	default:
		return cli.Usagef("--format must be jsonl or csv; it is %q", format)
	}
	return exportEvents(ctx, a, f, write)
}

// exportEvents calls write for each event, a page at a time.
func exportEvents(ctx context.Context, a *app, f audit.Filter, write func(exportedEvent) error) error {
	known := names.Finder{Fabric: a.Fabric, Clients: a.IDP, Operators: a.Operators, Calls: a.CallRecords,
		Rooms: a.RoomSessions, Recordings: a.Store.ListRecordings}.Begin()
	q := page.Query{Size: page.MaxSize}
	for {
		p, err := a.Store.ExportAudit(ctx, f, q)
		if err != nil {
			return err
		}
		for _, e := range p.Items {
			named, err := withNames(ctx, known, e)
			if err != nil {
				return err
			}
			if err := write(named); err != nil {
				return fmt.Errorf("writing audit trail: %w", err)
			}
		}
		if p.Next == "" {
			return nil
		}
		q.From = p.Next
	}
}

// withNames adds to an event the names of its actor and target.
func withNames(ctx context.Context, known *names.Lookup, e audit.Event) (exportedEvent, error) {
	actor, err := known.Actor(ctx, e)
	if err != nil {
		return exportedEvent{}, err
	}
	target, err := known.Target(ctx, e)
	return exportedEvent{e, actor.String(), target.String()}, err
}
