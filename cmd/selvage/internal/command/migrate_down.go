package command

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/store"
)

var downgradeView = cli.View[store.Downgrade]{
	ID: func(d store.Downgrade) string { return d.Copy },
	JSON: func(d store.Downgrade) any {
		return struct {
			Current  int64    `json:"current"`
			Schema   int64    `json:"schema"`
			Copy     string   `json:"copy,omitempty"`
			Until    cli.Time `json:"copy_until,omitempty"`
			Lost     int      `json:"lost"`
			Breaking []string `json:"breaking"`
		}{
			Current:  d.Current,
			Schema:   d.Schema,
			Copy:     d.Copy,
			Until:    cli.UTC(d.Until),
			Lost:     d.Lost,
			Breaking: append([]string{}, d.Breaking...),
		}
	},
	Facts: []cli.Fact[store.Downgrade]{
		{Name: "Schema", Value: func(d store.Downgrade) string { return strconv.FormatInt(d.Current, 10) }},
		{Name: "Older schema", Value: func(d store.Downgrade) string { return strconv.FormatInt(d.Schema, 10) }},
		{Name: "Copy of it", Value: func(d store.Downgrade) string { return d.Copy }},
		{Name: "Last change in it", Value: func(d store.Downgrade) string { return cli.FormatTime(d.Until) }},
		{
			Name: "Lost",
			Value: func(d store.Downgrade) string {
				if d.Copy == "" {
					return ""
				}
				return cli.Plural(d.Lost, "later change") + " of the audit trail"
			},
		},
		{Name: "Not additive", Value: func(d store.Downgrade) string { return cli.Lines(d.Breaking) }},
	},
}

func (c *commands) downCheckCommand() *cobra.Command {
	cmd := cli.Command("down-check", "Show what it takes to go back to the version before the last update",
		c.downCheck)
	cmd.Long = `Show what it takes to go back to the version of selvage before the last update of the schema. It changes
nothing.

An SQLite database has a copy from before the update: the command opens it and counts the changes that are
later and would be lost. The command fails if there is no copy. It also lists the changes of the schema that
are not additive; without such changes, older nodes keep running while a new node updates the schema.`
	return cmd
}

// downCheck prints what a downgrade needs. It returns an error if there is no copy of the database to go
// back to.
func (c *commands) downCheck(cmd *cobra.Command, _ []string) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}

	if err := checkRows(conf, false); err != nil {
		return err
	}
	d, err := store.CheckDowngrade(cmd.Context(), store.Config{URL: string(conf.Database), Dir: conf.Data})
	if err != nil {
		return err
	}

	if err := cli.Show(c.Env, downgradeView, d); err != nil {
		return err
	}
	if d.Copy != "" {
		return nil
	}
	if conf.Database.Shared() {
		return errors.New("PostgreSQL has no copy from before an update: to go back, restore a backup " +
			"that the older version made, into an empty database")
	}
	return errors.New("the data directory has no copy from before an update: to go back, restore a backup " +
		"that the older version made")
}
