package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/suggest"
	"github.com/selvage/selvage/keys"
)

var ringKeys = view[keys.Record]{
	id: func(r keys.Record) string { return r.Kid },
	json: func(r keys.Record) any {
		return struct {
			Kid         string     `json:"kid"`
			Use         keys.Use   `json:"use"`
			State       keys.State `json:"state"`
			CreatedAt   moment     `json:"created_at"`
			ActivatedAt moment     `json:"activated_at,omitempty"`
			RetiredAt   moment     `json:"retired_at,omitempty"`
		}{r.Kid, r.Use, r.State, iso(r.Created), iso(r.Activated), iso(r.Retired)}
	},
	facts: []fact[keys.Record]{
		{name: "Kid", value: func(r keys.Record) string { return r.Kid }},
		{name: "State", value: func(r keys.Record) string { return string(r.State) }},
		{name: "Use", value: func(r keys.Record) string { return string(r.Use) }},
		{name: "Created", aside: true, value: func(r keys.Record) string { return stamp(r.Created) }},
		{name: "In use since", value: func(r keys.Record) string { return stamp(r.Activated) }},
		{name: "Ended", value: func(r keys.Record) string { return stamp(r.Retired) }},
	},
}

func (c *cli) ringCommand() *cobra.Command {
	ls := &cobra.Command{Use: "list", Short: "List the keys that sign and seal", Args: positional(),
		RunE: c.with(c.listRing)}
	rotate := &cobra.Command{
		Use:   "rotate [USE]",
		Short: "Let the next key take over",
		Long: "Lets the next key of a use (RS256, ES256, PS256, EdDSA or seal; all if none is named) take over, once it is\n" +
			"published long enough to be known to everybody. What the key before it made stays good. A running server does this by\n" +
			"itself, see keys.signing_rotation and keys.sealing_rotation.",
		Args: positional("[USE]"),
		RunE: c.with(c.rotateRing),
	}
	rotate.Flags().Bool("now", false, "do not wait until verifiers know the key; they may refuse tokens until they ask for keys again")
	retire := &cobra.Command{
		Use:   "retire KID",
		Short: "End a key and all that it made, at once",
		Long: "Ends a key that somebody else may have. What it signed or sealed is refused everywhere within two seconds,\n" +
			"and the next key takes over. Who verifies tokens by a copy of the JWKS takes them for as long as that may\n" +
			"be cached, five minutes at most.",
		Args: positional("KID"),
		RunE: c.with(c.retireKey),
	}
	addYes(retire)
	return noun("ring", "The key ring: keys that sign and seal tokens", ls, rotate, retire)
}

func (c *cli) listRing(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	records, err := a.Store.RingKeys(ctx)
	if err != nil {
		return err
	}
	return list(c, ringKeys, records)
}

func (c *cli) rotateRing(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
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
		errs = append(errs, list(c, ringKeys, records))
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
	return "", usagef("there is no use %q%s", name, suggest.MeantOr(name, all, "there are "+strings.Join(all, ", ")))
}

func (c *cli) retireKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	records, err := a.Store.RingKeys(ctx)
	if err != nil {
		return err
	}
	for _, rec := range records {
		if rec.Kid != args[0] {
			continue
		}
		what := fmt.Sprintf("This ends the %s key %s (%s) for ever; all that it made is refused from then on.", rec.Use, rec.Kid, rec.State)
		if err := c.confirm(cmd, what, rec.Kid); err != nil {
			return err
		}
	}
	return a.Ring.Retire(ctx, args[0])
}
