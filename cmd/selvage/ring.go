package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/keys"
)

var ringKeys = view[keys.Record]{
	id: func(r keys.Record) string { return r.Kid },
	json: func(r keys.Record) any {
		return struct {
			Kid       string     `json:"kid"`
			Use       keys.Use   `json:"use"`
			State     keys.State `json:"state"`
			CreatedAt moment     `json:"created_at"`
			RetiredAt moment     `json:"retired_at,omitempty"`
		}{r.Kid, r.Use, r.State, iso(r.Created), iso(r.Retired)}
	},
	facts: []fact[keys.Record]{
		{name: "Kid", value: func(r keys.Record) string { return r.Kid }},
		{name: "State", value: func(r keys.Record) string { return string(r.State) }},
		{name: "Use", value: func(r keys.Record) string { return string(r.Use) }},
		{name: "Created", aside: true, value: func(r keys.Record) string { return stamp(r.Created) }},
		{name: "Retired", value: func(r keys.Record) string { return stamp(r.Retired) }},
	},
}

func (c *cli) ringCommand() *cobra.Command {
	ls := &cobra.Command{Use: "list", Short: "List the keys that sign and seal", Args: positional(), RunE: c.with(c.listRing)}
	return noun("ring", "The key ring: keys that sign and seal tokens", ls)
}

func (c *cli) listRing(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	records, err := a.store.RingKeys(ctx)
	if err != nil {
		return err
	}
	return list(c, ringKeys, records)
}
