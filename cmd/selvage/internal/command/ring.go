package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/selvage/selvage/keys"
)

var ringView = cli.View[keys.Record]{
	ID: func(r keys.Record) string { return r.Kid },
	JSON: func(r keys.Record) any {
		return struct {
			Kid         string     `json:"kid"`
			Use         keys.Use   `json:"use"`
			State       keys.State `json:"state"`
			CreatedAt   cli.Time   `json:"created_at"`
			ActivatedAt cli.Time   `json:"activated_at,omitempty"`
			RetiredAt   cli.Time   `json:"retired_at,omitempty"`
		}{
			Kid:         r.Kid,
			Use:         r.Use,
			State:       r.State,
			CreatedAt:   cli.UTC(r.Created),
			ActivatedAt: cli.UTC(r.Activated),
			RetiredAt:   cli.UTC(r.Retired),
		}
	},
	Facts: []cli.Fact[keys.Record]{
		{Name: "Kid", Value: func(r keys.Record) string { return r.Kid }},
		{Name: "State", Value: func(r keys.Record) string { return string(r.State) }},
		{Name: "Use", Value: func(r keys.Record) string { return string(r.Use) }},
		{Name: "Created", Minor: true, Value: func(r keys.Record) string { return cli.FormatTime(r.Created) }},
		{Name: "Active since", Value: func(r keys.Record) string { return cli.FormatTime(r.Activated) }},
		{Name: "Retired", Value: func(r keys.Record) string { return cli.FormatTime(r.Retired) }},
	},
}

func (c *commands) ringCommand() *cobra.Command {
	n := noun[keys.Record]{
		commands: c,
		view:     ringView,
		list: func(ctx context.Context, a *app, _ *cobra.Command) ([]keys.Record, error) {
			return a.Store.RingKeys(ctx)
		},
	}
	ls := n.listCommand("list", "List the keys that sign and seal")
	rotate := cli.Command("rotate [USE]", "Activate the next key", c.with(c.rotateRing))
	rotate.Long = `Replace the current signing or sealing key with the next one. USE is RS256, ES256, PS256,
EdDSA or seal; without it, all keys are rotated. A key can be activated once it has been published so
long that every verifier knows it. Everything that the previous key signed or sealed stays valid.

A running server rotates keys by itself: see keys.signing_rotation and keys.sealing_rotation.`
	rotate.Flags().Bool("now", false,
		"do not wait until verifiers know the key; they may reject tokens until they fetch the keys again")

	retire := cli.Command("retire KID", "Revoke a key and everything it signed or sealed, immediately",
		c.with(c.retireKey))
	retire.Long = `Revoke a key that may have leaked. Within two seconds, all nodes reject everything it signed or
sealed, and the next key takes over. A verifier with a cached copy of the JWKS accepts tokens of the key
until the copy expires, after at most five minutes.`
	cli.AddYes(retire)
	return cli.Noun("ring", "The key ring: keys that sign and seal tokens", ls, rotate, retire)
}

// rotateRing rotates the key of the given use, or of all uses. It prints the keys that are now
// active, and returns an error for each use that cannot be rotated yet.
func (c *commands) rotateRing(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	uses := keys.Uses()
	if len(args) > 0 {
		use, err := parseUse(args[0])
		if err != nil {
			return err
		}
		uses = []keys.Use{use}
	}

	now, _ := cmd.Flags().GetBool("now")
	var records []keys.Record
	var errs []error
	for _, use := range uses {
		rec, err := a.Ring.Rotate(ctx, use, now)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		records = append(records, rec)
	}

	if len(records) > 0 {
		errs = append(errs, cli.List(c.Env, ringView, records))
	}
	return errors.Join(errs...)
}

func parseUse(name string) (keys.Use, error) {
	for _, use := range keys.Uses() {
		if strings.EqualFold(name, string(use)) {
			return use, nil
		}
	}
	all := cli.Strings(keys.Uses())
	return "", cli.Usagef("unknown use %q%s", name, suggest.MeantOr(name, all, "use "+strings.Join(all, ", ")))
}

func (c *commands) retireKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	records, err := a.Store.RingKeys(ctx)
	if err != nil {
		return err
	}

	for _, rec := range records {
		if rec.Kid != args[0] {
			continue
		}
		what := fmt.Sprintf("This revokes the %s key %s (%s) forever; everything it signed or sealed is rejected.",
			rec.Use, rec.Kid, rec.State)
		if err := c.Ask(cmd, what, "Type its id to continue: ", rec.Kid); err != nil {
			return err
		}
	}
	return a.Ring.Retire(ctx, args[0])
}
