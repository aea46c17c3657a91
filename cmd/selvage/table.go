package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// table prints rows under their head, no wider than the terminal.
func (c *cli) table(rows [][]string) error {
	if len(rows) == 1 {
		_, err := fmt.Fprintln(c.stderr, "none")
		return err
	}
	rows, widths := fit(rows, terminalWidth(c.stdout))
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
	return nil
}

// The widths between which long cells are cut. A time, with its 16 columns, and
// the first column, an id that is copied, stay whole.
const (
	uncut    = 16
	shortest = 12
)

// fit makes a table no wider than limit (0 is no limit), and gives the widths of
// its columns: empty columns go, long cells are cut, and where that is not enough
// the last columns go too.
func fit(rows [][]string, limit int) ([][]string, []int) {
	widths := widthsOf(rows)
	if limit == 0 {
		return rows, widths
	}
	for j := len(widths) - 1; j > 0; j-- {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[j] != "" }) {
			rows = without(rows, j)
		}
	}
	for {
		widths = widthsOf(rows)
		narrow(widths, limit)
		if total(widths) <= limit || len(widths) <= 2 {
			return rows, widths
		}
		rows = without(rows, len(widths)-1)
	}
}

// narrow takes from the widest column that may be cut, until all fit.
func narrow(widths []int, limit int) {
	natural := slices.Clone(widths)
	for total(widths) > limit {
		widest := 0
		for j := 1; j < len(widths); j++ {
			if natural[j] != uncut && widths[j] > shortest && (widest == 0 || widths[j] > widths[widest]) {
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

// without gives the rows without a column.
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
