package command

import (
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/spf13/cobra"
)

func (c *commands) configCommand() *cobra.Command {
	sample := &cobra.Command{
		Use: "sample", Short: "Print a configuration file with every key and its default", Args: cli.NoArguments,
		RunE: func(*cobra.Command, []string) error { return config.Sample(c.Stdout) },
	}
	validate := &cobra.Command{
		Use: "validate", Short: "Check the configuration", Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, _, err := c.loadConfig(cmd.Flags())
			if err != nil {
				return err
			}
			for _, warning := range conf.Warnings() {
				c.warnings().Warn(warning)
			}
			_, err = fmt.Fprintln(c.Stdout, "the configuration is good")
			return err
		},
	}
	show := &cobra.Command{Use: "show", Short: "Show what is set, and where", Args: cli.NoArguments, RunE: c.showConfig}
	config.AddFlags(validate.Flags(), false)
	config.AddFlags(show.Flags(), false)
	return cli.Noun("config", "The configuration", sample, validate, show)
}

// A shownSetting is a key with its value and where that comes from.
type shownSetting struct{ key, value, from string }

var shownSettings = cli.View[shownSetting]{
	ID: func(s shownSetting) string { return s.key },
	JSON: func(s shownSetting) any {
		return struct {
			Key   string `json:"key"`
			Value string `json:"value"`
			From  string `json:"from"`
		}{s.key, s.value, s.from}
	},
	Facts: []cli.Fact[shownSetting]{
		{Name: "Key", Value: func(s shownSetting) string { return s.key }},
		{Name: "Value", Value: func(s shownSetting) string { return s.value }},
		{Name: "From", Value: func(s shownSetting) string { return s.from }},
	},
}

func (c *commands) showConfig(cmd *cobra.Command, _ []string) error {
	conf, from, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	var shown []shownSetting
	for _, s := range config.Settings() {
		v := shownSetting{s.Path, s.Show(conf), from[s.Path]}
		if v.from == "" {
			v.from = "default"
		}
		if s.Secret && v.value != "" {
			v.value = "(secret)"
		}
		shown = append(shown, v)
	}
	return cli.List(c.Env, shownSettings, shown)
}
