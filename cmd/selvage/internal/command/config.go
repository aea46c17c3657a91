package command

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

func (c *commands) configCommand() *cobra.Command {
	sample := cli.Command("sample", "Print a configuration file with every key and its default",
		func(*cobra.Command, []string) error { return config.Sample(c.Stdout) })
	validate := cli.Command("validate", "Check the configuration", c.validateConfig)
	show := cli.Command("show", "Show each setting and where it comes from", c.showConfig)
	config.AddFlags(validate.Flags(), false)
	config.AddFlags(show.Flags(), false)
	return cli.Noun("config", "The configuration", sample, validate, show)
}

func (c *commands) validateConfig(cmd *cobra.Command, _ []string) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	for _, warning := range conf.Warnings() {
		c.warnings().Warn(warning)
	}
	_, err = fmt.Fprintln(c.Stdout, "the configuration is valid")
	return err
}

// A setting is a key with its value and the source of the value.
type setting struct{ key, value, from string }

var settingView = cli.View[setting]{
	ID: func(s setting) string { return s.key },
	JSON: func(s setting) any {
		return struct {
			Key   string `json:"key"`
			Value string `json:"value"`
			From  string `json:"from"`
		}{Key: s.key, Value: s.value, From: s.from}
	},
	Facts: []cli.Fact[setting]{
		{Name: "Key", Value: func(s setting) string { return s.key }},
		{Name: "Value", Value: func(s setting) string { return s.value }},
		{Name: "From", Value: func(s setting) string { return s.from }},
	},
}

func (c *commands) showConfig(cmd *cobra.Command, _ []string) error {
	conf, from, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	var all []setting
	for _, s := range config.Settings() {
		shown := setting{key: s.Path, value: s.Show(conf), from: cmp.Or(from[s.Path], "default")}
		if s.Secret && shown.value != "" {
			shown.value = "(secret)"
		}
		all = append(all, shown)
	}
	return cli.List(c.Env, settingView, all)
}
