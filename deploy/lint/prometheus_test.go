package lint

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// exposed returns the names of the metrics in the server's source code.
func exposed(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../cmd/selvage/internal/server/metrics*.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no file of the server is named metrics*.go")
	}
	mail, err := filepath.Glob("../../cmd/selvage/internal/server/mail*.go")
	if err != nil {
		t.Fatal(err)
	}

	names := make(map[string]bool)
	whole := regexp.MustCompile(`"(selvage_[a-z_]+[a-z])"`)
	databaseMetric := regexp.MustCompile(`newDatabaseMetric\("([a-z_]+)"`)
	deliverer := regexp.MustCompile(`watchDeliverer\("([a-z]+)"`)
	for _, file := range append(files, mail...) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range whole.FindAllSubmatch(source, -1) {
			names[string(match[1])] = true
		}
		for _, match := range databaseMetric.FindAllSubmatch(source, -1) {
			names["selvage_database_"+string(match[1])] = true
		}
		for _, match := range deliverer.FindAllSubmatch(source, -1) {
			queue := "selvage_" + string(match[1]) + "_queue"
			names[queue] = true
			names[queue+"_age_seconds"] = true
		}
	}
	return names
}

// foreignMetrics matches metrics that Prometheus and its client library create.
var foreignMetrics = regexp.MustCompile(`^(up|go_goroutines|process_(cpu_seconds_total|resident_memory_bytes))$`)

// checkExpression checks that expr can be parsed and uses only metrics that exist.
func checkExpression(t *testing.T, names map[string]bool, where, expr string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: parsing the expression %s: %v", where, expr, err)
		return
	}

	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		selector, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name := selector.Name
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if histogram, cut := strings.CutSuffix(name, suffix); cut && names[histogram] {
				name = histogram
			}
		}
		if !names[name] && !foreignMetrics.MatchString(name) {
			t.Errorf("%s: neither the server nor Prometheus has the metric %s", where, selector.Name)
		}
		return nil
	})
}

// TestAlerts checks the alerting rules with Prometheus' own code. It also checks that each rule has
// a summary, a reason and a severity.
func TestAlerts(t *testing.T) {
	const file = "../prometheus/alerts.yaml"
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	names := exposed(t)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			checkExpression(t, names, rule.Alert, rule.Expr)
			for _, annotation := range []string{"reason", "summary"} {
				if rule.Annotations[annotation] == "" {
					t.Errorf("%s has no annotation %q", rule.Alert, annotation)
				}
			}
			if rule.Labels["severity"] == "" {
				t.Errorf("%s has no severity", rule.Alert)
			}
		}
	}
}

// TestDashboard checks the queries of the Grafana dashboard. It also checks that the panels have
// different IDs, do not overlap and fit on the page.
func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("../grafana/selvage.json")
	if err != nil {
		t.Fatal(err)
	}

	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}

	names := exposed(t)
	// Grafana replaces its variables before Prometheus parses a query.
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", "selvage", "$instance", ".*")
	ids := make(map[int]bool)
	cells := make(map[[2]int]string)
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the ID %d", p.ID)
		}
		ids[p.ID] = true
		p.occupy(t, cells)

		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
		for _, query := range p.Targets {
			checkExpression(t, names, p.Title, variables.Replace(query.Expr))
		}
	}
}

// A panel is a panel of a Grafana dashboard. Its position and size are numbers of cells.
type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr string }
}

// occupy adds the panel's title at its cells, which must be free. The dashboard is 24 cells wide.
func (p panel) occupy(t *testing.T, cells map[[2]int]string) {
	t.Helper()
	place := p.GridPos
	if place.X+place.W > 24 {
		t.Errorf("%s ends at column %d, want at most 24", p.Title, place.X+place.W)
	}
	for x := place.X; x < place.X+place.W; x++ {
		for y := place.Y; y < place.Y+place.H; y++ {
			cell := [2]int{x, y}
			if other := cells[cell]; other != "" {
				t.Errorf("%s overlaps %s", p.Title, other)
			}
			cells[cell] = p.Title
		}
	}
}
