package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	koanfmaps "github.com/knadh/koanf/maps"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// defaultFile is the configuration file that is read if it is there.
const defaultFile = "selvage.yaml"

// A value is a text from somewhere.
type value struct {
	at   string // where it stands: --listen, SELVAGE_LISTEN, selvage.yaml:3:1
	text string
}

// keyAt names the key and where it is set; a flag says both.
func (v value) keyAt(path string) string {
	if strings.HasPrefix(v.at, "--") {
		return v.at
	}
	return v.at + ": " + path
}

// A layer is what one source sets, by the path of the key.
type layer map[string]value

// origins tells where each value of a [Config] came from.
type origins map[string]string

// set reports whether somebody set a key.
func (o origins) set(path string) bool { return o[path] != "" }

// keyAt names a key, and where it is set if it is.
func (o origins) keyAt(path string) string {
	if !o.set(path) {
		return path
	}
	return value{at: o[path]}.keyAt(path)
}

// loadConfig reads the configuration from all its sources. What is wrong in any
// of them is gathered.
func (c *cli) loadConfig(flags *pflag.FlagSet) (Config, origins, error) {
	file, fileErr := fileLayer(c.getenv, flags)
	env, envErr := envLayer(c.getenv, c.environ)
	k, from := koanf.New("."), make(origins)
	errs := []error{fileErr, envErr, load(k, defaults(), nil)}
	for _, l := range []layer{file, env, flagLayer(flags)} {
		errs = append(errs, load(k, l, from))
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, nil, usageError{err}
	}
	var config Config
	if err := k.Unmarshal("", &config); err != nil {
		return Config{}, nil, fmt.Errorf("reading configuration: %w", err)
	}
	if err := config.check(from); err != nil {
		return Config{}, nil, usageError{err}
	}
	return config, from, nil
}

// load merges the values of a layer into k and notes where they came from.
func load(k *koanf.Koanf, l layer, from origins) error {
	typed := make(map[string]any)
	var errs []error
	for _, s := range settings() {
		v, ok := l[s.path]
		if !ok {
			continue
		}
		parsed, err := s.parse(v.text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %w%s", v.keyAt(s.path), err, s.quote(v.text)))
		}
		typed[s.path] = parsed
		if from != nil {
			from[s.path] = v.at
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return k.Load(nested(typed), nil)
}

// quote shows a value that was refused, unless it is long or may hold a secret,
// as user:secret@host and password=secret do.
func (s setting) quote(text string) string {
	if s.secret || len(text) > 60 || strings.ContainsAny(text, "@=") {
		return ""
	}
	return fmt.Sprintf("; it is %q", text)
}

// nested is a koanf.Provider of values by path.
type nested map[string]any

func (n nested) Read() (map[string]any, error) { return koanfmaps.Unflatten(n, "."), nil }

func (n nested) ReadBytes() ([]byte, error) { return nil, errors.New("there are no bytes") }

func defaults() layer {
	l := make(layer)
	for _, s := range settings() {
		if s.def != "" {
			l[s.path] = value{"default", s.def}
		}
	}
	return l
}

// envLayer reads the environment: a variable, or the file that it names.
func envLayer(getenv func(string) string, environ []string) (layer, error) {
	l := make(layer)
	errs := []error{unknownVariables(environ)}
	for _, s := range settings() {
		name := s.env()
		text, file := getenv(name), getenv(name+"_FILE")
		switch {
		case text != "" && file != "":
			errs = append(errs, fmt.Errorf("%s and %s_FILE are both set; unset one", name, name))
		case text != "":
			l[s.path] = value{name, text}
		case file != "":
			content, err := os.ReadFile(file)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s_FILE: %w", name, err))
				continue
			}
			l[s.path] = value{name + "_FILE", strings.TrimSpace(string(content))}
		}
	}
	return l, errors.Join(errs...)
}

func flagLayer(flags *pflag.FlagSet) layer {
	l := make(layer)
	for _, s := range settings() {
		name, ok := s.flag()
		if f := flags.Lookup(name); ok && f != nil && f.Changed {
			l[s.path] = value{"--" + name, f.Value.String()}
		}
	}
	return l
}

// fileLayer reads the file of --config or SELVAGE_CONFIG, or selvage.yaml if it
// is there.
func fileLayer(getenv func(string) string, flags *pflag.FlagSet) (layer, error) {
	name := getenv("SELVAGE_CONFIG")
	if f := flags.Lookup("config"); f != nil && f.Changed {
		name = f.Value.String()
	}
	if name == "" {
		if _, err := os.Stat(defaultFile); err != nil {
			return nil, nil
		}
		name = defaultFile
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	return parseFile(name, text)
}

// paths lists all keys, sections included, for suggestions.
func paths() []string {
	all := make(map[string]bool)
	for _, s := range settings() {
		all[s.path] = true
		for i, letter := range s.path {
			if letter == '.' {
				all[s.path[:i]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
