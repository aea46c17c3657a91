package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A row of docs/openid.md.
type row struct{ test, state string }

var (
	planHeading = regexp.MustCompile("^### .*`([a-z0-9-]+-test-plan)`")
	moduleRow   = regexp.MustCompile("^\\| `([a-z0-9-]+)` \\| `([^`]+)` \\| ([^|]+) \\|$")
)

// readTable returns the rows of each plan's table, by module.
func readTable(t *testing.T) map[string]map[string]row {
	t.Helper()
	text, err := os.ReadFile("../../docs/openid.md")
	if err != nil {
		t.Fatal(err)
	}
	tables, plan := map[string]map[string]row{}, ""
	for _, line := range strings.Split(string(text), "\n") {
		if m := planHeading.FindStringSubmatch(line); m != nil {
			plan = m[1]
			tables[plan] = map[string]row{}
		} else if strings.HasPrefix(line, "#") {
			plan = ""
		}
		if plan == "" || !strings.HasPrefix(line, "| `") {
			continue
		}
		m := moduleRow.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("docs/openid.md has a row that is none of a module: %s", line)
		}
		tables[plan][m[1]] = row{m[2], strings.ReplaceAll(m[3], "`", "")}
	}
	return tables
}

// TestTable holds the tables of docs/openid.md against the plans that run: neither
// has a module that the other lacks.
func TestTable(t *testing.T) {
	tables := readTable(t)
	for _, p := range plans {
		rows := tables[p.name]
		for _, e := range p.modules {
			if got, want := rows[e.name].test, p.test+"/"+e.name; got != want {
				t.Errorf("docs/openid.md: %s has the test %q, want %q", e.name, got, want)
			}
			delete(rows, e.name)
		}
		for name := range rows {
			t.Errorf("docs/openid.md has %s in %s, and no test has", name, p.name)
		}
		delete(tables, p.name)
	}
	for name := range tables {
		t.Errorf("docs/openid.md has the plan %s, and no test has", name)
	}
}
