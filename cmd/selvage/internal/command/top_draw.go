package command

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/top"
)

// A topColumn is a column of numbers for one server, or for all servers together.
type topColumn struct {
	title  string
	values top.Values
}

const (
	topGap    = "   " // space between two blocks
	cellWidth = 9     // minimum width of a number
)

// draw returns the lines of a picture: a heading, the servers with problems, and a block for each
// section. If the blocks are taller than the terminal, and the terminal is wide enough, draw puts them
// side by side. A width of 0 means no limit.
func (w topWatch) draw(p top.Picture, width, height int) []string {
	lines := w.drawHeading(p)
	blocks := w.drawBlocks(columnsOf(p, width))
	isWide := 2*visibleWidth(blocks[0][0])+len(topGap) <= width
	if isWide && len(lines)+heightOf(blocks) > height {
		return append(lines, inTwoColumns(blocks)...)
	}
	for i, block := range blocks {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, block...)
	}
	return lines
}

// heightOf returns the number of lines of blocks, including an empty line between each two of them.
func heightOf(blocks [][]string) int {
	height := len(blocks) - 1
	for _, block := range blocks {
		height += len(block)
	}
	return height
}

// drawHeading returns the time, and a line for each server that is not ready or has a problem.
func (w topWatch) drawHeading(p top.Picture) []string {
	title := cli.Plural(len(p.Nodes), "server")
	if len(p.Nodes) == 1 {
		title = cli.Sanitize(p.Nodes[0].URL + " " + p.Nodes[0].Version + " " + p.Nodes[0].State)
	}

	name := w.Color(cli.Bold, "selvage top")
	lines := []string{name + "  " + title + "  " + p.Time.Local().Format(time.TimeOnly)}
	for _, n := range p.Nodes {
		if n.Error != "" {
			lines = append(lines, w.Color(cli.Red, cli.Sanitize(n.URL+" "+n.State+": "+n.Error)))
		} else if n.State != "ready" && len(p.Nodes) > 1 {
			lines = append(lines, w.Color(cli.Red, cli.Sanitize(n.URL+" "+n.State)))
		}
		for _, name := range slices.Sorted(maps.Keys(n.Problems)) {
			lines = append(lines, w.Color(cli.Yellow, cli.Sanitize(n.URL+" "+name+": "+n.Problems[name])))
		}
	}
	return append(lines, "")
}

// columnsOf returns the columns that fit: first the total of all servers, then one for each server.
func columnsOf(p top.Picture, width int) []topColumn {
	if len(p.Nodes) == 1 {
		return []topColumn{{values: p.Nodes[0].Values}}
	}
	columns := []topColumn{{"All", p.All}}
	taken := nameWidth() + 2 + cellWidth
	for _, n := range p.Nodes {
		_, title, _ := strings.Cut(cli.Sanitize(n.URL), "://")
		taken += 2 + max(cellWidth, utf8.RuneCountInString(title))
		if width > 0 && taken > width {
			break
		}
		columns = append(columns, topColumn{title, n.Values})
	}
	return columns
}

// drawBlocks returns the lines of each section. All lines have the same width.
func (w topWatch) drawBlocks(columns []topColumn) (blocks [][]string) {
	section := ""
	for _, row := range top.Rows {
		if !slices.ContainsFunc(columns, func(c topColumn) bool { return c.has(row) }) {
			continue
		}
		if row.Section != section {
			section = row.Section
			line := cli.Pad(section, nameWidth())
			for _, c := range columns {
				line += "  " + alignRight(c.title, c.width())
			}
			blocks = append(blocks, []string{w.Color(cli.Bold, line)})
		}

		line := cli.Pad("  "+row.Name, nameWidth())
		for _, c := range columns {
			line += "  " + w.drawCell(row, c)
		}
		last := len(blocks) - 1
		blocks[last] = append(blocks[last], line)
	}

	if blocks == nil {
		return [][]string{{""}}
	}
	return blocks
}

// has reports whether the column has a value for a row.
func (c topColumn) has(row top.Row) bool {
	_, ok := c.values[row.Key]
	return ok
}

func (c topColumn) width() int { return max(cellWidth, utf8.RuneCountInString(c.title)) }

// drawCell formats a value. Zeros are faint, and faults are red.
func (w topWatch) drawCell(row top.Row, c topColumn) string {
	value, ok := c.values[row.Key]
	if !ok {
		return alignRight("–", c.width())
	}
	text := alignRight(formatValue(row.Unit, value), c.width())
	switch {
	case value == 0:
		return w.Faint(text)
	case row.Fault:
		return w.Color(cli.Red, text)
	}
	return text
}

// nameWidth returns the width of the first column, which holds the names of sections and the
// indented names of rows.
func nameWidth() (width int) {
	for _, row := range top.Rows {
		width = max(width, utf8.RuneCountInString(row.Section), 2+utf8.RuneCountInString(row.Name))
	}
	return width
}

// inTwoColumns puts blocks into two columns of about the same height.
func inTwoColumns(blocks [][]string) []string {
	total := heightOf(blocks) + 1 // each block is followed by an empty line
	used := 0
	var left, right []string
	for _, block := range blocks {
		used += len(block) + 1
		if used <= (total+1)/2 || left == nil {
			left = append(append(left, block...), "")
		} else {
			right = append(append(right, block...), "")
		}
	}

	width := visibleWidth(blocks[0][0])
	lines := make([]string, max(len(left), len(right)))
	for i := range lines {
		if i < len(left) {
			lines[i] = left[i]
		}
		if i < len(right) && right[i] != "" {
			lines[i] += strings.Repeat(" ", width-visibleWidth(lines[i])) + topGap + right[i]
		}
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// visibleWidth returns the number of columns of s, which may contain colors.
func visibleWidth(s string) (width int) {
	escaped := false
	for _, r := range s {
		switch {
		case r == '\x1b':
			escaped = true
		case escaped:
			escaped = r != 'm'
		default:
			width++
		}
	}
	return width
}

// alignRight adds spaces before s, up to a width.
func alignRight(s string, width int) string {
	return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s))) + s
}

// formatValue formats a value with its unit.
func formatValue(u top.Unit, v float64) string {
	switch u {
	case top.Percent:
		return strconv.FormatFloat(v, 'f', 0, 64) + " %"
	case top.Bytes:
		return strconv.FormatFloat(v/(1<<20), 'f', 0, 64) + " MiB"
	case top.Latency:
		return strconv.FormatFloat(1000*v, 'f', 1, 64) + " ms"
	case top.Age:
		return formatAge(time.Duration(v * float64(time.Second)))
	case top.Rate:
		if v > 0 && v < 100 {
			return strconv.FormatFloat(v, 'f', 1, 64)
		}
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// formatAge formats a duration in its two largest units.
func formatAge(d time.Duration) string {
	switch {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d/time.Hour%24)
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d/time.Minute%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm %ds", d/time.Minute, d/time.Second%60)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
