package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/selvage/selvage/cmd/selvage/internal/console"
)

// table prints rows under their head, no wider than the terminal. What had to be
// left out, the columns of aside first, is told to who looks on.
func (c *cli) table(rows [][]string, aside []string) error {
	if len(rows) == 1 {
		_, err := fmt.Fprintln(c.stderr, "none")
		return err
	}
	rows, widths, hidden := fit(rows, aside, terminalWidth(c.stdout))
	for i, row := range rows {
		var b strings.Builder
		for j, cell := range row {
			if j > 0 {
				b.WriteString("  ")
			}
			b.WriteString(pad(cut(cell, widths[j]), widths[j]))
		}
		line := strings.TrimRight(b.String(), " ")
		if i == 0 {
			line = c.faint(line)
		}
		if _, err := fmt.Fprintln(c.stdout, line); err != nil {
			return err
		}
	}
	if len(hidden) > 0 && console.IsTerminal(c.stderr) {
		what := "1 column is"
		if len(hidden) > 1 {
			what = fmt.Sprintf("%d columns are", len(hidden))
		}
		fmt.Fprintln(c.stderr, c.faint(fmt.Sprintf(
			"%s hidden: %s; -o json shows all", what, strings.Join(hidden, ", "))))
	}
	return nil
}

// shortest is how far long cells are cut. Times, and the first column, an id that
// is copied, stay whole.
const shortest = 10

// fit makes a table no wider than limit (0 is no limit), and gives the widths of
// its columns: empty columns go, long cells are cut, and where that is not enough
// columns are hidden: the last of aside, then the last of all.
func fit(rows [][]string, aside []string, limit int) (fitting [][]string, widths []int, hidden []string) {
	if limit == 0 {
		return rows, widthsOf(rows), nil
	}
	for j := len(rows[0]) - 1; j > 0; j-- {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[j] != "" }) {
			rows = without(rows, j)
		}
	}
	for {
		widths = widthsOf(rows)
		narrow(widths, rows, limit)
		if total(widths) <= limit || len(widths) <= 2 {
			return rows, widths, hidden
		}
		goes := len(widths) - 1
		for j := goes; j > 1; j-- {
			if slices.Contains(aside, rows[0][j]) {
				goes = j
				break
			}
		}
		hidden = slices.Insert(hidden, 0, rows[0][goes])
		rows = without(rows, goes)
	}
}

// narrow takes from the widest column that may be cut, until all fit.
func narrow(widths []int, rows [][]string, limit int) {
	whole := make([]bool, len(widths))
	for j := range whole {
		whole[j] = slices.ContainsFunc(rows[1:], func(row []string) bool { return isStamp(row[j]) })
	}
	for total(widths) > limit {
		widest := 0
		for j := 1; j < len(widths); j++ {
			if !whole[j] && widths[j] > shortest && (widest == 0 || widths[j] > widths[widest]) {
				widest = j
			}
		}
		if widest == 0 {
			return
		}
		widths[widest]--
	}
}

func widthsOf(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for j, cell := range row {
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func total(widths []int) int {
	sum := 2 * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// without returns the rows without a column.
func without(rows [][]string, column int) [][]string {
	fewer := make([][]string, len(rows))
	for i, row := range rows {
		fewer[i] = slices.Delete(slices.Clone(row), column, column+1)
	}
	return fewer
}

func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
