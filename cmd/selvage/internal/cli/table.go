package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/selvage/selvage/cmd/selvage/internal/console"
)

// table prints rows that are no wider than the terminal. The first row is the header. If the
// columns do not fit, table hides the columns in minor first. On a terminal, it prints the names of
// the hidden columns.
func (e *Env) table(rows [][]string, minor []string) error {
	if len(rows) == 1 {
		_, err := fmt.Fprintln(e.Stderr, "none")
		return err
	}

	rows, widths, hidden := fit(rows, minor, e.Width())
	for i, row := range rows {
		var b strings.Builder
		for j, cell := range row {
			if j > 0 {
				b.WriteString("  ")
			}
			b.WriteString(Pad(cut(cell, widths[j]), widths[j]))
		}
		line := strings.TrimRight(b.String(), " ")
		if i == 0 {
			line = e.Faint(line)
		}
		if _, err := fmt.Fprintln(e.Stdout, line); err != nil {
			return err
		}
	}

	if len(hidden) > 0 && console.IsTerminal(e.Stderr) {
		note := fmt.Sprintf("%s hidden: %s; -o json shows all",
			Plural(len(hidden), "column"), strings.Join(hidden, ", "))
		fmt.Fprintln(e.Stderr, e.Faint(note))
	}
	return nil
}

// minCut is the smallest width to which cells are cut. Times are never cut. The first column is
// never cut either, because it holds ids that users copy.
const minCut = 10

// fit makes a table no wider than limit, if limit is not 0, and returns the widths of its columns.
// It drops empty columns and cuts long cells. If that is not enough, it hides columns: first those
// in minor, starting with the last, then the others, also starting with the last.
func fit(rows [][]string, minor []string, limit int) (fitted [][]string, widths []int, hidden []string) {
	if limit == 0 {
		return rows, columnWidths(rows), nil
	}
	for j := len(rows[0]) - 1; j > 0; j-- {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[j] != "" }) {
			rows = dropColumn(rows, j)
		}
	}

	for {
		widths = columnWidths(rows)
		narrow(widths, rows, limit)
		if total(widths) <= limit || len(widths) <= 2 {
			return rows, widths, hidden
		}
		hiding := nextHidden(rows[0], minor)
		hidden = slices.Insert(hidden, 0, rows[0][hiding])
		rows = dropColumn(rows, hiding)
	}
}

// nextHidden returns the index of the column to hide next: the last column in minor or, if there is
// none, the last column. It treats the first two columns as if they were not in minor.
func nextHidden(header, minor []string) int {
	last := len(header) - 1
	for j := last; j > 1; j-- {
		if slices.Contains(minor, header[j]) {
			return j
		}
	}
	return last
}

// narrow shrinks the columns that may be cut until all columns fit. In each step, it shrinks the
// widest of them.
func narrow(widths []int, rows [][]string, limit int) {
	hasTimes := make([]bool, len(widths))
	for j := range hasTimes {
		hasTimes[j] = slices.ContainsFunc(rows[1:], func(row []string) bool { return isTime(row[j]) })
	}

	for total(widths) > limit {
		widest := 0
		for j := 1; j < len(widths); j++ {
			if hasTimes[j] || widths[j] <= minCut {
				continue
			}
			if widest == 0 || widths[j] > widths[widest] {
				widest = j
			}
		}
		if widest == 0 {
			return
		}
		widths[widest]--
	}
}

// columnWidths returns the width of the longest cell of each column.
func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for j, cell := range row {
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// total returns the width of a line, including the spaces between columns.
func total(widths []int) int {
	sum := 2 * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// dropColumn returns the rows without a column.
func dropColumn(rows [][]string, column int) [][]string {
	fewer := make([][]string, len(rows))
	for i, row := range rows {
		fewer[i] = slices.Delete(slices.Clone(row), column, column+1)
	}
	return fewer
}

// cut shortens a text that is longer than width.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
