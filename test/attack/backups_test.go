package attack

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// awaitBackups opens the dashboard's page of backups until no job is running and the page lists
// want backups. It returns the page.
func awaitBackups(t *testing.T, b *harness.Browser, want int) (page harness.Page) {
	t.Helper()
	harness.Eventually(t, time.Minute, fmt.Sprint("the list of ", want, " backups"), func() error {
		page = b.Open(t, "/dashboard/backups")
		if strings.Contains(string(page.Body), `status warn">Running`) {
			return errors.New("a job is running")
		}
		if n := strings.Count(string(page.Body), `/check"`); n != want {
			return fmt.Errorf("the page lists %d backups, want %d", n, want)
		}
		return nil
	})
	return page
}

// TestBackupsFromPage shows that an owner of the installation can create and check backups on the
// dashboard. If several requests run concurrently, each creates one backup or is refused. A check
// recognizes a damaged archive. "selvage backup verify" accepts the backups. Other operators can
// neither see nor create backups.
func TestBackupsFromPage(t *testing.T) {
	temp := t.TempDir()
	key := filepath.Join(temp, "key.txt")
	dir := filepath.Join(temp, "backups")
	recipient, err := exec.Command(harness.Binary(t), "backup", "key", key).Output()
	if err != nil {
		t.Fatal(err)
	}
	s := harness.StartConfig(t, harness.Config{Env: []string{
		"SELVAGE_BACKUP__DIRECTORY=" + dir,
		"SELVAGE_BACKUP__RECIPIENTS=" + strings.TrimSpace(string(recipient)),
	}})
	p := s.NewProject(t)
	upload(t, p)

	owner := operator(t, p, "owner")
	awaitBackups(t, owner, 1) // the server created it at its start
	for _, role := range []string{"owner@" + p.ID, "admin", "viewer"} {
		b := operator(t, p, role)
		b.Open(t, "/dashboard/backups").Want(t, 403)
		b.Open(t, "/dashboard/backups/live").Want(t, 403)
	}

	created := requestBackups(t, owner)
	page := awaitBackups(t, owner, 1+created)

	var events []map[string]any
	listed := s.Command(t, "", "audit", "list", "--action", "backup.requested", "-o", "json")
	if err := json.Unmarshal([]byte(listed), &events); err != nil {
		t.Errorf("the list of audit events is not JSON: %v", err)
	}
	if len(events) != created {
		t.Errorf("the audit trail has %d requests for backups, want %d", len(events), created)
	}
	s.Command(t, "", "backup", "verify", dir, "--identity", key)

	check := func(want string) {
		t.Helper()
		owner.Submit(t, page, "check-0", nil).Want(t, 200)
		page = awaitBackups(t, owner, 1+created)
		if !strings.Contains(string(page.Body), want) {
			t.Errorf("after a check, the page does not contain %q", want)
		}
	}
	check("is unchanged since it was created")
	newest := s.CLI(t, "", "backup", "verify", dir, "--identity", key)["name"].(string)
	damage(t, filepath.Join(dir, newest))
	check(newest + " is damaged")
}

// requestBackups requests several backups concurrently, each from a new page, and returns how many
// were created. While the server creates a backup, it refuses to create another one.
func requestBackups(t *testing.T, owner *harness.Browser) (created int) {
	t.Helper()
	results := make([]harness.Page, 4)
	var requests sync.WaitGroup
	for i := range results {
		form := owner.Open(t, "/dashboard/backups")
		requests.Go(func() { results[i] = owner.Submit(t, form, "new-backup", nil) })
	}
	requests.Wait()

	for _, r := range results {
		r.Want(t, 200, 409)
		if r.Status == 200 {
			created++
		}
	}
	if created == 0 {
		t.Error("no request created a backup, want at least one")
	}
	return created
}

// damage inverts the last byte of a file.
func damage(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	content[len(content)-1] ^= 0xff
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
