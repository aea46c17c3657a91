package conformance

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A page holds the tables of docs/openid.md: the plans, and the states of the modules that the page
// names.
type page struct {
	plans  map[string]row
	states map[string]string
}

// A row is what the page says about a plan: the test that runs the plan, and its number of modules.
type row struct {
	test    string
	modules int
}

var (
	planRow   = regexp.MustCompile("^\\| `([a-z0-9-]+-test-plan)` \\| `([^`]+)` \\| (\\d+) \\|$")
	moduleRow = regexp.MustCompile("^\\| (`oidcc-[^|]+) \\| (passes|(?:warning|skipped): [^|]+) \\| [^|]+ \\|$")
	codeSpan  = regexp.MustCompile("`([^`]+)`")
)

// readPage reads the two tables in the section "The plans" of docs/openid.md. A row of the second
// table contains the names of modules and their state. Its last column, the result in the
// Foundation's suite, is ignored. After this heading, each row that begins with code must belong to
// one of the two tables.
func readPage(t *testing.T) page {
	t.Helper()
	text, err := os.ReadFile("../../docs/openid.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## The plans\n")

	p := page{map[string]row{}, map[string]string{}}
	for _, line := range strings.Split(section, "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		if m := planRow.FindStringSubmatch(line); m != nil {
			count, _ := strconv.Atoi(m[3])
			p.plans[m[1]] = row{m[2], count}
			continue
		}

		m := moduleRow.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("docs/openid.md has a row that names neither a plan nor modules: %s", line)
		}
		for _, name := range codeSpan.FindAllStringSubmatch(m[1], -1) {
			p.states[name[1]] = strings.ReplaceAll(m[2], "`", "")
		}
	}
	return p
}

// state returns the state of a module according to the page. If the page does not name the module,
// the module passes.
func (p page) state(module string) string { return cmp.Or(p.states[module], passes) }

// TestTable compares the tables in docs/openid.md with the plans that run. Both must have the same
// plans, with the same number of modules. Each module that the page names must exist.
func TestTable(t *testing.T) {
	page := readPage(t)
	var names []string
	for _, p := range plans {
		want := row{p.test, len(p.modules)}
		if got := page.plans[p.name]; got != want {
			t.Errorf("docs/openid.md has the row %v for the plan %s, want %v", got, p.name, want)
		}
		delete(page.plans, p.name)
		for _, e := range p.modules {
			names = append(names, e.name)
		}
	}

	for name := range page.plans {
		t.Errorf("docs/openid.md names the plan %s, which no test runs", name)
	}
	for said := range page.states {
		if !slices.ContainsFunc(names, func(name string) bool { return isNamed(name, said) }) {
			t.Errorf("docs/openid.md names the module %s, which no test runs", said)
		}
	}
}

// isNamed reports whether said names a module. It may be the whole name, the beginning of the name
// and an ellipsis, or the end of the name with its hyphen.
func isNamed(module, said string) bool {
	if start, isStart := strings.CutSuffix(said, "…"); isStart {
		return strings.HasPrefix(module, start)
	}
	return module == said || strings.HasPrefix(said, "-") && strings.HasSuffix(module, said)
}
