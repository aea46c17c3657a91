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
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources of metrics: %v", err)
	}
	mail, err := filepath.Glob("../../cmd/selvage/internal/server/mail*.go")
	if err != nil {
		t.Fatal(err)
	}

	names := make(map[string]bool)
	whole := regexp.MustCompile(`"(selvage_[a-z_]+[a-z])"`)
	ofDatabase := regexp.MustCompile(`newDatabaseMetric\("([a-z_]+)"`)
	ofDeliverer := regexp.MustCompile(`watchDeliverer\("([a-z]+)"`)
	for _, f := range append(files, mail...) {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range whole.FindAllSubmatch(source, -1) {
			names[string(m[1])] = true
		}
		for _, m := range ofDatabase.FindAllSubmatch(source, -1) {
			names["selvage_database_"+string(m[1])] = true
		}
		for _, m := range ofDeliverer.FindAllSubmatch(source, -1) {
			names["selvage_"+string(m[1])+"_queue"] = true
			names["selvage_"+string(m[1])+"_queue_age_seconds"] = true
		}
	}
	return names
}

// others matches metrics that Prometheus and its client library create.
var others = regexp.MustCompile(`^(up|go_goroutines|process_(cpu_seconds_total|resident_memory_bytes))$`)

// checkExpression checks that expr can be parsed and uses only metrics that exist.
func checkExpression(t *testing.T, names map[string]bool, where, expr string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v in %s", where, err, expr)
		return
	}

	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name := v.Name
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if base, cut := strings.CutSuffix(name, suffix); cut && names[base] {
				name = base
			}
		}
		if !names[name] && !others.MatchString(name) {
			t.Errorf("%s: the server has no metric %s", where, v.Name)
		}
		return nil
	})
}

// TestAlerts checks the rules with Prometheus' own code. It also checks that each rule has a
// summary, a reason and a severity.
func TestAlerts(t *testing.T) {
	const file = "../prometheus/alerts.yaml"
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	names := exposed(t)
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			checkExpression(t, names, r.Alert, r.Expr)
			if r.Annotations["reason"] == "" || r.Annotations["summary"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s lacks a summary, a reason or a severity", r.Alert)
			}
		}
	}
}

// TestDashboard checks the queries of the Grafana dashboard, and that its panels do not overlap.
func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("../grafana/selvage.json")
	if err != nil {
		t.Fatal(err)
	}

	type place struct{ X, Y, W, H int }
	var d struct {
		UID    string
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     place
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}

	names, ids, taken := exposed(t), make(map[int]bool), make(map[[2]int]string)
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Errorf("%s overlaps %q or leaves the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}

		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
		for _, q := range p.Targets {
			// Grafana replaces its variables before Prometheus parses the query.
			expr := strings.NewReplacer("$__rate_interval", "5m", "$job", "selvage", "$instance", ".*").Replace(q.Expr)
			checkExpression(t, names, p.Title, expr)
		}
	}
}
