package command

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/keys"
)

var masterView = cli.View[keys.MasterRecord]{
	ID: func(m keys.MasterRecord) string { return m.Fingerprint },
	JSON: func(m keys.MasterRecord) any {
		return struct {
			Generation  int64    `json:"generation"`
			Fingerprint string   `json:"fingerprint"`
			Leaked      bool     `json:"leaked"`
			ReplacedAt  cli.Time `json:"replaced_at,omitempty"`
			ResealedAt  cli.Time `json:"resealed_at,omitempty"`
		}{
			Generation:  m.Generation,
			Fingerprint: m.Fingerprint,
			Leaked:      m.Leaked,
			ReplacedAt:  cli.UTC(m.Replaced),
			ResealedAt:  cli.UTC(m.Resealed),
		}
	},
	Facts: []cli.Fact[keys.MasterRecord]{
		{Name: "Fingerprint", Value: func(m keys.MasterRecord) string { return m.Fingerprint }},
		{Name: "Generation", Value: func(m keys.MasterRecord) string { return strconv.FormatInt(m.Generation, 10) }},
		{Name: "State", Value: masterState},
		{Name: "Replaced", Value: func(m keys.MasterRecord) string { return cli.FormatTime(m.Replaced) }},
	},
}

// masterState describes whether a master key is still in use.
func masterState(m keys.MasterRecord) string {
	switch {
	case m.Replaced.IsZero():
		return "in use"
	case m.Leaked:
		return "leaked"
	}
	return "replaced"
}

const rotateMasterHelp = `Replace the master key while servers run. Nobody is signed out, and all tokens stay valid. The
audit trail stays verifiable: the new key authenticates the end of the part that was written with the old one.

With SQLite, the command creates the new key, and the server switches to it within a second. With PostgreSQL,
give the new key to every node first: run ` + "`selvage master-key prepare`" + ` on one node, and copy its
master.key.next into the data directory of each node, or set master_key_next on each. A node without the
new key makes no changes until it gets it.

The old key stays in the data directory as master.key.FINGERPRINT, because older backups need it.
After a leak, use --leaked, and do what docs/keys.md says.`

// masterKeyCommands implements the commands for the master key.
type masterKeyCommands struct{ *commands }

func (c masterKeyCommands) command() *cobra.Command {
	listMasters := func(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
		return c.listMasters(ctx, a)
	}
	ls := cli.Command("list", "List the master keys that the installation has had, by their fingerprints",
		c.with(listMasters))
	prepare := cli.Command("prepare", "Create the next master key in the data directory, to copy it to other nodes",
		c.prepareMaster)
	rotate := cli.Command("rotate", "Replace the master key, while servers run", c.with(c.rotateMaster))
	rotate.Long = rotateMasterHelp
	rotate.Flags().Bool("leaked", false, "the old key may have leaked: stop accepting anything that it authenticated")
	cli.AddYes(rotate)
	return cli.Noun("master-key", "The key that encrypts the key ring and all secrets", ls, prepare, rotate)
}

// listMasters prints the master keys. Before the first rotation, the store has no record of the
// current one.
func (c masterKeyCommands) listMasters(ctx context.Context, a *app) error {
	records, err := a.Store.MasterKeys(ctx)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		_, fingerprint := a.Ring.BackupKey()
		records = []keys.MasterRecord{{Fingerprint: fingerprint}}
	}
	return cli.List(c.Env, masterView, records)
}

// prepareMaster creates the next master key, unless its file exists.
func (c masterKeyCommands) prepareMaster(cmd *cobra.Command, _ []string) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	key, err := keys.ReadMaster(conf.NextMasterFile())
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Stdout, "The next master key, with the fingerprint %s, is in %s. Copy it to every node.\n",
		keys.Fingerprint(key), conf.NextMasterFile())
	return nil
}

// rotateMaster replaces the master key, and seals the secrets again with the new one.
func (c masterKeyCommands) rotateMaster(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	_, old := a.Ring.BackupKey()
	next, err := nextMaster(a.Config)
	if err != nil {
		return err
	}
	leaked, _ := cmd.Flags().GetBool("leaked")
	fingerprint := keys.Fingerprint(next)
	what := fmt.Sprintf("This replaces the master key %s with %s.", old, fingerprint)
	if err := c.Ask(cmd, what, "Type the new fingerprint to continue: ", fingerprint); err != nil {
		return err
	}
	if err := a.ReplaceMaster(ctx, next, leaked); err != nil {
		return err
	}

	progress := c.NewProgressLine("table")
	resealed, err := a.Reseal(ctx, func(string) { progress.Step() })
	progress.End()
	if err != nil {
		return fmt.Errorf("the new master key is in use, but some secrets are not sealed with it: %w", err)
	}
	fmt.Fprintf(c.Stderr, "Sealed %s with the new key. Keep a copy of %s elsewhere.\n",
		cli.Plural(resealed, "secret"), masterKeyOf(a.Config))
	return c.listMasters(ctx, a)
}

// nextMaster returns the next master key. With SQLite, it creates the key if it is missing.
func nextMaster(conf config.Config) ([]byte, error) {
	if conf.MasterKeyNext != "" {
		return keys.ParseMaster(string(conf.MasterKeyNext))
	}
	if conf.MasterKey != "" {
		return nil, cli.Usagef("the master key comes from the configuration: set master_key_next on every node first")
	}

	all, err := conf.MasterKeys()
	if err != nil {
		return nil, err
	}
	if len(all) < 2 && conf.Database.Shared() {
		return nil, cli.Usagef("run `selvage master-key prepare` first, and copy %s to every node",
			conf.NextMasterFile())
	}

	next, err := keys.ReadMaster(conf.NextMasterFile())
	if err != nil {
		return nil, err
	}
	if len(all) > 0 && bytes.Equal(next, all[0]) {
		return nil, fmt.Errorf("%s holds the master key that is already in use", conf.NextMasterFile())
	}
	return next, nil
}
