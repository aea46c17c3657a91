package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestSyncFails makes the kernel fail each request to write files to the disk, as a dying disk does.
// The server acknowledges no change during this time. No change that it acknowledged before is
// lost, even if the server is killed.
func TestSyncFails(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	s := harness.Start(t)
	p := s.NewProject(t)
	acknowledged := map[string]bool{}
	write := func(name string) int {
		a, err := p.Try("POST", "/api/fabric/resources/subscribers", p.Basic(),
			harness.JSON(map[string]string{"email": name + "@example.com"}))
		var made struct{ ID string }
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == http.StatusCreated && json.Unmarshal(a.Body, &made) == nil {
			acknowledged[made.ID] = true
		}
		if a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") == "" {
			t.Error("a refusal without Retry-After")
		}
		return a.Status
	}

	for round, killed := range []bool{false, true} {
		if status := write(fmt.Sprintf("before%d", round)); status != 201 {
			t.Fatalf("a change before the fault = %d, want 201", status)
		}
		mend := failSyncs(t, s.PID())
		for i := range 3 {
			if status := write(fmt.Sprintf("during%d-%d", round, i)); status != 503 {
				t.Errorf("a change that cannot be written to the disk = %d, want 503", status)
			}
			p.Post(t, p.LaML("/Recordings"), p.Basic(), harness.Body("audio/wav", harness.Tone(8000+i, 2))).Want(t, 503)
			p.Get(t, "/api/fabric/resources/subscribers", p.Basic()).Want(t, 200)
		}

		if !killed {
			mend()
			harness.Eventually(t, recovers, "a change to succeed", func() error {
				if status := write(fmt.Sprintf("after%d-%d", round, len(acknowledged))); status != 201 {
					return fmt.Errorf("the change = %d, want 201", status)
				}
				return nil
			})
		}

		s.Kill()
		mend()
		wantWhole(t, s)
		s.Restart(t)
		for id := range acknowledged {
			p.Get(t, "/api/fabric/resources/subscribers/"+id, p.Basic()).Want(t, 200)
		}
	}

	if report := s.CLI(t, "", "audit", "verify"); report["whole"] != true {
		t.Errorf("audit verify = %v, want it whole", report)
	}
}

// failSyncs makes fsync and fdatasync of a process fail. The returned function ends this, and may be
// called twice.
func failSyncs(t *testing.T, pid int) (mend func()) {
	t.Helper()
	harness.Need(t, "strace")
	cmd := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync",
		"-e", "inject=fsync,fdatasync:error=EIO", "-p", fmt.Sprint(pid))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it reports the signal that ends it
		close(exited)
	}()
	mend = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended with the process
		<-exited
	}
	t.Cleanup(mend)

	harness.Eventually(t, time.Minute, "strace to control all threads", func() error {
		select {
		case <-exited:
			harness.Missing(t, "the right to trace a process with strace")
		default:
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, thread := range threads {
			text, gone := os.ReadFile(thread)
			if gone == nil && strings.Contains(string(text), "\nTracerPid:\t0\n") {
				err = errors.New("there is another one")
			}
		}
		return err
	})
	return mend
}
