package command

import (
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/doctor"
	"github.com/spf13/cobra"
	"strings"
	"unicode/utf8"
)

func (c *commands) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and tell what to do",
		Long: "Looks at the configuration, the data directory, the databases, keys, certificates, listeners and the\n" +
			"running server, beside it or without one. It changes nothing, and takes ten seconds at most. The exit\n" +
			"status is 1 where something failed, and 0 where there are but warnings.",
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				c.Output = "json"
			}
			return c.doctor(cmd)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, as -o json does")
	config.AddFlags(cmd.Flags(), false)
	return cmd
}

func (c *commands) doctor(cmd *cobra.Command) error {
	var findings []doctor.Finding
	if conf, from, err := c.loadConfig(cmd.Flags()); err != nil {
		findings = doctor.Unreadable(err)
	} else {
		e := &doctor.Examination{Config: conf, From: from, Getenv: c.Getenv, Version: c.build.version()}
		findings = append(e.Configuration(), e.Examine(cmd.Context())...)
	}
	if err := c.printFindings(findings); err != nil {
		return err
	}
	return sumUp(findings)
}

// sumUp is an error where something is broken.
func sumUp(findings []doctor.Finding) error {
	if n := count(findings, doctor.Broken); n == 1 {
		return fmt.Errorf("1 check of %d failed", len(findings))
	} else if n > 1 {
		return fmt.Errorf("%d checks of %d failed", n, len(findings))
	}
	return nil
}

func count(findings []doctor.Finding, v doctor.Verdict) (n int) {
	for _, f := range findings {
		if f.Status == v {
			n++
		}
	}
	return n
}

// printFindings prints an examination: for people in groups, for programs as
// JSON, or the names alone of what is not well.
func (c *commands) printFindings(findings []doctor.Finding) error {
	switch c.Output {
	case "json":
		return c.PrintJSON(struct {
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
		return cli.PrintIDs(c.Env, func(f doctor.Finding) string { return f.Group + ": " + f.Name }, unwell...)
	}
	_, err := fmt.Fprint(c.Stdout, c.layOut(findings))
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
func (c *commands) layOut(findings []doctor.Finding) string {
	names := 0
	for _, f := range findings {
		names = max(names, utf8.RuneCountInString(f.Name))
	}
	width := c.Width()
	var b strings.Builder
	for i, f := range findings {
		if i == 0 || f.Group != findings[i-1].Group {
			fmt.Fprintf(&b, "%s\n", c.Color(bold, f.Group))
		}
		fmt.Fprintf(&b, "  %s  %s  ", c.Color(
			colourOf[f.Status], cli.Pad(string(f.Status), len(doctor.Skipped))), cli.Pad(f.Name, names))
		hang(&b, cli.Sanitize(f.Found), names+len(doctor.Skipped)+6, width)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "%s→ ", strings.Repeat(" ", len(doctor.Skipped)+4))
			for j, line := range strings.Split(f.Remedy, "\n") {
				b.WriteString(strings.Repeat(" ", min(j, 1)*(len(doctor.Skipped)+6)))
				hang(&b, cli.Sanitize(line), len(doctor.Skipped)+6, width)
			}
		}
	}
	fmt.Fprintf(&b, "%d ok, %d skipped, %s, %d failed\n", count(findings, doctor.Fine),
		count(findings, doctor.Skipped),
		cli.Plural(count(findings, doctor.Warned), "warning"), count(findings, doctor.Broken))
	return b.String()
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
