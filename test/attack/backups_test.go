package attack

import (
	"encoding/json"
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

const backupDeadline = time.Minute

// awaitBackups opens the page of backups until no job is running and the page lists the given
// number of backups.
func awaitBackups(t *testing.T, b *harness.Browser, want int) (p harness.Page) {
	t.Helper()
	harness.Eventually(t, backupDeadline, fmt.Sprint(want, " backups"), func() error {
		p = b.Open(t, "/dashboard/backups")
		running := strings.Contains(string(p.Body), `status warn">Running`)
		if n := strings.Count(string(p.Body), `/check"`); running || n != want {
			return fmt.Errorf("the page lists %d backups; a job is running: %t", n, running)
		}
		return nil
	})
	return p
}

// TestBackupsFromPage shows that an owner of the installation can create and check backups on a
// page. Each of several concurrent requests creates one backup or none, and a check finds a damaged
// archive. `selvage backup verify` accepts the backups. Other operators can use none of this.
func TestBackupsFromPage(t *testing.T) {
	at := t.TempDir()
	key, dir := filepath.Join(at, "key.txt"), filepath.Join(at, "backups")
	to, err := exec.Command(harness.Binary(t), "backup", "key", key).Output()
	if err != nil {
		t.Fatal(err)
	}
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_BACKUP__DIRECTORY=" + dir,
		"SELVAGE_BACKUP__RECIPIENTS=" + strings.TrimSpace(string(to))}})
	p := s.NewProject(t)
	upload(t, p)

	owner := operator(t, p, "owner")
	page := awaitBackups(t, owner, 1) // the server has created one automatically
	for _, role := range []string{"owner@" + p.ID, "admin", "viewer"} {
		b := operator(t, p, role)
		b.Open(t, "/dashboard/backups").Want(t, 403)
		b.Open(t, "/dashboard/backups/live").Want(t, 403)
	}

	// A request from a new page creates a backup unless another backup is being created.
	const tries = 4
	results := make([]harness.Page, tries)
	var all sync.WaitGroup
	for i := range tries {
		form := owner.Open(t, "/dashboard/backups")
		all.Go(func() { results[i] = owner.Submit(t, form, "new-backup", nil) })
	}

	all.Wait()
	made := 0
	for _, r := range results {
		r.Want(t, 200, 409)
		if r.Status == 200 {
			made++
		}
	}

	page = awaitBackups(t, owner, 1+made)
	if made == 0 {
		t.Error("no request created a backup")
	}

	var events []map[string]any
	listed := s.Command(t, "", "audit", "list", "--action", "backup.requested", "-o", "json")
	if err := json.Unmarshal([]byte(listed), &events); err != nil || len(events) != made {
		t.Errorf("%d backups were requested, and the audit trail has %d (%v)", made, len(events), err)
	}
	s.Command(t, "", "backup", "verify", dir, "--identity", key)

	check := func(want string) {
		t.Helper()
		owner.Submit(t, page, "check-0", nil).Want(t, 200)
		page = awaitBackups(t, owner, 1+made)
		if !strings.Contains(string(page.Body), want) {
			t.Errorf("after a check, the page does not contain %q", want)
		}
	}
	check("is unchanged since it was created")
	newest := s.CLI(t, "", "backup", "verify", dir, "--identity", key)["name"].(string)
	damage(t, filepath.Join(dir, newest))
	check(newest + " is damaged")
}

// damage inverts the last byte of a file.
func damage(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		content[len(content)-1] ^= 0xff
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
