package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/store"
)

// verifyAudit verifies all lanes and the ends that --end names, and prints the result.
func (c auditCommands) verifyAudit(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	expected, err := flagEnds(cmd)
	if err != nil {
		return err
	}
	r, err := a.Store.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	for _, end := range expected {
		broken, err := checkEnd(ctx, a, end)
		if err != nil {
			return err
		}
		if broken != nil {
			r.Broken = append(r.Broken, broken)
		}
	}

	if err := c.printReport(r); err != nil {
		return err
	}
	if len(r.Broken) > 0 {
		return fmt.Errorf("the audit trail is broken: %w", errors.Join(r.Broken...))
	}
	return nil
}

// flagEnds returns the values of --end.
func flagEnds(cmd *cobra.Command) (ends []auditEnd, err error) {
	texts, _ := cmd.Flags().GetStringSlice("end")
	for _, text := range texts {
		end, err := parseEnd(text)
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	return ends, nil
}

// checkEnd checks that an event is unchanged. want is the end of a lane that an earlier verify
// printed. If the event was changed or is missing, broken is the error to report.
func checkEnd(ctx context.Context, a *app, want auditEnd) (broken, err error) {
	// The event may have been pruned in the meantime. Only for the last pruned event of a lane is the
	// hash kept, so only that one can still be compared.
	heads, err := a.Store.AuditHeads(ctx)
	if err != nil {
		return nil, err
	}
	for _, head := range heads {
		isBefore := want.Seq < head.PrunedSeq
		isLast := want.Seq == head.PrunedSeq && want.Hash == head.PrunedHash
		if head.Lane == want.Lane && (isBefore || isLast) {
			return nil, nil
		}
	}

	events, err := a.Store.ReadLane(ctx, want.Lane, want.Seq-1, 1)
	if err != nil {
		return nil, err
	}
	isSame := len(events) > 0 && events[0].Seq == want.Seq && events[0].Hash == want.Hash
	if !isSame {
		return &audit.Break{Lane: want.Lane, Seq: want.Seq, What: "the event differs from --end"}, nil
	}
	return nil, nil
}

// An auditEnd is the last event of a lane.
type auditEnd struct {
	Lane int    `json:"lane"`
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// parseEnd parses the value of --end.
func parseEnd(text string) (auditEnd, error) {
	invalid := cli.Usagef("--end must be LANE:SEQ:HASH; it is %q", text)
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return auditEnd{}, invalid
	}
	lane, err := strconv.Atoi(parts[0])
	if err != nil {
		return auditEnd{}, invalid
	}
	seq, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return auditEnd{}, invalid
	}
	return auditEnd{Lane: lane, Seq: seq, Hash: parts[2]}, nil
}

// An auditSum is the combined result of verifying all lanes, as JSON output prints it.
type auditSum struct {
	Whole  bool       `json:"whole"`
	Events int64      `json:"events"`
	First  cli.Time   `json:"first,omitempty"`
	Last   cli.Time   `json:"last,omitempty"`
	Ends   []auditEnd `json:"ends"`
	Broken []string   `json:"broken,omitempty"`
}

// sumAudit combines the reports on all lanes.
func sumAudit(r store.AuditReport) auditSum {
	s := auditSum{Whole: len(r.Broken) == 0, Ends: []auditEnd{}}
	var first, last time.Time
	for _, lane := range r.Lanes {
		s.Events += lane.Count
		if lane.Count > 0 && (first.IsZero() || lane.First.Before(first)) {
			first = lane.First
		}
		if lane.Last.After(last) {
			last = lane.Last
		}
		if end := lane.At(); end.Seq > 0 {
			s.Ends = append(s.Ends, auditEnd{Lane: end.Lane, Seq: end.Seq, Hash: end.Hash})
		}
	}

	s.First = cli.UTC(first)
	s.Last = cli.UTC(last)
	for _, err := range r.Broken {
		s.Broken = append(s.Broken, err.Error())
	}
	return s
}

// printReport prints the result of a verification.
func (c auditCommands) printReport(r store.AuditReport) error {
	s := sumAudit(r)
	if c.Output == "json" {
		return c.PrintJSON(s)
	}
	verdict := "whole"
	if !s.Whole {
		verdict = "broken"
	}

	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d events, from %s to %s\n", verdict, s.Events, formatUTC(s.First), formatUTC(s.Last))
	for _, e := range s.Ends {
		fmt.Fprintf(&b, "end %d:%d:%s\n", e.Lane, e.Seq, e.Hash)
	}
	_, err := fmt.Fprint(c.Stdout, b.String())
	return err
}

// formatUTC formats a time in UTC, or returns "-" for nil.
func formatUTC(t cli.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.RFC3339)
}
