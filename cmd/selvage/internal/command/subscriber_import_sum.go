package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/problem"
)

// An importSum counts the outcomes of an import.
type importSum struct {
	lines    int
	created  int
	exists   int
	rejected int
	why      map[string]int // number of rejected lines by invalid column
}

// add counts the outcome of a line.
func (s *importSum) add(in importedSubscriber) {
	s.lines++
	switch in.Status {
	case created:
		s.created++
	case exists:
		s.exists++
	default:
		s.rejected++
	}
	if in.err == nil {
		return
	}

	columns := make(map[string]bool)
	for _, p := range problem.All(in.err) {
		columns[cmp.Or(p.Param, "the account")] = true
	}
	if len(columns) == 0 {
		columns["the line itself"] = true
	}
	for name := range columns {
		s.why[name]++
	}
}

func (s importSum) String() string {
	text := fmt.Sprintf("%s: %d created, %d already existed, %d rejected",
		cli.Plural(s.lines, "line"), s.created, s.exists, s.rejected)
	separator := " for "
	for _, name := range slices.Sorted(maps.Keys(s.why)) {
		text += fmt.Sprintf("%s%s (%d)", separator, name, s.why[name])
		separator = ", "
	}
	return text
}
