package command

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/store"
	"github.com/spf13/cobra"
	"time"
)

// printReport tells what a walk of the chains has found.
func (c *commands) printReport(r store.AuditReport) error {
	var events int64
	var first, last time.Time
	type end struct {
		Lane int    `json:"lane"`
		Seq  int64  `json:"seq"`
		Hash string `json:"hash"`
	}
	ends, broken := []end{}, []string{}
	for _, l := range r.Lanes {
		if events += l.Count; l.Count > 0 && (first.IsZero() || l.First.Before(first)) {
			first = l.First
		}
		if l.Last.After(last) {
			last = l.Last
		}
		if at := l.At(); at.Seq > 0 {
			ends = append(ends, end{at.Lane, at.Seq, at.Hash})
		}
	}
	for _, err := range r.Broken {
		broken = append(broken, err.Error())
	}
	if c.Output == "json" {
		return c.PrintJSON(struct {
			Whole  bool     `json:"whole"`
			Events int64    `json:"events"`
			First  cli.Time `json:"first,omitempty"`
			Last   cli.Time `json:"last,omitempty"`
			Ends   []end    `json:"ends"`
			Broken []string `json:"broken,omitempty"`
		}{len(broken) == 0, events, cli.UTC(first), cli.UTC(last), ends, broken})
	}
	verdict := "whole"
	if len(broken) > 0 {
		verdict = "broken"
	}
	if _, err := fmt.Fprintf(c.Stdout, "%s: %d events, from %s to %s\n", verdict, events, dated(first), dated(last)); err != nil {
		return err
	}
	for _, e := range ends {
		if _, err := fmt.Fprintf(c.Stdout, "end %d:%d:%s\n", e.Lane, e.Seq, e.Hash); err != nil {
			return err
		}
	}
	return nil
}

func dated(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func (c *commands) exportAudit(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	f, err := auditFilter(cmd, time.Now())
	if err != nil {
		return err
	}
	var write func(audit.Event) error
	switch format := cmd.Flags().Lookup("format").Value.String(); format {
	case "jsonl":
		enc := json.NewEncoder(c.Stdout)
		enc.SetEscapeHTML(false)
		write = func(e audit.Event) error { return enc.Encode(showEvent(e)) }
	case "csv":
		w := csv.NewWriter(c.Stdout)
		defer w.Flush()
		if err := w.Write(audit.CSVHeader); err != nil {
			return err
		}
		write = func(e audit.Event) error { return w.Write(e.CSV()) }
	default:
		return cli.Usagef("--format is jsonl or csv; it is %q", format)
	}
	for q := (page.Query{Size: page.MaxSize}); ; {
		p, err := a.Store.ExportAudit(ctx, f, q)
		if err != nil {
			return err
		}
		for _, e := range p.Items {
			if err := write(e); err != nil {
				return fmt.Errorf("writing audit trail: %w", err)
			}
		}
		if q.From = p.Next; q.From == "" {
			return nil
		}
	}
}
