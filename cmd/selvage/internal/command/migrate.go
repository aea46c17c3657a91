package command

import (
	"context"
	"errors"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/store"
	"github.com/spf13/cobra"
	"io/fs"
	"strconv"
)

// A schema is the state of the database, as it is printed.
type schema struct {
	database       string
	current, known int64
	before         string // a copy of it
}

// state says what a start would do.
func (s schema) state() string {
	switch {
	case s.current == 0:
		return "none yet: a start makes it"
	case s.current < s.known:
		return "older: the next start, or `selvage migrate up`, changes it"
	}
	return "as this version has it"
}

var schemas = cli.View[schema]{
	ID: func(s schema) string { return strconv.FormatInt(s.current, 10) },
	JSON: func(s schema) any {
		return struct {
			Current int64  `json:"current"`
			Known   int64  `json:"known"`
			Before  string `json:"copy_of_before,omitempty"`
		}{s.current, s.known, s.before}
	},
	Facts: []cli.Fact[schema]{
		{Name: "Database", Value: func(s schema) string { return s.database }},
		{Name: "Schema", Value: func(s schema) string { return strconv.FormatInt(s.current, 10) }},
		{Name: "This version", Value: func(s schema) string { return strconv.FormatInt(s.known, 10) }},
		{Name: "State", Value: schema.state},
		{Name: "Copy of before", Value: func(s schema) string { return s.before }},
	},
}

func (c *commands) migrateCommand() *cobra.Command {
	status := &cobra.Command{
		Use: "status", Short: "Show which schema the database has, and which this version makes; changes nothing", Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, _, err := c.loadConfig(cmd.Flags())
			if err != nil {
				return err
			}
			return c.showSchema(cmd.Context(), conf)
		},
	}
	up := &cobra.Command{
		Use: "up", Short: "Bring the schema up to date, as a start does", Args: cli.NoArguments,
		Long: "Brings the schema up to date, as every start and every command does. An SQLite file is copied beside itself\n" +
			"first, under its name and .schema-N, of which two stay; of PostgreSQL make a copy with pg_dump.",
		RunE: c.with(func(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
			return c.showSchema(ctx, a.Config)
		}),
	}
	return cli.Noun("migrate", "The schema of the database", status, up)
}

// showSchema looks at the database.
func (c *commands) showSchema(ctx context.Context, conf config.Config) error {
	s := schema{database: config.Redact(string(conf.Database))}
	r, known, err := store.Look(ctx, store.Config{URL: string(conf.Database), Dir: conf.Data})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.current, s.known = r.Schema, known
	if r.File != "" {
		s.before = store.Before(r.File)
	}
	return cli.Show(c.Env, schemas, s)
}
