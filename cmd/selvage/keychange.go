package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/suggest"
)

// A dayOrTime is a flag's value: when a key ends, zero for never.
type dayOrTime time.Time

var _ pflag.Value = (*dayOrTime)(nil)

// Set reads an end: a day begins in UTC.
func (d *dayOrTime) Set(text string) error {
	if text == "never" {
		*d = dayOrTime{}
		return nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil || !at.After(time.Now()) {
		return errors.New("needs a day or time to come, such as 2030-01-31 or 2030-01-31T12:00:00Z, or never")
	}
	*d = dayOrTime(at)
	return nil
}

func (d *dayOrTime) String() string {
	if at := time.Time(*d); !at.IsZero() {
		return at.Format(time.RFC3339)
	}
	return ""
}

// Type is the kind of value, for the help.
func (d *dayOrTime) Type() string { return "day" }

// keyInput returns what the flags say of a key.
func keyInput(cmd *cobra.Command) (in fabric.APIKeyInput, err error) {
	in.Name = text(cmd, "name")
	if cmd.Flags().Changed("scope") {
		names, err := cmd.Flags().GetStringSlice("scope")
		if err != nil {
			return in, err
		}
		if in.Scopes, err = parseScopes(names); err != nil {
			return in, err
		}
	}
	var at time.Time
	switch life, end := cmd.Flags().Lookup("expires-in"), cmd.Flags().Lookup("expires-at"); {
	case life.Changed && end.Changed:
		return in, usagef("--expires-in and --expires-at say the same: give one of them")
	case life.Changed:
		at = time.Now().Add(spanOf(cmd, "expires-in"))
	case end.Changed:
		at = time.Time(*end.Value.(*dayOrTime))
	default:
		return in, nil
	}
	in.Expires = &at
	return in, nil
}

func parseScopes(names []string) ([]fabric.Scope, error) {
	var scopes []fabric.Scope
	for _, name := range names {
		s, ok := fabric.ParseScope(strings.TrimSpace(name))
		if !ok {
			var all []string
			for _, s := range fabric.Scopes() {
				all = append(all, string(s))
			}
			return nil, usagef("--scope: there is no scope %q%s", name,
				suggest.MeantOr(name, all, "there are "+strings.Join(all, ", ")))
		}
		scopes = append(scopes, s)
	}
	return scopes, nil
}

func (a *app) key(ctx context.Context, cmd *cobra.Command, id string) (fabric.APIKey, error) {
	return among(ctx, a, cmd, func(projectID string) (fabric.APIKey, error) {
		return a.Fabric.FindAPIKey(ctx, projectID, id)
	})
}

func (c *cli) showKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	k, err := a.key(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return one(c, apiKeys, apiKey{APIKey: k})
}

func (c *cli) updateKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	in, err := keyInput(cmd)
	if err != nil {
		return err
	}
	k, err := a.key(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if k, err = a.Fabric.UpdateAPIKey(ctx, k.ProjectID, k.ID, in, nil); err != nil {
		return err
	}
	return one(c, apiKeys, apiKey{APIKey: k})
}

func (c *cli) rotateKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	k, err := a.key(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	k, secret, err := a.Fabric.RotateAPIKey(ctx, k.ProjectID, k.ID, spanOf(cmd, "overlap"), nil)
	if err != nil {
		return err
	}
	return one(c, apiKeys, apiKey{k, secret})
}
