package server

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/page"
)

// openBootstrap opens an installation whose configuration describes the first operator and a key.
func openBootstrap(t *testing.T, token string) *App {
	t.Helper()
	variables := map[string]string{
		"SELVAGE_DATA":                      t.TempDir(),
		"SELVAGE_BOOTSTRAP_ADMIN_EMAIL":     "root@example.com",
		"SELVAGE_BOOTSTRAP_ADMIN_PASSWORD":  "a loom of one's own",
		"SELVAGE_BOOTSTRAP_ADMIN_API_TOKEN": token,
	}
	getenv := func(name string) string { return variables[name] }
	conf, _, err := config.Load(pflag.NewFlagSet("", pflag.ContinueOnError), getenv, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), conf, config.LocateRunning(conf), Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// TestBootstrapContinues shows that a start creates both the first owner and the key, even if an
// earlier start could not create the key. It also shows that only one project is created.
func TestBootstrapContinues(t *testing.T) {
	const token = "PT0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	a := openBootstrap(t, token)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(a.Config.Data, "selvage.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(query string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}

	exec(`CREATE TRIGGER full BEFORE INSERT ON api_keys BEGIN SELECT RAISE(ABORT, 'disk full'); END`)
	if err := a.bootstrap(t.Context()); err == nil {
		t.Fatal("bootstrap when the key cannot be stored = nil, want an error")
	}
	exec(`DROP TRIGGER full`)
	for range 2 { // the second call finds everything
		if err := a.bootstrap(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	wantOneOfEach(t, a, token)
}

// wantOneOfEach checks that the first start created one operator, one project, and one key with the
// given secret.
func wantOneOfEach(t *testing.T, a *App, token string) {
	t.Helper()
	operators, err := a.Operators.List(t.Context(), page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(operators.Items) != 1 {
		t.Errorf("there are %d operators, want 1", len(operators.Items))
	}

	projects, err := a.Fabric.Projects.List(t.Context(), page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(projects.Items) != 1 {
		t.Fatalf("there are %d projects, want 1", len(projects.Items))
	}
	keys, err := a.Fabric.APIKeys.List(t.Context(), projects.Items[0].ID, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(keys.Items) != 1 {
		t.Errorf("there are %d keys, want 1", len(keys.Items))
	}
	if _, err := a.Fabric.APIKeys.Authenticate(t.Context(), projects.Items[0].ID, token); err != nil {
		t.Errorf("the key is refused: %v", err)
	}
}

// TestBootstrapTogether shows that several nodes that start at the same time create one owner, one
// key and one project.
func TestBootstrapTogether(t *testing.T) {
	const token = "PTfedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	a := openBootstrap(t, token)
	results := make(chan error)
	const nodes = 5
	for range nodes {
		go func() { results <- a.bootstrap(t.Context()) }()
	}
	for range nodes {
		if err := <-results; err != nil {
			t.Errorf("bootstrap = %v, want nil", err)
		}
	}

	wantOneOfEach(t, a, token)
}
