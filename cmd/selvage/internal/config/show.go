package config

import (
	"fmt"
	"reflect"
	"strings"
)

// fieldOf returns the field of a path of keys.
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

// Value returns what a configuration has for the key.
func (s Setting) Value(c Config) any { return fieldOf(reflect.ValueOf(c), s.Path).Interface() }

// Show writes it, without the passwords of a URL.
func (s Setting) Show(c Config) string { return format(fieldOf(reflect.ValueOf(c), s.Path)) }

// format writes a value without the passwords of a URL.
func format(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", ","), "[]")
	}
	return Redact(fmt.Sprint(v.Interface()))
}

// NeedRestart lists the keys that differ from what was, and are read at the start alone.
func (c Config) NeedRestart(was Config) (keys []string) {
	for _, s := range Settings() {
		if !s.reload && !reflect.DeepEqual(s.Value(was), s.Value(c)) {
			keys = append(keys, s.Path)
		}
	}
	return keys
}
