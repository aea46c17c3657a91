package config

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Sample writes a configuration file with every key, its default, its variable and its description.
func Sample(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# selvage.yaml: every key with its default. All of them are optional.\n" +
		"# Each key is also an environment variable; with _FILE appended, the variable names a\n" +
		"# file with the value. Keys of the top level are flags, too. Flags take precedence over\n" +
		"# variables, and variables over this file.\n")
	var section []string
	for _, s := range Settings() {
		keys := strings.Split(s.Path, ".")
		last := len(keys) - 1
		name, parents := keys[last], keys[:last]
		indent := strings.Repeat("  ", len(parents))

		if len(parents) == 0 || slices.Equal(parents, section) {
			b.WriteString("\n")
		}
		for i, parent := range parents {
			if !slices.Equal(parents[:i+1], section[:min(i+1, len(section))]) {
				fmt.Fprintf(&b, "\n%s%s:\n", strings.Repeat("  ", i), parent)
			}
		}
		section = parents

		fmt.Fprintf(&b, "%s# %s\n", indent, s.Meaning)
		fmt.Fprintf(&b, "%s# %s%s\n", indent, s.Env(), s.mark(" (read again on SIGHUP)"))
		fmt.Fprintf(&b, "%s%s: %s\n", indent, name, s.sample())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sample returns the default as YAML.
func (s Setting) sample() string {
	if s.Default == "" || strings.ContainsAny(s.Default, ":,") {
		return fmt.Sprintf("%q", s.Default)
	}
	return s.Default
}

// mark returns text if the setting is read again on SIGHUP, and "" otherwise.
func (s Setting) mark(text string) string {
	if s.reload {
		return text
	}
	return ""
}

// referenceHead is the beginning of docs/configuration.md.
const referenceHead = `# Configuration

This page lists all keys of the configuration. All of them are optional. selvage looks for each key
in this order, and uses the first value that it finds:

1. The flags, such as ` + "`--listen-tls`" + `. Only keys of the top level have flags. The secrets
   ` + "`master_key` and `bootstrap_…`" + ` have none.
2. The environment. The variable for ` + "`tls.acme.hosts` is `SELVAGE_TLS__ACME__HOSTS`" + `. To read the
   value from a file, append ` + "`_FILE`" + ` to the variable's name, and set it to the name of the file.
   An empty file is an error, except for ` + "`bootstrap_…`" + `, which are needed only at the first start.
3. The configuration file, which ` + "`--config` or `SELVAGE_CONFIG`" + ` names. By default, this is
   ` + "`selvage.yaml`" + ` if it exists.
4. The default.

Separate the items of a list with commas. An unknown key is an error. The error names the line and
the closest valid key. On SIGHUP, the server reads keys marked ↻ again.

| command | what it does |
|---|---|
| ` + "`selvage config sample`" + ` | prints a file with all keys |
| ` + "`selvage config validate`" + ` | checks a file |
| ` + "`selvage config show`" + ` | prints each value and where it was set |

<!-- generated: UPDATE_DOCS=1 go test -run TestReferences ./cmd/selvage -->
`

// Reference returns docs/configuration.md, which lists every key.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	section := "-"
	for _, s := range Settings() {
		head, _, nested := strings.Cut(s.Path, ".")
		if !nested {
			head = "Top level"
		}
		if head != section {
			section = head
			fmt.Fprintf(&b, "\n## %s\n\n| key | default | meaning |\n|---|---|---|\n", head)
		}

		names := "`" + s.Path + "`" + s.mark(" ↻")
		value := ""
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", names, value, strings.ReplaceAll(s.Meaning, "|", `\|`))
	}
	return b.String()
}
