// Package command holds the commands of selvage. Each noun has a file with its commands and the way
// its items are printed. Package cli implements arguments and output.
//
// A command reads the configuration, opens the services with package server, and calls them.
package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/console"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/internal/audit"
)

// commands builds the commands of one command line.
type commands struct {
	*cli.Env
	build Build
}

// Run runs the command line args, which do not include the program's name. Apart from e and the
// current user, it uses no process state.
func Run(ctx context.Context, e *cli.Env, b Build, args []string) error {
	root := Root(e, b)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // a shell requests completions
		completeFlags(root)
	}
	root.SetArgs(args)
	root.SetIn(e.Stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return cli.FailedIn(cmd, err)
}

// Root returns the command selvage with all commands below it.
func Root(e *cli.Env, b Build) *cobra.Command {
	c := &commands{e, b}
	root := &cobra.Command{
		Use:           "selvage",
		Short:         "Subscriber identity, fabric tokens and recordings, on your own machine",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cli.KnownCommand,
		RunE:          cli.Help,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			actor := audit.Actor{Kind: audit.CLI, ID: localUser()}
			cmd.SetContext(audit.With(cmd.Context(), &audit.Origin{Actor: actor}))
			return e.CheckOutput()
		},
	}

	flags := root.PersistentFlags()
	flags.String("config", "", "configuration `file` (default selvage.yaml, if it exists)")
	flags.StringVarP(&e.Output, "output", "o", "table", "output `format`: table, json or id")
	config.AddFlags(flags, true)
	flags.SortFlags = false
	root.SetFlagErrorFunc(cli.FlagError)

	root.AddCommand(
		c.serveCommand(),
		c.demoCommand(),
		c.projectCommand(),
		operatorCommands{c}.command(),
		c.keyCommand(),
		c.ingestKeyCommand(),
		c.clientRegistrationCommand(),
		clientCommands{c}.command(),
		subscriberCommands{c}.command(),
		c.resourceCommand(),
		gatewayCommands{c}.command(),
		c.numberCommand(),
		c.addressCommand(),
		tokenCommands{c}.command(),
		upstreamCommands{c}.command(),
		webhookCommands{c}.command(),
		c.mailCommand(),

		c.callCommand(),
		c.roomCommand(),
		recordingCommands{c}.command(),
		auditCommands{c}.command(),
		c.ringCommand(),
		masterKeyCommands{c}.command(),
		caCommands{c}.command(),
		c.configCommand(),
		applyCommands{c}.command(),
		c.migrateCommand(),
		backupCommands{c}.command(),
		c.exportCommand(),
		c.importCommand(),
		doctorCommands{c}.command(),
		c.topCommand(),
		c.manCommand(),
		c.versionCommand(),
		c.hashesCommand(),
	)
	addCompletion(root)
	addHelp(root)
	return root
}

// addHelp adds the command help, which rejects the names of unknown commands.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return // the line above has added this command
	}
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil {
			return err
		}
		if cmd.HasSubCommands() {
			err = cli.KnownCommand(cmd, rest)
		}
		if err != nil {
			return err
		}
		cmd.InitDefaultHelpFlag()
		return cmd.Help()
	}
}

// localUser returns the user of this machine who runs the command, for the audit trail.
func localUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// An app holds the services, and has methods that find the items that a command's arguments name.
type app struct{ *server.App }

// An action is the function of a command, which uses the services.
type action func(ctx context.Context, a *app, cmd *cobra.Command, args []string) error

// A runner is the function that cobra calls for a command. It opens the services itself.
type runner func(*cobra.Command, []string) error

// with returns a runner that opens the services, without the media of recordings, and calls do.
func (c *commands) with(do action) runner { return c.run(do, false) }

// withMedia returns a runner that opens the services and the media of recordings, and calls do.
func (c *commands) withMedia(do action) runner { return c.run(do, true) }

// run returns a runner that opens the services and calls do.
func (c *commands) run(do action, media bool) runner {
	return func(cmd *cobra.Command, args []string) error {
		conf, _, err := c.loadConfig(cmd.Flags())
		if err != nil {
			return err
		}
		dry, _ := cmd.Flags().GetBool("dry-run") // most commands do not have the flag
		mayCreate := slices.Contains(beginnings, cli.Name(cmd)) && !dry
		if err := checkRows(conf, mayCreate); err != nil {
			return err
		}
		if media && !conf.Services.Has(config.Recordings) {
			return cli.Usagef("%s needs a node that serves recordings, but services is %s", cli.Name(cmd),
				strings.Join(conf.Services, ","))
		}
		return c.open(cmd.Context(), conf, server.Options{Media: media}, func(a *app) error {
			return do(cmd.Context(), a, cmd, args)
		})
	}
}

// loadConfig reads the configuration of a command line. An invalid configuration is a usage error.
func (c *commands) loadConfig(flags *pflag.FlagSet) (config.Config, config.Origins, error) {
	conf, from, err := config.Load(flags, c.Getenv, c.Environ)
	if err != nil {
		return config.Config{}, nil, cli.Usage(err)
	}
	return conf, from, nil
}

// open opens the services with a configuration, calls do, and closes the services.
func (c *commands) open(ctx context.Context, conf config.Config, o server.Options, do func(a *app) error) error {
	o.Log = c.warnings()
	a, err := server.Open(ctx, conf, config.LocateRunning(conf), o)
	if err != nil {
		return err
	}
	return errors.Join(do(&app{a}), a.Close())
}

// beginnings are the commands that may create an installation in an existing data directory. serve,
// apply, project create and backup restore also create the directory.
var beginnings = []string{"import", "migrate up", "operator create", "operator setup-link"}

// packageConfig is the configuration file of the Debian package.
const packageConfig = "/etc/selvage/selvage.yaml"

// checkRows returns an error if the database is in a data directory that is missing or unusable. It
// also returns an error if the database is a missing file, unless the command may create it.
func checkRows(c config.Config, mayCreate bool) error {
	if c.Database.Shared() {
		return nil
	}
	if _, err := os.Stat(c.Data); errors.Is(err, fs.ErrNotExist) {
		return noDirectory(c.Data)
	}
	if err := datadir.Check(c.Data); err != nil || mayCreate {
		return err
	}
	if _, err := os.Stat(c.DatabaseFile()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no installation in %s, because %s does not exist: name another directory with --data, "+
			"or start with `selvage serve` or `selvage project create`", c.Data, c.DatabaseFile())
	}
	return nil
}

// noDirectory returns the error for a missing data directory.
func noDirectory(dir string) error {
	if _, err := os.Stat(packageConfig); err == nil {
		return fmt.Errorf("no data directory %s: use --config %s for the server of the package, --data for any other",
			dir, packageConfig)
	}
	return fmt.Errorf("no data directory %s: name the server's with --data or its database with --database, "+
		"or start with `selvage serve` or `selvage project create`", dir)
}

// warnings returns a logger for commands, which prints only warnings and errors.
func (c *commands) warnings() *slog.Logger {
	return console.NewLogger(c.Stderr, "text", slog.LevelWarn)
}
