package conformance

import (
	"cmp"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A table is the part of docs/openid.md about a plan: the test that runs it, and the state of each
// module.
type table struct {
	test   string
	states map[string]string
}

var (
	planRow   = regexp.MustCompile("^\\| `([a-z0-9-]+-test-plan)` \\| `([^`]+)` \\|$")
	moduleRow = regexp.MustCompile("^- `([a-zA-Z0-9_-]+)`(?: \\((?:to review|skipped, .+)\\))?(?:: (.+))?$")
)

// readTables returns the tables of docs/openid.md by plan. A heading of the third level begins a
// group of plans whose modules have the same states. A line without a state means "passes". The
// result of the Foundation's suite, in parentheses, is ignored. Items may be wrapped: the continuation is
// indented.
func readTables(t *testing.T) map[string]table {
	t.Helper()
	text, err := os.ReadFile("../../docs/openid.md")
	if err != nil {
		t.Fatal(err)
	}

	tables := map[string]table{}
	var group []string
	for _, line := range strings.Split(strings.ReplaceAll(string(text), "\n  ", " "), "\n") {
		if strings.HasPrefix(line, "#") {
			group = nil
			continue
		}
		if m := planRow.FindStringSubmatch(line); m != nil {
			group = append(group, m[1])
			tables[m[1]] = table{m[2], map[string]string{}}
			continue
		}
		if len(group) == 0 || !strings.HasPrefix(line, "- `") {
			continue
		}

		m := moduleRow.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("docs/openid.md has a line without a module: %s", line)
		}
		state := cmp.Or(strings.ReplaceAll(m[2], "`", ""), passes)
		for _, plan := range group {
			tables[plan].states[m[1]] = state
		}
	}
	return tables
}

// TestTable compares the tables in docs/openid.md with the plans that run. Both must have the same
// plans and modules.
func TestTable(t *testing.T) {
	tables := readTables(t)
	for _, p := range plans {
		if got := tables[p.name].test; got != p.test {
			t.Errorf("docs/openid.md: %s has the test %q, want %q", p.name, got, p.test)
		}

		states := tables[p.name].states
		for _, e := range p.modules {
			if states[e.name] == "" {
				t.Errorf("docs/openid.md lacks %s in %s", e.name, p.name)
			}
			delete(states, e.name)
		}
		for name := range states {
			t.Errorf("docs/openid.md has %s in %s, which no test runs", name, p.name)
		}
		delete(tables, p.name)
	}

	for name := range tables {
		t.Errorf("docs/openid.md has the plan %s, which no test runs", name)
	}
}
