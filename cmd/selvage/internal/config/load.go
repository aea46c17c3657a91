package config

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

// Origins tells where each value of a [Config] came from.
type Origins map[string]string

// set reports whether somebody set a key.
func (o Origins) set(path string) bool { return o[path] != "" }

// keyAt names a key, and where it is set if it is.
func (o Origins) keyAt(path string) string {
	if !o.set(path) {
		return path
	}
	return value{at: o[path]}.keyAt(path)
}

// Load reads the configuration from all its sources: flags, the environment, whose
// variables are environ and what getenv gives, and the file that one of them names. What is
// wrong in any of them is gathered.
func Load(flags *pflag.FlagSet, getenv func(string) string, environ []string) (Config, Origins, error) {
	file, fileErr := fileLayer(getenv, flags)
	env, envErr := envLayer(getenv, environ)
	k, from := koanf.New("."), make(Origins)
	errs := []error{fileErr, envErr, load(k, defaults(), nil)}
	for _, l := range []layer{file, env, flagLayer(flags)} {
		errs = append(errs, load(k, l, from))
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, nil, err
	}
	var config Config
	if err := k.Unmarshal("", &config); err != nil {
		return Config{}, nil, fmt.Errorf("reading configuration: %w", err)
	}
	if err := config.check(from); err != nil {
		return Config{}, nil, err
	}
	return config, from, nil
}

// load merges the values of a layer into k and notes where they came from.
func load(k *koanf.Koanf, l layer, from Origins) error {
	typed := make(map[string]any)
	var errs []error
	for _, s := range Settings() {
		v, ok := l[s.Path]
		if !ok {
			continue
		}
		parsed, err := s.parse(v.text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %w%s", v.keyAt(s.Path), err, s.quote(v.text)))
		}
		typed[s.Path] = parsed
		if from != nil {
			from[s.Path] = v.at
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return k.Load(nested(typed), nil)
}

// quote shows a value that was refused, unless it is long or may hold a secret,
// as user:secret@host and password=secret do.
func (s Setting) quote(text string) string {
	if s.Secret || len(text) > 60 || strings.ContainsAny(text, "@=") {
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
	for _, s := range Settings() {
		if s.Default != "" {
			l[s.Path] = value{"default", s.Default}
		}
	}
	return l
}

// envLayer reads the environment: a variable, or the file that it names.
func envLayer(getenv func(string) string, environ []string) (layer, error) {
	l := make(layer)
	errs := []error{unknownVariables(environ)}
	for _, s := range Settings() {
		name := s.Env()
		text, file := getenv(name), getenv(name+"_FILE")
		switch {
		case text != "" && file != "":
			errs = append(errs, fmt.Errorf("%s and %s_FILE are both set; unset one", name, name))
		case text != "":
			l[s.Path] = value{name, text}
		case file != "":
			content, err := os.ReadFile(file)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s_FILE: %w", name, err))
				continue
			}
			l[s.Path] = value{name + "_FILE", strings.TrimSpace(string(content))}
		}
	}
	return l, errors.Join(errs...)
}

func flagLayer(flags *pflag.FlagSet) layer {
	l := make(layer)
	for _, s := range Settings() {
		name, ok := s.flag()
		if f := flags.Lookup(name); ok && f != nil && f.Changed {
			l[s.Path] = value{"--" + name, f.Value.String()}
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
	for _, s := range Settings() {
		all[s.Path] = true
		for i, letter := range s.Path {
			if letter == '.' {
				all[s.Path[:i]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
