package main

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func (c *cli) configCommand() *cobra.Command {
	sample := &cobra.Command{
		Use: "sample", Short: "Print a configuration file with every key and its default", Args: positional(),
		RunE: func(*cobra.Command, []string) error { return writeSample(c.stdout) },
	}
	validate := &cobra.Command{
		Use: "validate", Short: "Check the configuration", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, _, err := c.loadConfig(cmd.Flags())
			if err != nil {
				return err
			}
			for _, warning := range config.warnings() {
				c.warnings().Warn(warning)
			}
			_, err = fmt.Fprintln(c.stdout, "the configuration is good")
			return err
		},
	}
	show := &cobra.Command{Use: "show", Short: "Show what is set, and where", Args: positional(), RunE: c.showConfig}
	addFlags(validate.Flags(), false)
	addFlags(show.Flags(), false)
	return noun("config", "The configuration", sample, validate, show)
}

// writeSample prints every key, its default, its variable and its meaning.
func writeSample(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# selvage.yaml: every key with its default. Nothing here needs to be set.\n" +
		"# Each is an environment variable too, or a file that one names with _FILE;\n" +
		"# those of the top level are flags. Flags go before variables before this file.\n")
	var section []string
	for _, s := range settings() {
		keys := strings.Split(s.path, ".")
		name, within := keys[len(keys)-1], keys[:len(keys)-1]
		indent := strings.Repeat("  ", len(within))
		if len(within) == 0 || slices.Equal(within, section) {
			b.WriteString("\n")
		}
		for i, head := range within {
			if !slices.Equal(within[:i+1], section[:min(i+1, len(section))]) {
				fmt.Fprintf(&b, "\n%s%s:\n", strings.Repeat("  ", i), head)
			}
		}
		section = within
		def := s.def
		if def == "" || strings.ContainsAny(def, ":,") {
			def = fmt.Sprintf("%q", def)
		}
		fmt.Fprintf(&b, "%s# %s\n%s# %s%s\n%s%s: %s\n", indent, sentence(s.help), indent, s.env(), again(s), indent, name, def)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func again(s setting) string {
	if !s.reload {
		return ""
	}
	return " (read again on SIGHUP)"
}

func sentence(help string) string { return strings.ToUpper(help[:1]) + help[1:] + "." }

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
	config, from, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	var shown []shownSetting
	for _, s := range settings() {
		v := shownSetting{s.path, format(fieldOf(reflect.ValueOf(config), s.path)), from[s.path]}
		if v.from == "" {
			v.from = "default"
		}
		if s.secret && v.value != "" {
			v.value = "(secret)"
		}
		shown = append(shown, v)
	}
	return list(c, shownSettings, shown)
}

// fieldOf gives the field of a path of keys.
func fieldOf(v reflect.Value, path string) reflect.Value {
	head, rest, nested := strings.Cut(path, ".")
	i := 0
	for f := range fields(v.Type()) {
		if f.Tag.Get("koanf") == head {
			break
		}
		i++
	}
	if nested {
		return fieldOf(v.Field(i), rest)
	}
	return v.Field(i)
}

// format writes a value without the passwords of a URL.
func format(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", ","), "[]")
	}
	return redact(fmt.Sprint(v.Interface()))
}
