package attack

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestP09ParallelLogins starts 300 logins at the same time. Each password hash takes 19 MiB, which
// would be 5.6 GiB for all of them. Logins therefore wait for one another, or get an error that
// says when to try again. The server uses at most 512 MiB. Meanwhile, it verifies tokens without
// waiting for the logins.
func TestP09ParallelLogins(t *testing.T) {
	harness.OneBackend(t)
	const crowd, maxKiB = 300, 512 << 10
	p := limited(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)
	sat := p.NewSAT(t, "somebody")

	browsers := make([]*harness.Browser, crowd)
	forms := make([]harness.Page, crowd)
	for i := range browsers {
		browsers[i] = c.Browser()
		forms[i] = browsers[i].Open(t, c.NewFlow("openid").URL())
	}

	start := time.Now()
	results := make([]harness.Page, crowd)
	var logins sync.WaitGroup
	for i, b := range browsers {
		logins.Go(func() {
			results[i] = b.Submit(t, forms[i], "login-submit",
				map[string]string{"username": sub.Email, "password": sub.Password})
		})
	}

	over := make(chan struct{})
	go func() {
		logins.Wait()
		close(over)
	}()
	verifications := verifyUntil(t, p, sat.Token, over)
	loginsTook := time.Since(start)
	succeeded := countLogins(t, results)

	peak := 0
	for _, pid := range harness.Family(p.PID()) {
		peak += peakOf(t, pid)
	}
	if peak > maxKiB {
		t.Errorf("the server and its hashing process used %d KiB at their peaks, want at most %d", peak, maxKiB)
	}

	// On a busy machine everything takes longer, so the limit grows with the duration of the
	// logins.
	slices.Sort(verifications)
	p99 := verifications[len(verifications)*99/100]
	limit := max(time.Second, loginsTook/4)
	if p99 > limit {
		t.Errorf("during logins that took %v, the p99 of %d token verifications was %v, want at most %v",
			loginsTook, len(verifications), p99, limit)
	}
	t.Logf("%d of %d logins succeeded; %d verifications during them", succeeded, crowd, len(verifications))
}

// verifyUntil verifies a token repeatedly until over is closed, and at least once. It returns how
// long each verification took.
func verifyUntil(t *testing.T, p *harness.Project, token string, over <-chan struct{}) (took []time.Duration) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond) // leaves the CPU to the logins
	defer tick.Stop()
	for {
		began := time.Now()
		p.Get(t, "/api/fabric/subscriber/info", harness.Bearer(token)).Want(t, 200)
		took = append(took, time.Since(began))
		select {
		case <-over:
			return took
		case <-tick.C:
		}
	}
}

// countLogins returns how many logins succeeded, which must be at least one. The responses to all
// others must say when to try again.
func countLogins(t *testing.T, results []harness.Page) (succeeded int) {
	t.Helper()
	for i, r := range results {
		if r.Left != nil {
			succeeded++
			continue
		}
		if r.Status != http.StatusTooManyRequests && r.Status != http.StatusServiceUnavailable {
			t.Errorf("login %d returned the status %d, want success, 429 or 503", i, r.Status)
		}
		if r.Header.Get("Retry-After") == "" {
			t.Errorf("login %d returned the status %d without Retry-After", i, r.Status)
		}
	}

	if succeeded == 0 {
		t.Errorf("none of %d logins succeeded", len(results))
	}
	return succeeded
}

// peakOf returns the peak memory of a process, in KiB (proc(5), VmHWM).
func peakOf(t *testing.T, pid int) int {
	t.Helper()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("peak memory can be read on Linux only")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err) // the server has exited
	}

	_, value, found := strings.Cut(string(status), "\nVmHWM:")
	if !found {
		t.Fatal("the kernel did not report the peak")
	}
	var peak int
	if _, err := fmt.Sscanf(value, "%d kB", &peak); err != nil {
		t.Fatalf("reading the peak: %v", err)
	}
	return peak
}
