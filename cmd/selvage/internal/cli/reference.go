package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

const referenceHead = `# Command line

A command is a noun and a verb. Commands work on the data that ` + "`--config`, `--data` and `--database`" + `
name, while a server runs or without one ([operations](operations.md#commands)). Every command has
` + "`--help`. `selvage completion bash|zsh|fish`" + ` prints completions, and ` + "`selvage man DIR`" + ` writes
manual pages.

| exit status | meaning |
|---|---|
| 0 | success |
| 1 | failure |
| 2 | invalid command line or configuration; with ` + "`apply --dry-run`" + `, something differs |
| 3 | not found |
| 4 | not allowed |

Every command takes ` + "`-o table`, `-o json` or `-o id`" + `, and as flags all keys of the top level
of [the configuration](configuration.md#top-level) that are not secrets. Omit ` + "`--project`" + ` if there
is only one project. ` + "`--yes` (`-y`)" + ` answers a command's question. Colors and widths are for
terminals: piped output is plain and complete. ` + "`NO_COLOR`" + ` turns colors off on a terminal, too.

<!-- generated: UPDATE_DOCS=1 go test -run TestReferences ./cmd/selvage -->
`

// Reference returns docs/cli.md: every command and its flags. It leaves out the flags of
// configuration, which docs/configuration.md describes.
func Reference(root *cobra.Command, configuration *pflag.FlagSet) string {
	mergeFlags(root)
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, cmd := range root.Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		fmt.Fprintf(&b, "\n## selvage %s\n\n%s.\n", cmd.Name(), strings.TrimSuffix(cmd.Short, "."))
		written := make(map[string]string)
		if !cmd.HasAvailableSubCommands() {
			usage, rows := describe(cmd, configuration)
			if usage != cmd.CommandPath() { // which is the heading
				fmt.Fprintf(&b, "\n```\n%s\n```\n", usage)
			}
			writeFlags(&b, cmd, rows, written)
			continue
		}
		for _, verb := range leaves(cmd) {
			usage, rows := describe(verb, configuration)
			fmt.Fprintf(&b, "\n### `%s`\n\n%s.\n", usage, strings.TrimSuffix(verb.Short, "."))
			writeFlags(&b, verb, rows, written)
		}
	}
	return b.String()
}

// WriteManual writes the manual pages of a version into a directory, a file for each command.
// They carry the day of the build, so that a release has the same bytes wherever it is built.
func WriteManual(root *cobra.Command, dir, version string, day time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing manual pages: %w", err)
	}
	root.DisableAutoGenTag = true
	mergeFlags(root)
	head := &doc.GenManHeader{
		Title: "SELVAGE", Section: "1", Date: &day, Source: "selvage " + version, Manual: "selvage",
	}
	if err := doc.GenManTree(root, head, dir); err != nil {
		return fmt.Errorf("writing manual pages: %w", err)
	}
	return nil
}

// mergeFlags adds the flags of the root to all commands below, whose usage shows them. cobra
// does so only for the command that is run.
func mergeFlags(cmd *cobra.Command) {
	cmd.LocalFlags()
	for _, sub := range cmd.Commands() {
		mergeFlags(sub)
	}
}

// leaves returns the commands below cmd that do something.
func leaves(cmd *cobra.Command) (all []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		switch {
		case !sub.IsAvailableCommand():
		case sub.HasAvailableSubCommands():
			all = append(all, leaves(sub)...)
		default:
			all = append(all, sub)
		}
	}
	return all
}

// describe returns how to call cmd, and a row for each of its flags except for those of
// referenceHead and of the configuration.
func describe(cmd *cobra.Command, configuration *pflag.FlagSet) (usage string, rows []string) {
	usage = strings.TrimSuffix(cmd.UseLine(), " [flags]")
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help" || configuration.Lookup(f.Name) != nil:
		case f.Usage == ProjectUsage:
			usage += " [--project ID]"
		case f.Usage == yesUsage:
			usage += " [--yes]"
		default:
			rows = append(rows, flagRow(f))
		}
	})
	return usage, rows
}

// writeFlags writes the rows of the flags of cmd as a table. It only names those that an earlier
// command of the same noun has, too. written maps the rows to these commands.
func writeFlags(b *strings.Builder, cmd *cobra.Command, rows []string, written map[string]string) {
	same := make(map[string][]string)
	var origins []string
	table := ""
	for _, row := range rows {
		origin, ok := written[row]
		if !ok {
			written[row] = cmd.CommandPath()
			table += row
			continue
		}
		if same[origin] == nil {
			origins = append(origins, origin)
		}
		flag, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		same[origin] = append(same[origin], flag)
	}

	if table != "" {
		fmt.Fprintf(b, "\n| flag | meaning |\n|---|---|\n%s", table)
	}
	for _, origin := range origins {
		fmt.Fprintf(b, "\nAs for `%s`:", origin)
		writeList(b, same[origin])
	}
}

// maxColumn is the width at which lists wrap.
const maxColumn = 100

// writeList writes words as an enumeration in lines of their own.
func writeList(b *strings.Builder, words []string) {
	column := maxColumn // so that the first word begins a line
	for i, word := range words {
		word += ","
		if i == len(words)-1 {
			word = strings.TrimSuffix(word, ",") + "."
		}
		if column+1+len(word) > maxColumn {
			b.WriteString("\n" + word)
			column = len(word)
			continue
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	b.WriteString("\n")
}

// flagRow returns the row of a flag in the table of its command.
func flagRow(f *pflag.Flag) string {
	kind, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if kind != "" {
		name += " " + kind
	}
	return fmt.Sprintf("| `%s` | %s |\n", name, strings.ReplaceAll(usage, "|", `\|`))
}
