package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestKillDuringMasterKey kills `selvage master-key rotate` at different moments. In every other
// round, it also kills the server. Each time, the rotation must have happened completely or not at
// all. The audit trail can be verified, all earlier tokens are valid, secrets can be read, and
// changes are possible. After another, complete rotation, nothing needs an earlier master key.
func TestKillDuringMasterKey(t *testing.T) {
	harness.Rows(t)
	s := harness.StartConfig(t, harness.Config{})
	l := newVerifications(t, s.NewProject(t))
	secret := signingKey(t, l.project)

	began := time.Now()
	rotateMaster(t, s, 0)
	took := time.Since(began)
	wantUsable(t, l, secret)

	rotated := 0
	for round := range rounds() {
		before := masterKeys(t, s)
		after := took * time.Duration(1+round) / time.Duration(rounds())
		rotateMaster(t, s, after)
		if round%2 == 1 {
			s.Kill()
			wantWhole(t, s)
			s.Restart(t)
		}
		now := masterKeys(t, s)
		if now != before && now != before+1 {
			t.Fatalf("after a killed rotation, there are %d master keys, want %d or one more", now, before)
		}
		rotated += now - before
		wantUsable(t, l, secret)
	}
	t.Logf("%d of %d killed rotations had taken effect", rotated, rounds())

	rotateMaster(t, s, 0)
	s.Kill()
	earlier, err := filepath.Glob(filepath.Join(s.Data, "master.key.*"))
	if err != nil || len(earlier) == 0 {
		t.Fatalf("there are no earlier master keys: %v", err)
	}
	for _, file := range earlier {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	s.Restart(t)
	wantUsable(t, l, secret)
}

// rotateMaster replaces the master key. If after is not 0, it kills the command after this time.
func rotateMaster(t *testing.T, s *harness.Server, after time.Duration) {
	t.Helper()
	if s.Database() != "" {
		s.Command(t, "", "master-key", "prepare")
	}
	if after == 0 {
		s.Command(t, "", "master-key", "rotate", "--yes")
		return
	}

	cmd := exec.Command(harness.Binary(t), "master-key", "rotate", "--yes", "--data", s.Data)
	cmd.Env = append(os.Environ(), s.Backends...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	_ = cmd.Wait() // fails if the process was killed
}

// masterKeys returns the number of master keys that the installation has had.
func masterKeys(t *testing.T, s *harness.Server) int {
	t.Helper()
	return len(strings.Fields(s.Command(t, "", "master-key", "list", "-o", "id")))
}

// signingKey returns the key that signs a project's webhooks, which the master key seals.
func signingKey(t *testing.T, p *harness.Project) string {
	t.Helper()
	return p.CLI(t, "", "webhook", "key", "show", "--project", p.ID)["key"].(string)
}

// wantUsable checks that all tokens are valid, that the audit trail can be verified, that the
// signing key of webhooks is still secret, and that the server can create new tokens.
func wantUsable(t *testing.T, l *load, secret string) {
	t.Helper()
	for _, v := range l.tokens {
		a, err := l.project.Try("GET", v.path, harness.Bearer(v.token))
		if err == nil {
			err = a.StatusIs(200)
		}
		if err != nil {
			t.Errorf("using a valid token after a rotation: %v", err)
		}
	}

	if report := l.project.CLI(t, "", "audit", "verify"); report["whole"] != true {
		t.Errorf("audit verify after a rotation: %v, want an intact trail", report)
	}
	if now := signingKey(t, l.project); now != secret {
		t.Error("the signing key of webhooks has changed")
	}
	l.addTokens()
}
