package command

import (
	"context"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/selvage/selvage/keys"
	"github.com/spf13/cobra"
	"strings"
)

var ringKeys = cli.View[keys.Record]{
	ID: func(r keys.Record) string { return r.Kid },
	JSON: func(r keys.Record) any {
		return struct {
			Kid         string     `json:"kid"`
			Use         keys.Use   `json:"use"`
			State       keys.State `json:"state"`
			CreatedAt   cli.Time   `json:"created_at"`
			ActivatedAt cli.Time   `json:"activated_at,omitempty"`
			RetiredAt   cli.Time   `json:"retired_at,omitempty"`
		}{r.Kid, r.Use, r.State, cli.UTC(r.Created), cli.UTC(r.Activated), cli.UTC(r.Retired)}
	},
	Facts: []cli.Fact[keys.Record]{
		{Name: "Kid", Value: func(r keys.Record) string { return r.Kid }},
		{Name: "State", Value: func(r keys.Record) string { return string(r.State) }},
		{Name: "Use", Value: func(r keys.Record) string { return string(r.Use) }},
		{Name: "Created", Minor: true, Value: func(r keys.Record) string { return cli.FormatTime(r.Created) }},
		{Name: "In use since", Value: func(r keys.Record) string { return cli.FormatTime(r.Activated) }},
		{Name: "Ended", Value: func(r keys.Record) string { return cli.FormatTime(r.Retired) }},
	},
}

func (c *commands) ringCommand() *cobra.Command {
	ls := &cobra.Command{Use: "list", Short: "List the keys that sign and seal", Args: cli.NoArguments,
		RunE: c.with(c.listRing)}
	rotate := &cobra.Command{
		Use:   "rotate [USE]",
		Short: "Let the next key take over",
		Long: "Lets the next key of a use (RS256, ES256, PS256, EdDSA or seal; all if none is named) take over, once it is\n" +
			"published long enough to be known to everybody. What the key before it made stays good. A running server does this by\n" +
			"itself, see keys.signing_rotation and keys.sealing_rotation.",
		Args: cli.Arguments("[USE]"),
		RunE: c.with(c.rotateRing),
	}
	rotate.Flags().Bool("now", false, "do not wait until verifiers know the key; they may refuse tokens until they ask for keys again")
	retire := &cobra.Command{
		Use:   "retire KID",
		Short: "End a key and all that it made, at once",
		Long: "Ends a key that somebody else may have. What it signed or sealed is refused everywhere within two seconds,\n" +
			"and the next key takes over. Who verifies tokens by a copy of the JWKS takes them for as long as that may\n" +
			"be cached, five minutes at most.",
		Args: cli.Arguments("KID"),
		RunE: c.with(c.retireKey),
	}
	cli.AddYes(retire)
	return cli.Noun("ring", "The key ring: keys that sign and seal tokens", ls, rotate, retire)
}

func (c *commands) listRing(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	records, err := a.Store.RingKeys(ctx)
	if err != nil {
		return err
	}
	return cli.List(c.Env, ringKeys, records)
}

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
		errs = append(errs, cli.List(c.Env, ringKeys, records))
	}
	return errors.Join(errs...)
}

func parseUse(name string) (keys.Use, error) {
	var all []string
	for _, use := range keys.Uses() {
		if strings.EqualFold(name, string(use)) {
			return use, nil
		}
		all = append(all, string(use))
	}
	return "", cli.Usagef("there is no use %q%s", name, suggest.MeantOr(name, all, "there are "+strings.Join(all, ", ")))
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
		what := fmt.Sprintf("This ends the %s key %s (%s) for ever; all that it made is refused from then on.", rec.Use, rec.Kid, rec.State)
		if err := c.Confirm(cmd, what, rec.Kid); err != nil {
			return err
		}
	}
	return a.Ring.Retire(ctx, args[0])
}
