package command

import (
	"context"
	"errors"
	"io/fs"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/store"
)

// A schema is the state of the database schema.
type schema struct {
	database       string
	current, known int64
	previous       string // the copy of the database from before the last migration
}

// state describes what the next start of a server will do with the schema.
func (s schema) state() string {
	switch {
	case s.current == 0:
		return "missing: the next start creates it"
	case s.current < s.known:
		return "older: the next start, or `selvage migrate up`, updates it"
	}
	return "up to date"
}

var schemaView = cli.View[schema]{
	ID: func(s schema) string { return strconv.FormatInt(s.current, 10) },
	JSON: func(s schema) any {
		return struct {
			Current int64  `json:"current"`
			Known   int64  `json:"known"`
			Before  string `json:"copy_of_before,omitempty"`
		}{Current: s.current, Known: s.known, Before: s.previous}
	},
	Facts: []cli.Fact[schema]{
		{Name: "Database", Value: func(s schema) string { return s.database }},
		{Name: "Schema", Value: func(s schema) string { return strconv.FormatInt(s.current, 10) }},
		{Name: "This version", Value: func(s schema) string { return strconv.FormatInt(s.known, 10) }},
		{Name: "State", Value: schema.state},
		{Name: "Copy of previous", Value: func(s schema) string { return s.previous }},
	},
}

func (c *commands) migrateCommand() *cobra.Command {
	status := cli.Command("status",
		"Show the schema of the database and the one this version needs; change nothing",
		func(cmd *cobra.Command, _ []string) error {
			conf, _, err := c.loadConfig(cmd.Flags())
			if err != nil {
				return err
			}
			return c.showSchema(cmd.Context(), conf)
		})
	up := cli.Command("up", "Update the schema, as the start of a server does",
		c.with(func(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
			return c.showSchema(ctx, a.Config)
		}))
	up.Long = `Update the schema, as every start and every command does. An SQLite file is first copied to a
file with the suffix .schema-N; the latest two copies are kept. Run ` + "`selvage backup create`" + `
before you update PostgreSQL.`
	return cli.Noun("migrate", "The schema of the database, and copies in another database",
		status, up, c.downCheckCommand(), c.copyCommand(), c.copyMediaCommand())
}

// showSchema prints the state of the database's schema. The database need not exist.
func (c *commands) showSchema(ctx context.Context, conf config.Config) error {
	r, known, err := store.Look(ctx, store.Config{URL: string(conf.Database), Dir: conf.Data})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s := schema{database: config.Redact(string(conf.Database)), current: r.Schema, known: known}
	if r.File != "" {
		s.previous = store.Before(r.File)
	}
	return cli.Show(c.Env, schemaView, s)
}
