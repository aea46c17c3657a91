package config

import (
	"embed"
	"encoding"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// A Setting is one key of [Config], described by the tags and the comment of its field.
type Setting struct {
	Path    string // path of the key, such as tokens.access_jwt
	Meaning string // the comment of the field, in whole sentences
	Default string
	Secret  bool

	kind   reflect.Type
	index  []int // index of the field in Config
	reload bool  // whether SIGHUP reads the setting again
}

// Settings lists all keys, in the order of the fields.
var Settings = sync.OnceValue(func() []Setting {
	return settingsOf(reflect.TypeFor[Config](), "", nil, fieldComments())
})

// settingsOf lists the keys of a struct, which is Config or a field of it. index is the index of the field
// in Config, and prefix is the path of the field, followed by a dot.
func settingsOf(t reflect.Type, prefix string, index []int, comments map[string]string) (all []Setting) {
	for i := range t.NumField() {
		f := t.Field(i)
		path := prefix + f.Tag.Get("key")
		fieldIndex := append(slices.Clone(index), i)
		if f.Type.Kind() == reflect.Struct {
			all = append(all, settingsOf(f.Type, path+".", fieldIndex, comments)...)
			continue
		}

		all = append(all, Setting{
			Path:    path,
			Meaning: comments[path],
			Default: f.Tag.Get("default"),
			Secret:  f.Tag.Get("secret") == "true",
			kind:    f.Type,
			index:   fieldIndex,
			reload:  f.Tag.Get("reload") == "true",
		})
	}
	return all
}

//go:embed config.go limits.go
var sources embed.FS

// fieldComments returns the comments of the fields of Config, by the path of the key. It reads the
// comments from the source, so that the help for a key stands next to its field.
func fieldComments() map[string]string {
	structs := make(map[string]*ast.StructType)
	for _, name := range []string{"config.go", "limits.go"} {
		source, err := sources.ReadFile(name)
		if err != nil {
			panic(err) // the source is embedded
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		if err != nil {
			panic(err) // the source has compiled
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				structs[t.Name.Name], _ = t.Type.(*ast.StructType)
			}
			return true
		})
	}

	comments := make(map[string]string)
	var visit func(t *ast.StructType, prefix string)
	visit = func(t *ast.StructType, prefix string) {
		for _, f := range t.Fields.List {
			path := prefix + reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("key")
			comments[path] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			section, _ := f.Type.(*ast.StructType)
			if named, ok := f.Type.(*ast.Ident); ok {
				section = structs[named.Name]
			}
			if section != nil {
				visit(section, path+".")
			}
		}
	}
	visit(structs["Config"], "")
	return comments
}

// Env returns the name of the setting's environment variable.
func (s Setting) Env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.Path, ".", "__"))
}

// Value returns the value of the setting in c.
func (s Setting) Value(c Config) any { return reflect.ValueOf(c).FieldByIndex(s.index).Interface() }

// Show formats the value of the setting in c, without passwords in URLs.
func (s Setting) Show(c Config) string {
	v := s.Value(c)
	if s.kind.Kind() == reflect.Slice {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]")
	}
	return Redact(fmt.Sprint(v))
}

// NeedRestart lists the keys that are read only at startup, and whose values in c differ from those in
// old.
func (c Config) NeedRestart(old Config) (keys []string) {
	for _, s := range Settings() {
		if !s.reload && !reflect.DeepEqual(s.Value(old), s.Value(c)) {
			keys = append(keys, s.Path)
		}
	}
	return keys
}

// parse sets the value of the setting in c from text.
func (s Setting) parse(c *Config, text string) (err error) {
	field := reflect.ValueOf(c).Elem().FieldByIndex(s.index).Addr().Interface()

	switch v := field.(type) {
	case encoding.TextUnmarshaler:
		return v.UnmarshalText([]byte(text))
	case *string:
		*v = text
	case *bool:
		*v, err = strconv.ParseBool(text)
		if err != nil {
			return errors.New("needs true or false")
		}
	case *int:
		*v, err = strconv.Atoi(text)
		if err != nil {
			return errors.New("needs a number")
		}
	case *time.Duration:
		*v, err = time.ParseDuration(text)
		if err != nil {
			return errors.New("needs a time such as 90s, 15m or 12h")
		}
		if *v <= 0 {
			return errors.New("must be longer than 0, such as 90s, 15m or 12h")
		}
	default:
		return fmt.Errorf("has the unknown type %s", s.kind)
	}
	return nil
}

// flag returns the name of the setting's flag. Secrets have no flag, because everybody on the
// machine can read the command line of a process.
func (s Setting) flag() (name string, ok bool) {
	if s.Secret || strings.Contains(s.Path, ".") {
		return "", false
	}
	return strings.ReplaceAll(s.Path, "_", "-"), true
}

// isShared reports whether all commands have the setting's flag, because they need it to find the data of a
// server. The flags of other settings belong to the command serve.
func (s Setting) isShared() bool {
	return s.Path == "data" || s.Path == "database" || s.Path == "sessions" || s.Path == "media"
}

// AddFlags adds the flags of settings to flags. If shared is true, these are the flags of all
// commands, otherwise the flags of the server.
func AddFlags(flags *pflag.FlagSet, shared bool) {
	for _, s := range Settings() {
		name, ok := s.flag()
		if !ok || s.isShared() != shared {
			continue
		}
		if s.kind.Kind() == reflect.Bool {
			flags.Bool(name, false, s.usage())
			continue
		}
		flags.String(name, s.Default, s.usage())
		f := flags.Lookup(name)
		f.Value = flagValue{f.Value, s.placeholder()}
	}
}

// usage returns the meaning in the form for a flag's description: in lower case, without the last
// period.
func (s Setting) usage() string {
	text := strings.TrimSuffix(s.Meaning, ".")
	if strings.ToUpper(text[:2]) == text[:2] {
		return text // the text begins with an abbreviation
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// placeholder returns the word that stands for the value in a flag's description.
func (s Setting) placeholder() string {
	switch {
	case s.kind == reflect.TypeFor[HostPort]():
		return "host:port"
	case s.kind.Kind() == reflect.Slice:
		return "list"
	case s.kind == reflect.TypeFor[time.Duration]():
		return "time"
	case s.Path == "data":
		return "dir"
	case s.kind == reflect.TypeFor[headerName]():
		return "name"
	}
	return "url"
}

// A flagValue is a flag's value whose type has a different name in the help.
type flagValue struct {
	pflag.Value
	kind string
}

func (v flagValue) Type() string { return v.kind }
