package cli

import (
	"fmt"
	"os"
	"slices"
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
terminals: piped output is plain and complete. ` + "`NO_COLOR`" + ` also turns colors off on a terminal.

<!-- generated: UPDATE_DOCS=1 go test -run TestReferences ./cmd/selvage -->
`

// Reference returns docs/cli.md: every command with its flags. It omits the configuration flags,
// which docs/configuration.md describes.
func Reference(root *cobra.Command, configuration *pflag.FlagSet) string {
	mergeFlags(root)
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, cmd := range root.Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		fmt.Fprintf(&b, "\n## selvage %s\n\n", cmd.Name())
		verbs := []*cobra.Command{cmd}
		if cmd.HasAvailableSubCommands() {
			verbs = leaves(cmd)
			fmt.Fprintf(&b, "%s.\n\n", strings.TrimSuffix(cmd.Short, "."))
		}
		var written []described
		for _, verb := range verbs {
			writeCommand(&b, verb, configuration, &written)
		}
	}
	return b.String()
}

// WriteManual writes the manual pages of a version to a directory, one file per command. The pages
// carry the date of the build, so that builds of the same release write the same bytes.
func WriteManual(root *cobra.Command, dir, version string, day time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing manual pages: %w", err)
	}
	root.DisableAutoGenTag = true
	mergeFlags(root)
	head := &doc.GenManHeader{
		Title:   "SELVAGE",
		Section: "1",
		Date:    &day,
		Source:  "selvage " + version,
		Manual:  "selvage",
	}
	if err := doc.GenManTree(root, head, dir); err != nil {
		return fmt.Errorf("writing manual pages: %w", err)
	}
	return nil
}

// mergeFlags adds the flags of the root to all commands below it, so that their usage shows the
// flags. cobra itself merges flags only for the command that runs.
func mergeFlags(cmd *cobra.Command) {
	cmd.LocalFlags()
	for _, sub := range cmd.Commands() {
		mergeFlags(sub)
	}
}

// leaves returns the commands below cmd that have no sub-commands.
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

// writeCommand writes the usage, description and flags of cmd. It omits the flags in referenceHead
// and the configuration flags. Flags that an earlier command of the same noun has described are
// only named. written lists the earlier commands, and writeCommand adds cmd to it.
func writeCommand(b *strings.Builder, cmd *cobra.Command, configuration *pflag.FlagSet, written *[]described) {
	usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	var flags []string
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help" || configuration.Lookup(f.Name) != nil:
		case f.Usage == ProjectUsage:
			usage += " [--project ID]"
		case f.Usage == yesUsage:
			usage += " [--yes]"
		default:
			flags = append(flags, describeFlag(f))
		}
	})

	var same []string
	for _, earlier := range *written {
		if text := earlier.sameAs(flags); text != "" {
			same = append(same, text)
			flags = slices.DeleteFunc(flags, func(f string) bool { return slices.Contains(earlier.flags, f) })
		}
	}
	writeItem(b, "", "`"+usage+"`: "+strings.TrimSuffix(cmd.Short, "."))
	for _, text := range append(flags, same...) {
		writeItem(b, "  ", text)
	}
	*written = append(*written, described{cmd.CommandPath(), flags})
}

// described is a command together with the flags that the reference describes under it.
type described struct {
	command string
	flags   []string
}

// sameAs returns a sentence about the flags that a later command shares with d, or "" if there are
// none. The sentence names the shared or the missing flags, whichever list is shorter.
func (d described) sameAs(flags []string) string {
	var common, missing []string
	for _, f := range d.flags {
		name, _, _ := strings.Cut(f, ": ")
		if slices.Contains(flags, f) {
			common = append(common, name)
		} else {
			missing = append(missing, name)
		}
	}

	switch {
	case len(common) == 0:
		return ""
	case len(missing) == 0:
		return "all flags of `" + d.command + "`"
	case len(missing) < len(common):
		return "all flags of `" + d.command + "` except " + strings.Join(missing, ", ")
	}
	return "as for `" + d.command + "`: " + strings.Join(common, ", ")
}

// describeFlag returns the name and value type of a flag, as code, followed by its description.
func describeFlag(f *pflag.Flag) string {
	kind, meaning := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if kind != "" {
		name += " " + kind
	}
	return "`" + name + "`: " + meaning
}

// maxColumn is the width at which lists wrap.
const maxColumn = 100

// writeItem writes text as a list item. It never breaks a line within code.
func writeItem(b *strings.Builder, indent, text string) {
	line := indent + "-"
	for i, part := range strings.Split(text, "`") {
		words := strings.Fields(part)
		if i%2 == 1 {
			words = []string{"`" + part + "`"}
		}

		for j, word := range words {
			// Text that follows code directly, such as a comma, stays with it.
			glued := j == 0 && i%2 == 0 && i > 0 && !strings.HasPrefix(part, " ")
			switch {
			case glued:
				line += word
			case len(line)+1+len(word) > maxColumn:
				b.WriteString(line + "\n")
				line = indent + "  " + word
			default:
				line += " " + word
			}
		}
	}
	b.WriteString(line + "\n")
}
