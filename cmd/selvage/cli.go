package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/console"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/internal/suggest"
)

// A cli is one command line: where it reads and writes.
type cli struct {
	program        string // as it was called
	getenv         func(string) string
	environ        []string // the variables that getenv knows, NAME=value
	stdin          io.Reader
	stdout, stderr io.Writer
	output         string // table, json or id
}

func (c *cli) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "selvage",
		Short:         "Subscriber identity, fabric tokens and recordings, on your own machine",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetContext(audit.With(cmd.Context(),
				&audit.Origin{Actor: audit.Actor{Kind: audit.CLI, ID: whoAmI()}}))
			if formats := []string{"table", "json", "id"}; !slices.Contains(formats, c.output) {
				return usagef("-o: there is no format %q%s", c.output,
					suggest.MeantOr(c.output, formats, "there are "+strings.Join(formats, ", ")))
			}
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.String("config", "", "configuration `file` (default selvage.yaml, where there is one)")
	flags.StringVarP(&c.output, "output", "o", "table", "`format` to print in: table, json or id")
	config.AddFlags(flags, true)
	flags.SortFlags = false
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		c.serveCommand(), c.demoCommand(), c.projectCommand(), c.operatorCommand(), c.keyCommand(),
		c.clientCommand(), c.subscriberCommand(),
		c.resourceCommand(), c.addressCommand(), c.tokenCommand(), c.webhookCommand(), c.mailCommand(),
		c.recordingCommand(), c.auditCommand(), c.ringCommand(), c.caCommand(), c.configCommand(),
		c.applyCommand(), c.migrateCommand(), c.doctorCommand(), c.manCommand(), c.versionCommand(),
		c.hashesCommand(),
	)
	addCompletion(root)
	return root
}

// noun returns the command that holds the verbs of a noun.
func noun(name, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  knownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// knownVerb refuses what is no sub-command.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usagef("there is no command %q%s", cmd.CommandPath()+" "+args[0],
		suggest.MeantOr(args[0], names, fmt.Sprintf("`%s --help` lists them", cmd.CommandPath())))
}

// positional checks that a command has the arguments of these names; the last
// may end in "…" and be many, or stand in brackets and be left out.
func positional(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		many := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "…")
		optional := len(args) == len(names)-1 && strings.HasPrefix(names[len(args)], "[")
		switch {
		case len(args) < len(names) && !optional:
			return usagef("%s needs %s; `%s --help` tells more", verb(cmd), names[len(args)], cmd.CommandPath())
		case slices.Contains(args, ""):
			return usagef("%s needs %s, which is empty here", verb(cmd),
				strings.Trim(names[min(slices.Index(args, ""), len(names)-1)], "[]"))
		case len(args) > len(names) && !many:
			return usagef("%s takes no argument %q; `%s --help` tells more", verb(cmd), args[len(names)],
				cmd.CommandPath())
		}
		return nil
	}
}

// verb names a command in a sentence, which begins with the name of the program.
func verb(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// flagError explains what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &bad):
		f := bad.GetFlag()
		needs := map[string]string{"bool": "needs true or false", "int64": "needs a whole number"}[f.Value.Type()]
		if needs == "" {
			needs = errors.Unwrap(bad).Error()
		}
		return usagef("--%s %s; it is %q", f.Name, needs, bad.GetValue())
	case !errors.As(err, &unknown):
		return usagef("%w; `%s --help` lists the flags", err, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	name := "--" + unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		name = "-" + unknown.GetSpecifiedName()
	}
	return usagef("there is no flag %s of `%s`%s", name, cmd.CommandPath(),
		suggest.MeantOr(name, names, fmt.Sprintf("`%s --help` lists them", cmd.CommandPath())))
}

// need refuses a command line without one of the flags.
func need(cmd *cobra.Command, flags ...string) error {
	var errs []error
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); !f.Changed {
			errs = append(errs, usagef("%s needs --%s: %s", verb(cmd), name, strings.ReplaceAll(f.Usage, "`", "")))
		}
	}
	return errors.Join(errs...)
}

// spanOf returns what a flag says that is a span.
func spanOf(cmd *cobra.Command, flag string) time.Duration {
	return cmd.Flags().Lookup(flag).Value.(*span.Span).Length
}

// with runs a command over the services. Rows that lie in the data directory must
// be there.
func (c *cli) with(do command) func(*cobra.Command, []string) error { return c.run(do, false) }

// withMedia runs a command over the services and the media of recordings.
func (c *cli) withMedia(do command) func(*cobra.Command, []string) error { return c.run(do, true) }

// An app is the services, with what commands look up by their arguments.
type app struct{ *server.App }

// A command does what its command line says.
type command func(ctx context.Context, a *app, cmd *cobra.Command, args []string) error

func (c *cli) run(do command, media bool) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		conf, _, err := c.loadConfig(cmd.Flags())
		if err != nil {
			return err
		}
		if err := checkRows(conf); err != nil {
			return err
		}
		if media && !conf.Services.Has(config.Recordings) {
			return usagef("%s needs a node that serves recordings, and services here are %s", verb(cmd),
				strings.Join(conf.Services, ","))
		}
		return c.over(cmd.Context(), conf, server.Options{Media: media}, func(a *app) error {
			return do(cmd.Context(), a, cmd, args)
		})
	}
}

// packaged is the configuration of the server that a Debian package brings.
const packaged = "/etc/selvage/selvage.yaml"

// checkRows tells early and plainly where rows should lie in the data directory
// and cannot.
func checkRows(c config.Config) error {
	if c.Database.Shared() {
		return nil
	}
	if _, err := os.Stat(c.Data); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(packaged); err == nil {
			return fmt.Errorf("there is no data directory %s: the server of the package is meant by --config %s, others by --data", c.Data, packaged)
		}
		return fmt.Errorf("there is no data directory %s: name the server's with --data or its database with --database, "+
			"or begin with `selvage serve` or `selvage project create`", c.Data)
	}
	return datadir.Check(c.Data)
}

// warnings returns what commands say beside their output.
func (c *cli) warnings() *slog.Logger { return console.NewLogger(c.stderr, "text", slog.LevelWarn) }

// over runs something over the services of a configuration.
func (c *cli) over(ctx context.Context, conf config.Config, o server.Options, do func(a *app) error) error {
	o.Log = c.warnings()
	a, err := server.Open(ctx, conf, config.LocateBeside(conf), o)
	if err != nil {
		return err
	}
	return errors.Join(do(&app{a}), a.Close())
}

// notFoundf is an error of something that is not there.
func notFoundf(format string, args ...any) error {
	return problem.New(problem.NotFound, "not_found", format, args...)
}
