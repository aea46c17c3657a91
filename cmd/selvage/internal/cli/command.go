package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/suggest"
)

// Noun returns a command that only groups the commands of a noun. By itself, it prints its help.
func Noun(name, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: KnownCommand, RunE: Help}
	cmd.AddCommand(verbs...)
	return cmd
}

// Help runs a command by printing its help.
func Help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// Command returns a command that runs do. use consists of the command's name and the names of its
// arguments, such as "show ID". The last argument may be optional ("[ID]") or repeatable ("ID…").
func Command(use, short string, do func(*cobra.Command, []string) error) *cobra.Command {
	names := strings.Fields(use)[1:]
	return &cobra.Command{Use: use, Short: short, Args: Arguments(names...), RunE: do}
}

// KnownCommand rejects arguments to a command that only has sub-commands.
func KnownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	path := cmd.CommandPath()
	hint := suggest.MeantOr(args[0], names, fmt.Sprintf("`%s --help` lists the commands", path))
	return Usagef("unknown command %q%s", path+" "+args[0], hint)
}

// NoArguments rejects all arguments, for a command whose usage line shows flags.
var NoArguments = Arguments()

// Arguments returns a check that a command gets the named arguments. Their names are as in Command.
func Arguments(names ...string) cobra.PositionalArgs {
	last := ""
	if len(names) > 0 {
		last = names[len(names)-1]
	}
	repeatable := strings.HasSuffix(strings.TrimSuffix(last, "]"), "…")
	return func(cmd *cobra.Command, args []string) error {
		optional := len(args) == len(names)-1 && strings.HasPrefix(names[len(args)], "[")
		switch {
		case len(args) < len(names) && !optional:
			return Usagef("%s needs %s; see `%s --help`", Name(cmd), names[len(args)], cmd.CommandPath())
		case len(args) > len(names) && !repeatable:
			return Usagef("%s takes no argument %q; see `%s --help`", Name(cmd), args[len(names)], cmd.CommandPath())
		case slices.Contains(args, ""):
			empty := names[min(slices.Index(args, ""), len(names)-1)]
			return Usagef("%s needs %s, but it is empty", Name(cmd), strings.Trim(empty, "[]"))
		}
		return nil
	}
}

// Name returns the name of a command with its parents but without the program: "project create".
func Name(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}
