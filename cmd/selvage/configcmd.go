package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

func (c *cli) configCommand() *cobra.Command {
	sample := &cobra.Command{
		Use: "sample", Short: "Print a configuration file with every key and its default", Args: positional(),
		RunE: func(*cobra.Command, []string) error { return config.Sample(c.stdout) },
	}
	validate := &cobra.Command{
		Use: "validate", Short: "Check the configuration", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, _, err := c.loadConfig(cmd.Flags())
			if err != nil {
				return err
			}
			for _, warning := range conf.Warnings() {
				c.warnings().Warn(warning)
			}
			_, err = fmt.Fprintln(c.stdout, "the configuration is good")
			return err
		},
	}
	show := &cobra.Command{Use: "show", Short: "Show what is set, and where", Args: positional(), RunE: c.showConfig}
	config.AddFlags(validate.Flags(), false)
	config.AddFlags(show.Flags(), false)
	return noun("config", "The configuration", sample, validate, show)
}

// loadConfig reads the configuration of a command line.
func (c *cli) loadConfig(flags *pflag.FlagSet) (config.Config, config.Origins, error) {
	conf, from, err := config.Load(flags, c.getenv, c.environ)
	if err != nil {
		return config.Config{}, nil, usageError{err}
	}
	return conf, from, nil
}

// A shownSetting is a key with its value and where that comes from.
type shownSetting struct{ key, value, from string }

var shownSettings = view[shownSetting]{
	id: func(s shownSetting) string { return s.key },
	json: func(s shownSetting) any {
		return struct {
			Key   string `json:"key"`
			Value string `json:"value"`
			From  string `json:"from"`
		}{s.key, s.value, s.from}
	},
	facts: []fact[shownSetting]{
		{name: "Key", value: func(s shownSetting) string { return s.key }},
		{name: "Value", value: func(s shownSetting) string { return s.value }},
		{name: "From", value: func(s shownSetting) string { return s.from }},
	},
}

func (c *cli) showConfig(cmd *cobra.Command, _ []string) error {
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
	return list(c, shownSettings, shown)
}
