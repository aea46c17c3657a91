package command

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/backups"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/store"
)

// copyView prints the result of a copy.
var copyView = cli.View[backups.Copied]{
	ID: func(r backups.Copied) string { return strconv.FormatInt(r.Rows, 10) }, // -o id prints the number of rows
	JSON: func(r backups.Copied) any {
		return struct {
			Rows    int64        `json:"rows"`
			Changed int          `json:"changed"`
			Tables  []backup.Sum `json:"tables"`
		}{Rows: r.Rows, Changed: r.Changed, Tables: r.Tables}
	},
	Facts: []cli.Fact[backups.Copied]{
		{
			Name: "Rows",
			Value: func(r backups.Copied) string {
				return fmt.Sprintf("%d in %d tables, equal in both databases", r.Rows, len(r.Tables))
			},
		},
		{Name: "Written", Value: func(r backups.Copied) string { return strconv.Itoa(r.Changed) }},
	},
}

const copyHelp = `Copy all rows to another database, and compare the two. Ids, keys, passwords, tokens and logins stay
valid. The target needs the same master key and the same media.

Servers may use the source during the copy. To copy what they change in the meantime, stop them and run
the command again. It then writes only what differs. It also continues a copy that was interrupted. The
target must be empty, or an earlier copy that no server or command has used.`

func (c *commands) copyCommand() *cobra.Command {
	cmd := cli.Command("copy", "Copy all rows to another database, between SQLite and PostgreSQL", c.copyRows)
	cmd.Long = copyHelp
	cmd.Flags().String("from", "", "`URL` of the database to copy, sqlite:FILE or postgres://… (default: database)")
	cmd.Flags().String("to", "", "`URL` of the database to copy to")
	return cmd
}

func (c *commands) copyRows(cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "to"); err != nil {
		return err
	}
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}

	source, err := flagDatabase(cmd, "from", conf.Database, conf.Data)
	if err != nil {
		return err
	}
	target, err := flagDatabase(cmd, "to", "", conf.Data)
	if err != nil {
		return err
	}
	if source.URL == target.URL {
		return cli.Usagef("--from and --to name the same database")
	}

	progress := c.NewProgressLine("row")
	copied, err := backups.Copy(cmd.Context(), source, target, progress)
	progress.End()
	if err != nil {
		return err
	}
	return cli.Show(c.Env, copyView, copied)
}

// flagDatabase returns the database whose URL is the value of a flag, or whose URL is byDefault if the
// value is empty. dir is the directory of SQLite files.
func flagDatabase(cmd *cobra.Command, flag string, byDefault config.DatabaseURL, dir string) (store.Config, error) {
	text, err := cmd.Flags().GetString(flag)
	if err != nil {
		return store.Config{}, err
	}
	url := byDefault
	if text != "" || byDefault == "" {
		if err := url.UnmarshalText([]byte(text)); err != nil {
			return store.Config{}, cli.Usagef("--%s %v", flag, err)
		}
	}
	return store.Config{URL: string(url), Dir: dir}, nil
}
