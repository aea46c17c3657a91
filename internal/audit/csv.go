package audit

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// CSVHeader holds the column names of [Event.CSV].
var CSVHeader = []string{
	"id",
	"at",
	"project_id",
	"action",
	"outcome",
	"actor_kind",
	"actor_id",
	"target_kind",
	"target_id",
	"address",
	"request_id",
	"detail",
	"lane",
	"seq",
	"hash",
}

// CSV returns an event as the cells of a row, none of which spreadsheets treat as a formula.
func (e Event) CSV() []string {
	return Neutral([]string{
		e.ID,
		e.At.UTC().Format(time.RFC3339Nano),
		e.ProjectID,
		e.Action,
		string(e.Outcome),
		string(e.Actor.Kind),
		e.Actor.ID,
		e.Target.Kind,
		e.Target.ID,
		e.Address,
		e.RequestID,
		e.DetailText(),
		strconv.Itoa(e.Lane),
		strconv.FormatInt(e.Seq, 10),
		e.Hash,
	})
}

// NamedCSVHeader holds the column names of [Event.NamedCSV].
var NamedCSVHeader = append(slices.Clone(CSVHeader), "actor_name", "target_name")

// NamedCSV is like [Event.CSV], with the names of the actor and the target.
func (e Event) NamedCSV(actor, target string) []string {
	return append(e.CSV(), Neutral([]string{actor, target})...)
}

// Neutral changes the cells of a row so that spreadsheets treat none of them as a formula.
func Neutral(row []string) []string {
	for i := range row {
		row[i] = neutral(row[i])
	}
	return row
}

// neutral keeps spreadsheets from treating a cell as a formula (OWASP, CSV Injection).
func neutral(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
