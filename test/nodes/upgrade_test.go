package nodes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

const root = "../.."

// run runs a command in a directory and returns its output.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// buildPrevious builds selvage from the commit before the newest migration was added, and returns
// the path of the binary. It needs the repository's history.
func buildPrevious(t *testing.T) (binary string) {
	t.Helper()
	all, err := filepath.Glob(root + "/store/migrations/*.sql")
	if err != nil || len(all) < 2 {
		t.Fatalf("there are %d migrations: %v", len(all), err)
	}
	newest := "store/migrations/" + filepath.Base(slices.Max(all))
	commit := run(t, root, "git", "log", "--diff-filter=A", "--format=%H", "-1", "--", newest)
	if commit == "" {
		t.Fatalf("no commit added %s: the repository has no history", newest)
	}

	source := t.TempDir()
	archive := filepath.Join(t.TempDir(), "source.tar")
	run(t, root, "git", "archive", "--output", archive, commit+"^")
	run(t, source, "tar", "xf", archive)
	binary = filepath.Join(t.TempDir(), "selvage")
	run(t, source, "go", "build", "-o", binary, "./cmd/selvage")
	return binary
}

// TestRollingUpgrade starts a node of this version alongside a node that was built from a commit
// with an older schema. No request to the old node fails, neither while the new node updates the
// schema nor afterwards. Each node accepts the tokens of the other, and both continue one audit
// trail. The old version does not open the new schema. The test runs only with LONG=1, because it
// builds selvage twice.
func TestRollingUpgrade(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	if os.Getenv("LONG") != "1" {
		return
	}

	t.Parallel()
	old := harness.StartConfig(t, harness.Config{
		Binary:   buildPrevious(t),
		Data:     filepath.Join(t.TempDir(), "data"),
		Backends: servers.Backend(t),
	})
	before := schemaOf(t, old)
	p := old.NewProject(t)
	c := p.NewClient(t, "service", "--access-token", "jwt", "--scope", "Voice")
	account := login{project: p, client: c}
	ofOld := account.at(old)

	// The load creates tokens and changes rows on the old node.
	ctx, stop := context.WithCancel(t.Context())
	var count atomic.Int64
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			tick := time.NewTicker(askEvery)
			defer tick.Stop()
			for ; ctx.Err() == nil; <-tick.C {
				old.Get(t, p.LaML("/Recordings"), harness.Bearer(grant(t, ofOld))).Want(t, 200)
				old.Get(t, "/subscriber/info", harness.Bearer(ofOld.NewSAT(t, "ada").Token)).Want(t, 200)
				count.Add(1)
			}
		})
	}

	current := harness.StartConfig(t, harness.Config{
		Beside: old,
		Data:   filepath.Join(t.TempDir(), "data"),
		Env:    []string{"SELVAGE_MASTER_KEY_FILE=" + filepath.Join(old.Data, "master.key")},
		Args: []string{"--public-url", old.PublicURL, "--auth-url", old.AuthURL,
			"--media", "dir:" + filepath.Join(old.Data, "media")},
	})
	if after := schemaOf(t, current); after <= before {
		t.Errorf("the schema went from %v to %v, want a newer one", before, after)
	}

	ofNew := account.at(current)
	for range 20 {
		made := ofOld.NewSAT(t, "ada").Token
		current.Get(t, "/subscriber/info", harness.Bearer(made)).Want(t, 200)
		old.Get(t, "/subscriber/info", harness.Bearer(ofNew.NewSAT(t, "ada").Token)).Want(t, 200)
		old.Get(t, p.LaML("/Recordings"), harness.Bearer(grant(t, ofNew))).Want(t, 200)
		current.Get(t, p.LaML("/Recordings"), harness.Bearer(grant(t, ofOld))).Want(t, 200)
	}

	stop()
	load.Wait()
	t.Logf("%d rounds of requests to the old node", count.Load())

	if report := current.CLI(t, "", "audit", "verify"); report["whole"] != true {
		t.Errorf("verifying the audit trail of both versions returned %v, want an intact trail", report)
	}
	if err := old.Stop(t); err != nil {
		t.Errorf("stopping the old node: %v", err)
	}
	current.Get(t, "/subscriber/info", harness.Bearer(ofNew.NewSAT(t, "ada").Token)).Want(t, 200)
	out, err := old.TryCommand("project", "list")
	if err == nil || !strings.Contains(out, "a newer version has used it") {
		t.Errorf("the old version opens the new schema: %v\n%s", err, out)
	}
}

// schemaOf returns the version of a server's schema.
func schemaOf(t *testing.T, s *harness.Server) float64 {
	t.Helper()
	return s.CLI(t, "", "migrate", "status")["current"].(float64)
}
