package config

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Sample prints every key, its default, its variable and its meaning.
func Sample(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# selvage.yaml: every key with its default. Nothing here needs to be set.\n" +
		"# Each is an environment variable too, or a file that one names with _FILE;\n" +
		"# those of the top level are flags. Flags go before variables before this file.\n")
	var section []string
	for _, s := range Settings() {
		keys := strings.Split(s.Path, ".")
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
		def := s.Default
		if def == "" || strings.ContainsAny(def, ":,") {
			def = fmt.Sprintf("%q", def)
		}
		fmt.Fprintf(&b, "%s# %s\n%s# %s%s\n%s%s: %s\n", indent, s.Meaning(), indent, s.Env(), again(s),
			indent, name, def)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func again(s Setting) string {
	if !s.reload {
		return ""
	}
	return " (read again on SIGHUP)"
}

// Meaning returns the help of a setting as a sentence.
func (s Setting) Meaning() string { return strings.ToUpper(s.help[:1]) + s.help[1:] + "." }

// Reference writes docs/configuration.md: every key, from the same table as the
// rest of the program has them.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Nothing needs to be set. A key is found in a flag, else in an environment variable, else in the file of ` +
		"`--config`" + ` (` + "`selvage.yaml`" + `, where there is one), else it has its default.
Any variable can name a file that holds the value instead, with ` + "`_FILE`" +
		` behind it. A key that there is not is refused, with its line and what was meant.

` + "`selvage config sample`" + ` prints a file with all of this, ` + "`selvage config validate`" +
		` checks one, and ` + "`selvage config show`" +
		` tells what is set and where. What is marked ↻ is read again on SIGHUP.

<!-- made by the tests of cmd/selvage: UPDATE_DOCS=1 go test -run TestReferences ./cmd/selvage -->
`)
	section := "-"
	for _, s := range Settings() {
		head, _, nested := strings.Cut(s.Path, ".")
		if !nested {
			head = ""
		}
		if head != section {
			section = head
			title := "Top level"
			if head != "" {
				title = head
			}
			fmt.Fprintf(&b, "\n## %s\n\n| key | default | what |\n|---|---|---|\n", title)
		}
		mark := ""
		if s.reload {
			mark = " ↻"
		}
		def := ""
		if s.Default != "" {
			def = "`" + s.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s`%s<br>`%s`%s | %s | %s |\n", s.Path, mark, s.Env(), flagOf(s), def, cell(s.Meaning()))
	}
	return strings.ReplaceAll(b.String(), "<br>", " ")
}

// flagOf names the flag of a setting, if it has one.
func flagOf(s Setting) string {
	if name, ok := s.flag(); ok {
		return "<br>`--" + name + "`"
	}
	return ""
}

// cell writes a text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
