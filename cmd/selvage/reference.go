package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// cliReference writes docs/cli.md: every command and its flags.
func cliReference(root *cobra.Command) string {
	gatherFlags(root)
	var b strings.Builder
	b.WriteString(`# Command line

A noun, then a verb. Commands work on what ` + "`--config`, `--data` and `--database`" +
		` name, beside a running server or without one ([operations](operations.md#commands)). Every command has ` + "`--help`" + `;
` + "`selvage completion bash|zsh|fish`" + ` prints completions, and ` + "`selvage man DIR`" + ` writes manual pages.

| exit status | means |
|---|---|
| 0 | it is done |
| 1 | it failed |
| 2 | the command line or what it names cannot be meant; with ` + "`apply --dry-run`" + `, something differs |
| 3 | it is not there |
| 4 | it is not allowed |

Every command takes ` + "`-o table`, `-o json` or `-o id`" +
		`, and as flags all keys of the top level of [the configuration](configuration.md#top-level) that are no secrets.
Colours and widths are for terminals: what is piped is plain and whole, and ` + "`NO_COLOR`" +
		` has it so on a terminal, too.

<!-- made by the tests of cmd/selvage: UPDATE_DOCS=1 go test -run TestReferences ./cmd/selvage -->
`)
	for _, cmd := range root.Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		fmt.Fprintf(&b, "\n## selvage %s\n\n%s.\n", cmd.Name(), strings.TrimSuffix(cmd.Short, "."))
		if !cmd.HasAvailableSubCommands() {
			writeCommand(&b, cmd)
			continue
		}
		for _, verb := range leaves(cmd) {
			fmt.Fprintf(&b, "\n### %s\n\n%s.\n", verb.CommandPath(), strings.TrimSuffix(verb.Short, "."))
			writeCommand(&b, verb)
		}
	}
	return b.String()
}

// gatherFlags has each command know the flags that all commands have, of which its usage
// tells. cobra does so with the one that is run alone.
func gatherFlags(cmd *cobra.Command) {
	cmd.LocalFlags()
	for _, sub := range cmd.Commands() {
		gatherFlags(sub)
	}
}

// leaves returns the commands below one that do something.
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

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n```\n%s\n```\n", cmd.UseLine())
	first := true
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if first {
			b.WriteString("\n| flag | what |\n|---|---|\n")
			first = false
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.ReplaceAll(usage, "|", `\|`))
	})
}
