package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/selvage/selvage/cmd/selvage/internal/doctor"
)

// printFindings prints an examination: for people in groups, for programs as
// JSON, or the names alone of what is not well.
func (c *cli) printFindings(findings []doctor.Finding) error {
	switch c.output {
	case "json":
		return c.json(struct {
			Status doctor.Verdict   `json:"status"`
			Checks []doctor.Finding `json:"checks"`
		}{worst(findings), findings})
	case "id":
		var unwell []doctor.Finding
		for _, f := range findings {
			if f.Status.Worse(doctor.Fine) {
				unwell = append(unwell, f)
			}
		}
		return ids(c, func(f doctor.Finding) string { return f.Group + ": " + f.Name }, unwell...)
	}
	_, err := fmt.Fprint(c.stdout, c.layOut(findings))
	return err
}

func worst(findings []doctor.Finding) doctor.Verdict {
	v := doctor.Fine
	for _, f := range findings {
		if f.Status.Worse(v) {
			v = f.Status
		}
	}
	return v
}

// layOut writes findings as
//
//	Group
//	  ok       name      what was found
//	  warning  name      what was found
//	           → what to do
//
// in the columns of the terminal; anywhere else lines are as long as they are.
func (c *cli) layOut(findings []doctor.Finding) string {
	names := 0
	for _, f := range findings {
		names = max(names, utf8.RuneCountInString(f.Name))
	}
	width := terminalWidth(c.stdout)
	var b strings.Builder
	for i, f := range findings {
		if i == 0 || f.Group != findings[i-1].Group {
			fmt.Fprintf(&b, "%s\n", c.coloured(bold, f.Group))
		}
		fmt.Fprintf(&b, "  %s  %s  ", c.coloured(
			colourOf[f.Status], pad(string(f.Status), len(doctor.Skipped))), pad(f.Name, names))
		hang(&b, harmless(f.Found), names+len(doctor.Skipped)+6, width)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "%s→ ", strings.Repeat(" ", len(doctor.Skipped)+4))
			for j, line := range strings.Split(f.Remedy, "\n") {
				b.WriteString(strings.Repeat(" ", min(j, 1)*(len(doctor.Skipped)+6)))
				hang(&b, harmless(line), len(doctor.Skipped)+6, width)
			}
		}
	}
	fmt.Fprintf(&b, "%d ok, %d skipped, %s, %d failed\n", count(findings, doctor.Fine),
		count(findings, doctor.Skipped),
		plural(count(findings, doctor.Warned), "warning"), count(findings, doctor.Broken))
	return b.String()
}

// plural returns a number of things.
func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// hang writes a text that begins in a column. Where it is wider than the
// terminal, it goes on in the next line, below where it began. What has no spaces,
// such as a path, stays whole.
func hang(b *strings.Builder, text string, column, width int) {
	line := 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width > 0 && line > 0 && column+line+1+n > width:
			fmt.Fprintf(b, "\n%s", strings.Repeat(" ", column))
			line = 0
		default:
			b.WriteByte(' ')
			line++
		}
		b.WriteString(word)
		line += n
	}
	b.WriteByte('\n')
}

// How verdicts look on a terminal.
const bold = "1"

var colourOf = map[doctor.Verdict]string{doctor.Fine: "32", doctor.Warned: "33", doctor.Broken: "31",
	doctor.Skipped: "2"}
