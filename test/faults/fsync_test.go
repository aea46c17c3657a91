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

// TestSyncFails makes every fsync fail, as on a failing disk. During this time, the server refuses
// all changes. Afterwards, changes succeed again. A crash then loses no change that the server has
// acknowledged.
func TestSyncFails(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	c := newCreator(t)
	c.wantCreated(t, "before")
	repair := failSyncs(t, c.server.PID())
	c.wantRefused(t)

	repair()
	harness.Eventually(t, recovers, "a change to succeed", func() error {
		if status := c.create(t, "after"); status != http.StatusCreated {
			return fmt.Errorf("the change returned %d, want 201", status)
		}
		return nil
	})

	c.server.Kill()
	c.wantNothingLost(t)
}

// TestCrashWhileSyncFails is like TestSyncFails, but the server crashes before the disk works again.
func TestCrashWhileSyncFails(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	c := newCreator(t)
	c.wantCreated(t, "before")
	repair := failSyncs(t, c.server.PID())
	c.wantRefused(t)

	c.server.Kill()
	repair()
	c.wantNothingLost(t)
}

// A creator creates subscribers, and remembers which of them the server has acknowledged.
type creator struct {
	server       *harness.Server
	project      *harness.Project
	acknowledged []string // ids of subscribers
}

const subscribers = "/api/fabric/resources/subscribers"

func newCreator(t *testing.T) *creator {
	t.Helper()
	s := harness.Start(t)
	return &creator{server: s, project: s.NewProject(t)}
}

// create tries to create a subscriber, and returns the status of the response.
func (c *creator) create(t *testing.T, name string) (status int) {
	t.Helper()
	a, err := c.project.Try("POST", subscribers, c.project.Basic(),
		harness.JSON(map[string]string{"email": name + "@example.com"}))
	if err != nil {
		t.Fatal(err)
	}

	var created struct{ ID string }
	if a.Status == http.StatusCreated && json.Unmarshal(a.Body, &created) == nil {
		c.acknowledged = append(c.acknowledged, created.ID)
	}
	if a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") == "" {
		t.Error("the refusal has no Retry-After")
	}
	return a.Status
}

func (c *creator) wantCreated(t *testing.T, name string) {
	t.Helper()
	if status := c.create(t, name); status != http.StatusCreated {
		t.Fatalf("creating a subscriber returned %d, want 201", status)
	}
}

// wantRefused checks that the server refuses changes, but still answers reads.
func (c *creator) wantRefused(t *testing.T) {
	t.Helper()
	p := c.project
	for i := range 3 {
		if status := c.create(t, fmt.Sprintf("during%d", i)); status != http.StatusServiceUnavailable {
			t.Errorf("a change that cannot be written to the disk returned %d, want 503", status)
		}
		p.Post(t, p.LaML("/Recordings"), p.Basic(), harness.Body("audio/wav", harness.Tone(8000+i, 2))).Want(t, 503)
		p.Get(t, subscribers, p.Basic()).Want(t, 200)
	}
}

// wantNothingLost restarts the server, and checks its files and all acknowledged subscribers.
func (c *creator) wantNothingLost(t *testing.T) {
	t.Helper()
	wantWhole(t, c.server)
	c.server.Restart(t)
	for _, id := range c.acknowledged {
		c.project.Get(t, subscribers+"/"+id, c.project.Basic()).Want(t, 200)
	}
	if report := c.server.CLI(t, "", "audit", "verify"); report["whole"] != true {
		t.Errorf("audit verify = %v, want an intact trail", report)
	}
}

// failSyncs makes fsync and fdatasync of a process fail until repair is called. repair may be called
// more than once.
func failSyncs(t *testing.T, pid int) (repair func()) {
	t.Helper()
	harness.Need(t, "strace")
	cmd := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync",
		"-e", "inject=fsync,fdatasync:error=EIO", "-p", fmt.Sprint(pid))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // fails because a signal ends the process
		close(exited)
	}()
	repair = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails if strace has ended with the traced process
		<-exited
	}
	t.Cleanup(repair)

	harness.Eventually(t, time.Minute, "strace to trace all threads", func() error {
		select {
		case <-exited:
			harness.Missing(t, "the right to trace a process with strace")
		default:
		}
		return checkTraced(pid)
	})
	return repair
}

// checkTraced returns an error if a thread of a process is not traced.
func checkTraced(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if err != nil {
			continue // the thread has ended
		}
		if strings.Contains(string(status), "\nTracerPid:\t0\n") {
			return errors.New(thread + " is not traced")
		}
	}
	return nil
}
