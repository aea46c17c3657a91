package faults

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// These constants limit the memory of an idle server, in KiB: right after its start, and after it
// has served many people. A garbage collection, which happens every few minutes, may need more for
// some seconds.
const (
	idleMemory = 40 << 10
	usedMemory = 60 << 10 // the goal after 100,000 tokens
)

// TestIdleMemory shows that a server returns memory to the system when its start is done. With
// LONG=1, it also shows this after many people have signed in.
func TestIdleMemory(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	s := harness.Start(t)
	wantIdleMemory(t, s, "after the start", idleMemory)
	if os.Getenv("LONG") != "1" {
		return
	}

	p := s.NewProject(t)
	c := p.NewClient(t, "web", "--first-party")
	sub := p.NewSubscriber(t)
	_, b := c.SignIn(t, sub, "openid offline_access")
	cookies := b.Cookies()
	const passwords, flows = 1000, 10_000

	var workers sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		workers.Go(func() {
			for next.Add(1) <= flows {
				if err := visit(c, cookies); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	for range passwords {
		c.SignIn(t, sub, "openid")
	}
	wantIdleMemory(t, s, "after the work", usedMemory)
}

// visit gets a code, redeems it and refreshes the tokens.
func visit(c *harness.Client, cookies harness.Option) error {
	flow := c.NewFlow("openid offline_access")
	code, err := flow.QuickCode(cookies)
	if err != nil {
		return err
	}
	tokens, err := flow.QuickRedeem(code)
	if err != nil {
		return err
	}
	_, err = c.QuickRefresh(tokens.RefreshToken)
	return err
}

// wantIdleMemory waits until a server used less memory than most, in KiB, in three quarters of the
// samples of the last half minute.
func wantIdleMemory(t *testing.T, s *harness.Server, when string, most int) {
	t.Helper()
	const samples = 60
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var last []int
	for deadline := time.Now().Add(5 * time.Minute); ; <-tick.C {
		last = append(last, resident(t, s.PID()))
		if len(last) < samples {
			continue
		}
		last = last[len(last)-samples:]
		sorted := slices.Sorted(slices.Values(last))
		if typical := sorted[samples*3/4]; typical < most {
			t.Logf("%s, an idle server uses %d MiB (median), at most %d MiB", when, sorted[samples/2]>>10,
				sorted[samples-1]>>10)
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%s, an idle server uses %d MiB, want less than %d MiB", when, typical>>10, most>>10)
		}
	}
}

// resident returns the memory of a process in KiB (proc(5), VmRSS).
func resident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0]) // the kernel formats it
			return n
		}
	}
	t.Fatalf("the status of process %d has no VmRSS", pid)
	return 0
}
