package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/selvage/selvage/cmd/selvage/internal/console"
)

// A View describes how the items of a noun are printed.
type View[T any] struct {
	ID     func(T) string
	Secret func(T) string // secret that is shown only once; "" unless the item was just created; may be nil
	JSON   func(T) any
	Facts  []Fact[T]
}

// A Fact is shown as a column of a list, and as a line of a single item.
type Fact[T any] struct {
	Name   string
	Value  func(T) string
	Detail bool // whether lists omit the column
	Minor  bool // whether the column is hidden first if a list is wider than the terminal
}

// List prints items in the format of --output.
func List[T any](e *Env, v View[T], items []T) error {
	switch e.Output {
	case "id":
		return PrintIDs(e, v.ID, items...)
	case "json":
		objects := make([]any, 0, len(items))
		for _, it := range items {
			objects = append(objects, v.JSON(it))
		}
		return e.PrintJSON(objects)
	}

	rows := make([][]string, len(items)+1)
	var minor []string
	for _, f := range v.Facts {
		if f.Detail {
			continue
		}
		rows[0] = append(rows[0], f.Name)
		if f.Minor {
			minor = append(minor, f.Name)
		}
		for i, it := range items {
			rows[i+1] = append(rows[i+1], Sanitize(f.Value(it)))
		}
	}
	return e.table(rows, minor)
}

// Show prints one item in the format of --output. With -o id, Show prints only the id to stdout. If
// the item has a secret that cannot be shown again, Show prints the secret to stderr.
func Show[T any](e *Env, v View[T], item T) error {
	switch e.Output {
	case "id":
		if v.Secret != nil && v.Secret(item) != "" {
			fmt.Fprintf(e.Stderr, "secret (%s): %s\n", ShownOnce, v.Secret(item))
		}
		return PrintIDs(e, v.ID, item)
	case "json":
		return e.PrintJSON(v.JSON(item))
	}

	width := 0
	for _, f := range v.Facts {
		width = max(width, utf8.RuneCountInString(f.Name))
	}

	for _, f := range v.Facts {
		text := f.Value(item)
		if text == "" {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			name := f.Name
			if i > 0 {
				name = ""
			}
			if _, err := fmt.Fprintf(e.Stdout, "%s  %s\n", e.Faint(Pad(name, width)), Sanitize(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// PrintIDs prints the id of each item on its own line.
func PrintIDs[T any](e *Env, id func(T) string, items ...T) error {
	for _, item := range items {
		if _, err := fmt.Fprintln(e.Stdout, id(item)); err != nil {
			return err
		}
	}
	return nil
}

// PrintJSON prints a value: indented on a terminal, otherwise on one line.
func (e *Env) PrintJSON(v any) error {
	enc := json.NewEncoder(e.Stdout)
	enc.SetEscapeHTML(false)
	if console.IsTerminal(e.Stdout) {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// Sanitize replaces control characters in s. In a terminal, they could move the cursor or change
// colors.
func Sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '·'
		}
		return r
	}, s)
}

// These are the SGR parameters (ECMA-48, section 8.3.117) that Color accepts.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Faint returns s in dimmed style, with the exceptions of Color.
func (e *Env) Faint(s string) string { return e.Color(Dim, s) }

// Color returns s in the style of an SGR parameter. It returns s unchanged if stdout is not a
// terminal or the environment disables colors.
func (e *Env) Color(sgr, s string) string {
	plain := !console.IsTerminal(e.Stdout) || e.Getenv("NO_COLOR") != "" || e.Getenv("TERM") == "dumb"
	if plain || strings.TrimSpace(s) == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

// Width returns the number of columns of the terminal. It returns 0 if stdout is not a terminal.
func (e *Env) Width() int {
	f, ok := e.Stdout.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
