package command

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/doctor"
)

// doctorCommands implements the command doctor.
type doctorCommands struct{ *commands }

func (c doctorCommands) command() *cobra.Command {
	var asJSON bool
	cmd := cli.Command("doctor", "Find problems and suggest fixes", func(cmd *cobra.Command, _ []string) error {
		if asJSON {
			c.Output = "json"
		}
		return c.examine(cmd)
	})
	cmd.Long = `Check the configuration, the data directory, the databases, keys, certificates, listeners, and
the server if one is running. This changes nothing and takes at most ten seconds. The exit status is 1
if a check failed, and 0 if there are only warnings.`
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, as -o json does")
	config.AddFlags(cmd.Flags(), false)
	return cmd
}

// examine prints the doctor's findings. It returns an error if a check failed.
func (c doctorCommands) examine(cmd *cobra.Command) error {
	findings := c.findings(cmd)
	if err := c.printFindings(findings); err != nil {
		return err
	}

	failed := count(findings, doctor.Broken)
	switch failed {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 of %d checks failed", len(findings))
	default:
		return fmt.Errorf("%d of %d checks failed", failed, len(findings))
	}
}

func (c doctorCommands) findings(cmd *cobra.Command) []doctor.Finding {
	conf, from, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return doctor.Unreadable(err)
	}
	e := &doctor.Examination{Config: conf, From: from, Getenv: c.Getenv, Version: c.build.version()}
	return append(e.Configuration(), e.Examine(cmd.Context())...)
}

func count(findings []doctor.Finding, v doctor.Verdict) (n int) {
	for _, f := range findings {
		if f.Status == v {
			n++
		}
	}
	return n
}

// printFindings prints findings in the format of --output. With -o id, it prints the names of the
// checks that failed or found a problem.
func (c doctorCommands) printFindings(findings []doctor.Finding) error {
	switch c.Output {
	case "json":
		return c.PrintJSON(struct {
			Status doctor.Verdict   `json:"status"`
			Checks []doctor.Finding `json:"checks"`
		}{worst(findings), findings})
	case "id":
		var problems []doctor.Finding
		for _, f := range findings {
			if f.Status.Worse(doctor.Fine) {
				problems = append(problems, f)
			}
		}
		return cli.PrintIDs(c.Env, func(f doctor.Finding) string { return f.Group + ": " + f.Name }, problems...)
	}
	_, err := fmt.Fprint(c.Stdout, c.formatFindings(findings))
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

var verdictColors = map[doctor.Verdict]string{
	doctor.Fine:    cli.Green,
	doctor.Warned:  cli.Yellow,
	doctor.Broken:  cli.Red,
	doctor.Skipped: cli.Dim,
}

// formatFindings formats findings in this form:
//
//	Group
//	  ok       name      what was found
//	  warning  name      what was found
//	           → what to do
//
// It wraps the lines at the width of the terminal. If stdout is not a terminal, it does not wrap
// them.
func (c doctorCommands) formatFindings(findings []doctor.Finding) string {
	const status = len(doctor.Skipped) // the width of the longest verdict
	names := 0
	for _, f := range findings {
		names = max(names, utf8.RuneCountInString(f.Name))
	}

	var b strings.Builder
	for i, f := range findings {
		if i == 0 || f.Group != findings[i-1].Group {
			fmt.Fprintf(&b, "%s\n", c.Color(cli.Bold, f.Group))
		}
		verdict := c.Color(verdictColors[f.Status], cli.Pad(string(f.Status), status))
		fmt.Fprintf(&b, "  %s  %s  ", verdict, cli.Pad(f.Name, names))
		wrap(&b, cli.Sanitize(f.Found.String()), status+names+6, c.Width())
		c.formatRemedy(&b, f.Remedy.String(), status+6)
	}

	fmt.Fprintf(&b, "%d ok, %d skipped, %s, %d failed\n", count(findings, doctor.Fine),
		count(findings, doctor.Skipped), cli.Plural(count(findings, doctor.Warned), "warning"),
		count(findings, doctor.Broken))
	return b.String()
}

// formatRemedy writes a remedy after an arrow, indented to column.
func (c doctorCommands) formatRemedy(b *strings.Builder, remedy string, column int) {
	if remedy == "" {
		return
	}
	for i, line := range strings.Split(remedy, "\n") {
		indent := strings.Repeat(" ", column)
		if i == 0 {
			indent = strings.Repeat(" ", column-2) + "→ "
		}
		b.WriteString(indent)
		wrap(b, cli.Sanitize(line), column, c.Width())
	}
}

// wrap writes text that begins at column. If width is not 0, it breaks lines that would exceed
// width, and indents them to column. Words, such as paths, are never broken.
func wrap(b *strings.Builder, text string, column, width int) {
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
