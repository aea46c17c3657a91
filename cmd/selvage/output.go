package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/selvage/selvage/cmd/selvage/internal/console"
)

// A view says how the things of a noun are printed.
type view[T any] struct {
	id     func(T) string
	secret func(T) string // what is shown once, "" for what was not just made; nil if nothing ever is
	json   func(T) any
	facts  []fact[T]
}

// A fact is one thing to know: a column of a list, a line of what is shown
// alone.
type fact[T any] struct {
	name   string
	value  func(T) string
	detail bool // only where a thing is shown alone
	aside  bool // the first to go where a list is wider than the terminal
}

// list prints many things, as the format asks.
func list[T any](c *cli, v view[T], items []T) error {
	switch c.output {
	case "id":
		return ids(c, v.id, items...)
	case "json":
		objects := make([]any, 0, len(items))
		for _, it := range items {
			objects = append(objects, v.json(it))
		}
		return c.json(objects)
	}
	var columns []fact[T]
	for _, f := range v.facts {
		if !f.detail {
			columns = append(columns, f)
		}
	}
	rows := make([][]string, 1, len(items)+1)
	var aside []string
	for _, f := range columns {
		rows[0] = append(rows[0], f.name)
		if f.aside {
			aside = append(aside, f.name)
		}
	}
	for _, it := range items {
		var row []string
		for _, f := range columns {
			row = append(row, harmless(f.value(it)))
		}
		rows = append(rows, row)
	}
	return c.table(rows, aside)
}

// one prints a thing alone. Beside its id alone, a secret that cannot be shown
// again goes to stderr.
func one[T any](c *cli, v view[T], item T) error {
	switch c.output {
	case "id":
		if v.secret != nil && v.secret(item) != "" {
			fmt.Fprintf(c.stderr, "its secret (%s): %s\n", shownOnce, v.secret(item))
		}
		return ids(c, v.id, item)
	case "json":
		return c.json(v.json(item))
	}
	width := 0
	for _, f := range v.facts {
		width = max(width, utf8.RuneCountInString(f.name))
	}
	for _, f := range v.facts {
		text := f.value(item)
		if text == "" {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			name := f.name
			if i > 0 {
				name = ""
			}
			if _, err := fmt.Fprintf(c.stdout, "%s  %s\n", c.faint(pad(name, width)), harmless(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ids prints one id a line.
func ids[T any](c *cli, id func(T) string, items ...T) error {
	for _, it := range items {
		if _, err := fmt.Fprintln(c.stdout, id(it)); err != nil {
			return err
		}
	}
	return nil
}

// json prints a value: indented for people, on one line for programs.
func (c *cli) json(v any) error {
	enc := json.NewEncoder(c.stdout)
	enc.SetEscapeHTML(false)
	if console.IsTerminal(c.stdout) {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// harmless keeps what others have written from moving the cursor or the
// colours of a terminal.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return '·'
		}
		return r
	}, s)
}

// faint dims a text where the terminal shows it so.
func (c *cli) faint(s string) string { return c.coloured("2", s) }

// coloured writes a text under parameters of SGR (ECMA-48, section 8.3.117), where
// the terminal shows it so and nobody asked for none.
func (c *cli) coloured(sgr, s string) string {
	if !console.IsTerminal(c.stdout) || c.getenv("NO_COLOR") != "" || c.getenv("TERM") == "dumb" ||
		strings.TrimSpace(s) == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

// terminalWidth returns the columns of a terminal, and 0 for anything else.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// stamp writes a time for people, "" for none; iso for programs.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(stampLayout)
}

const stampLayout = "2006-01-02 15:04"

func isStamp(s string) bool {
	_, err := time.Parse(stampLayout, s)
	return err == nil
}

// A moment is a time in JSON: ISO 8601 in UTC, left out where it is zero.
type moment = *time.Time

func iso(t time.Time) moment {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}
