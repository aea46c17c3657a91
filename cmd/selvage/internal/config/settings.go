package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// A Setting is one key of [Config], as its field describes it.
type Setting struct {
	Path    string // tokens.access_jwt
	kind    reflect.Type
	Default string
	help    string
	Secret  bool
	reload  bool // it is read again on SIGHUP
}

// Settings lists all keys, in the order of the fields.
var Settings = sync.OnceValue(func() []Setting { return settingsOf(reflect.TypeFor[Config](), "") })

func settingsOf(t reflect.Type, prefix string) (all []Setting) {
	for f := range fields(t) {
		path := prefix + f.Tag.Get("koanf")
		if f.Type.Kind() == reflect.Struct {
			all = append(all, settingsOf(f.Type, path+".")...)
			continue
		}
		all = append(all, Setting{path, f.Type, f.Tag.Get("default"), f.Tag.Get("help"),
			f.Tag.Get("secret") == "true", f.Tag.Get("reload") == "true"})
	}
	return all
}

func fields(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// Env returns the name of the setting's environment variable.
func (s Setting) Env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.Path, ".", "__"))
}

// flag returns the name of the setting's flag, if it has one: a secret given on
// the command line could be read by everybody on the machine.
func (s Setting) flag() (string, bool) {
	return strings.ReplaceAll(s.Path, "_", "-"), !s.Secret && !strings.Contains(s.Path, ".")
}

// parse reads a value of the setting's type.
func (s Setting) parse(text string) (any, error) {
	v := reflect.New(s.kind)
	if u, ok := v.Interface().(encoding.TextUnmarshaler); ok {
		err := u.UnmarshalText([]byte(text))
		return v.Elem().Interface(), err
	}
	switch v.Interface().(type) {
	case *string:
		return text, nil
	case *bool:
		b, err := strconv.ParseBool(text)
		return b, orElse(err, "needs true or false")
	case *int:
		n, err := strconv.Atoi(text)
		return n, orElse(err, "needs a number")
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err == nil && d <= 0 {
			return d, errors.New("must be longer than 0, such as 90s, 15m or 12h")
		}
		return d, orElse(err, "needs a time such as 90s, 15m or 12h")
	}
	return nil, fmt.Errorf("is of no known type, %s", s.kind)
}

// orElse returns the sentence instead of err, if that is one.
func orElse(err error, sentence string) error {
	if err == nil {
		return nil
	}
	return errors.New(sentence)
}

// everywhere are the flags that all commands have, so that they find what a
// server keeps; the others are those of serve.
var everywhere = map[string]bool{"data": true, "database": true, "sessions": true, "media": true}

// AddFlags returns the flags of settings to a command, those for all or those for
// the server.
func AddFlags(flags *pflag.FlagSet, shared bool) {
	for _, s := range Settings() {
		name, ok := s.flag()
		if !ok || everywhere[s.Path] != shared {
			continue
		}
		if s.kind.Kind() == reflect.Bool {
			flags.Bool(name, false, s.help)
			continue
		}
		flags.String(name, s.Default, s.help)
		flags.Lookup(name).Value = flagValue{flags.Lookup(name).Value, s.placeholder()}
	}
}

// placeholder names the kind of value in a flag's description.
func (s Setting) placeholder() string {
	switch {
	case s.kind == reflect.TypeFor[HostPort]():
		return "host:port"
	case s.kind == reflect.TypeFor[BaseURL]():
		return "url"
	case s.kind == reflect.TypeFor[Services]():
		return "list"
	case s.kind == reflect.TypeFor[time.Duration]():
		return "time"
	case s.Path == "data":
		return "dir"
	}
	return "url"
}

// A flagValue is a flag's value under another type name, which its help shows.
type flagValue struct {
	pflag.Value
	kind string
}

func (v flagValue) Type() string { return v.kind }
