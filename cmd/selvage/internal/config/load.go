package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// defaultFile is the configuration file that is read if it exists.
const defaultFile = "selvage.yaml"

// A value is the text that one source sets for a key.
type value struct {
	at   string // place that sets it: --listen, SELVAGE_LISTEN, selvage.yaml:3:1
	text string
}

// keyAt names the key and the place that sets it. For a flag, this is only the name of the flag.
func (v value) keyAt(path string) string {
	if strings.HasPrefix(v.at, "--") {
		return v.at
	}
	return v.at + ": " + path
}

// A layer holds the values from one source, indexed by key path.
type layer map[string]value

// Origins maps the path of each key that is set to the place that sets it.
type Origins map[string]string

// set reports whether any source sets a key.
func (o Origins) set(path string) bool { return o[path] != "" }

// keyAt names a key, followed by the place that sets it, if there is one.
func (o Origins) keyAt(path string) string {
	if !o.set(path) {
		return path
	}
	return value{at: o[path]}.keyAt(path)
}

// errorf returns an error about a key. The error names the key and the place that sets it.
func (o Origins) errorf(path, format string, args ...any) error {
	return fmt.Errorf("%s %w", o.keyAt(path), fmt.Errorf(format, args...))
}

// Load reads the configuration from flags, from the environment, and from a file. A flag or a
// variable can name the file. The default is selvage.yaml, if it exists. getenv returns the value of a
// variable; environ lists all variables. The error lists the problems from all sources.
func Load(flags *pflag.FlagSet, getenv func(string) string, environ []string) (Config, Origins, error) {
	file, fileErr := fileLayer(getenv, flags)
	env, envErr := envLayer(getenv, environ)

	var c Config
	from := make(Origins)
	errs := []error{fileErr, envErr, c.apply(defaults(), nil)}
	for _, l := range []layer{file, env, flagLayer(flags)} {
		errs = append(errs, c.apply(l, from))
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, nil, err
	}

	if err := c.check(from); err != nil {
		return Config{}, nil, err
	}
	return c, from, nil
}

// apply sets the values of a layer and records their origins in from. The error lists all values
// that cannot be parsed.
func (c *Config) apply(l layer, from Origins) error {
	var errs []error
	for _, s := range Settings() {
		v, ok := l[s.Path]
		if !ok {
			continue
		}
		if err := s.parse(c, v.text); err != nil {
			errs = append(errs, fmt.Errorf("%s %w%s", v.keyAt(s.Path), err, s.quote(v.text)))
		}
		if from != nil {
			from[s.Path] = v.at
		}
	}
	return errors.Join(errs...)
}

// quote returns the rejected value for an error. It returns "" for a value that is long or may
// contain a secret, such as user:secret@host or password=secret.
func (s Setting) quote(text string) string {
	const maxBytes = 60
	if s.Secret || len(text) > maxBytes || strings.ContainsAny(text, "@=") {
		return ""
	}
	return fmt.Sprintf("; it is %q", text)
}

// defaults returns the values of the keys that have a default.
func defaults() layer {
	l := make(layer)
	for _, s := range Settings() {
		if s.Default != "" {
			l[s.Path] = value{"default", s.Default}
		}
	}
	return l
}

// envLayer reads each variable from the environment, or from the file named by its _FILE variant.
func envLayer(getenv func(string) string, environ []string) (layer, error) {
	l := make(layer)
	errs := []error{checkVariables(environ)}
	for _, s := range Settings() {
		name := s.Env()
		text, file := getenv(name), getenv(name+"_FILE")
		switch {
		case text != "" && file != "":
			errs = append(errs, fmt.Errorf("%s and %s_FILE are both set; unset one", name, name))
		case text != "":
			l[s.Path] = value{name, text}
		case file != "":
			text, err := s.readFile(file)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s_FILE: %w", name, err))
				continue
			}
			l[s.Path] = value{name + "_FILE", text}
		}
	}
	return l, errors.Join(errs...)
}

// readFile returns the text of a file that holds the value of a setting. The file must not be empty:
// for an empty value, a server would use the default, and could create its own master key. Only the
// files with settings of the first operator may be empty. They are needed only once, so they can be
// emptied after the first start.
func (s Setting) readFile(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(content))
	if text == "" && !strings.HasPrefix(s.Path, "bootstrap_") {
		return "", fmt.Errorf("%s is empty", file)
	}
	return text, nil
}

// flagLayer returns the values of the flags that are set.
func flagLayer(flags *pflag.FlagSet) layer {
	l := make(layer)
	for _, s := range Settings() {
		name, ok := s.flag()
		if !ok {
			continue
		}
		if f := flags.Lookup(name); f != nil && f.Changed {
			l[s.Path] = value{"--" + name, f.Value.String()}
		}
	}
	return l
}

// fileLayer reads the file named by --config or SELVAGE_CONFIG, or selvage.yaml if it exists.
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

// paths lists all keys and sections.
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
