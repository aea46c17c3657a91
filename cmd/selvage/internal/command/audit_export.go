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
)

func (c auditCommands) exportAudit(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	f, err := auditFilter(cmd, time.Now())
	if err != nil {
		return err
	}

	var write func(audit.Event) error
	switch format := cmd.Flags().Lookup("format").Value.String(); format {
	case "jsonl":
		enc := json.NewEncoder(c.Stdout)
		enc.SetEscapeHTML(false)
		write = func(e audit.Event) error { return enc.Encode(newEventJSON(e)) }
	case "csv":
		w := csv.NewWriter(c.Stdout)
		defer w.Flush()
		if err := w.Write(audit.CSVHeader); err != nil {
			return err
		}
		write = func(e audit.Event) error { return w.Write(e.CSV()) }
	default:
		return cli.Usagef("--format needs jsonl or csv; it is %q", format)
	}
	return exportEvents(ctx, a, f, write)
}

// exportEvents calls write for each event, a page at a time.
func exportEvents(ctx context.Context, a *app, f audit.Filter, write func(audit.Event) error) error {
	q := page.Query{Size: page.MaxSize}
	for {
		p, err := a.Store.ExportAudit(ctx, f, q)
		if err != nil {
			return err
		}
		for _, e := range p.Items {
			if err := write(e); err != nil {
				return fmt.Errorf("writing audit trail: %w", err)
			}
		}
		if p.Next == "" {
			return nil
		}
		q.From = p.Next
	}
}
