package faults

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

const (
	maxBackupCost = 1.1 // CPU time of a request during a backup, as a multiple of the usual time
	maxBackupTime = 2   // duration of a backup, as a multiple of its CPU time plus the time to copy the files
)

// backUp creates a backup while clients use the server. With LONG=1, it creates more backups in
// other directories, and checks what the backups cost and how long they take.
func (in *installation) backUp(t *testing.T, archive, recipient string) {
	t.Helper()
	quiet, rounds := time.Second, 1
	if os.Getenv("LONG") == "1" {
		quiet, rounds = 10*time.Second, 5
	}

	var ratios []float64
	for range rounds {
		usual := in.costUntil(t, time.After(quiet))
		ended, began := make(chan time.Time), time.Now()
		var took, cpu time.Duration
		go func() {
			defer close(ended)
			cpu = in.createBackup(t, archive, recipient)
			took = time.Since(began)
		}()
		during := in.costUntil(t, ended)
		copying := copyFiles(t, in.project.Data)
		t.Logf("a request costs %v, and %v during a backup; the backup took %v and %v of CPU time; "+
			"copying takes %v",
			usual, during, took, cpu, copying)

		ratios = append(ratios, float64(during)/float64(usual))
		if rounds > 1 && took > maxBackupTime*(cpu+copying) {
			t.Errorf("a backup took %v, want at most %v times %v", took, maxBackupTime, cpu+copying)
		}
		archive = t.TempDir() + "/"
	}

	slices.Sort(ratios)
	if median := ratios[rounds/2]; rounds > 1 && median > maxBackupCost {
		t.Errorf("during a backup, requests cost %.2f times as much (all rounds: %.2f), want at most %v",
			median, ratios, maxBackupCost)
	}
}

// createBackup creates a backup and returns the CPU time that the command used.
func (in *installation) createBackup(t *testing.T, archive, recipient string) time.Duration {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), "backup", "create", archive, "--recipient", recipient,
		"--data", in.project.Data)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("backup create: %v\n%s", err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// copyFiles copies the files in a directory to the disk, one by one, and returns how long this
// takes.
func copyFiles(t *testing.T, dir string) time.Duration {
	t.Helper()
	to, err := os.Create(filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Error(err)
		return 0
	}
	defer to.Close()

	began := time.Now()
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := to.Write(content); err != nil {
			return err
		}
		return to.Sync()
	})
	if err != nil {
		t.Errorf("copying %s: %v", dir, err)
	}
	return time.Since(began)
}

// costUntil verifies tokens at a fixed rate until it receives from done. With every twentieth
// token, it also lets a browser sign in. It returns the CPU time of the server per token.
func (in *installation) costUntil(t *testing.T, done <-chan time.Time) time.Duration {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	before := harness.CPU(in.project.PID())
	for n := 0; ; n++ {
		select {
		case <-done:
			return (harness.CPU(in.project.PID()) - before) / time.Duration(max(n, 1))
		case <-tick.C:
		}
		if n%20 == 0 {
			in.signIn(t)
		}
		v := in.tokens[n%len(in.tokens)]
		in.project.Get(t, v.path, harness.Bearer(v.token)).Want(t, 200)
	}
}

// signIn gets a code and redeems it.
func (in *installation) signIn(t *testing.T) {
	t.Helper()
	f := in.client.NewFlow("openid")
	code, err := f.QuickCode(in.cookies)
	if err == nil {
		_, err = f.QuickRedeem(code)
	}
	if err != nil {
		t.Errorf("signing in: %v", err)
	}
}
