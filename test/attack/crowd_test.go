package attack

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestP09ParallelLogins starts 300 logins at the same time. Each password hash takes 19 MiB, which
// would be 5.7 GB for all of them. Logins wait for one another, or get an error and retry. The
// server stays below 512 MiB, and still verifies tokens without waiting for the logins.
func TestP09ParallelLogins(t *testing.T) {
	harness.OneBackend(t)
	const crowd, most = 300, 512 << 10 // most is in KiB
	p := limited(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)
	sat := p.NewSAT(t, "somebody")

	browsers, pages := make([]*harness.Browser, crowd), make([]harness.Page, crowd)
	for i := range browsers {
		browsers[i] = c.Browser()
		pages[i] = browsers[i].Open(t, c.NewFlow("openid").URL())
	}

	var all sync.WaitGroup
	answers, start := make([]harness.Page, crowd), time.Now()
	for i, b := range browsers {
		all.Go(func() {
			answers[i] = b.Submit(t, pages[i], "login-submit",
				map[string]string{"username": sub.Email, "password": sub.Password})
		})
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()

	// Verify tokens until all logins have received a response.
	var took []time.Duration
	tick := time.NewTicker(20 * time.Millisecond) // leaves the CPU to the logins
	defer tick.Stop()
	for going := true; going; {
		began := time.Now()
		p.Get(t, "/api/fabric/subscriber/info", harness.Bearer(sat.Token)).Want(t, 200)
		took = append(took, time.Since(began))
		select {
		case <-over:
			going = false
		case <-tick.C:
		}
	}

	queue, in := time.Since(start), 0
	for i, a := range answers {
		switch {
		case a.Left != nil:
			in++
		case a.Status != http.StatusTooManyRequests && a.Status != http.StatusServiceUnavailable ||
			a.Header.Get("Retry-After") == "":
			t.Errorf("login %d = %d, Retry-After %q, want success, or 429 or 503 with a time", i, a.Status,
				a.Header.Get("Retry-After"))
		}
	}
	if in == 0 {
		t.Error("none of 300 logins succeeded")
	}

	peak := 0
	for _, pid := range harness.Family(p.PID()) {
		peak += peakOf(t, pid)
	}
	if peak > most {
		t.Errorf("the server and its hashing process used %d KiB at their peak, want %d at most",
			peak, most)
	}

	slices.Sort(took)
	// On a busy machine everything takes longer, so the bound grows with the duration of the
	// logins.
	if p99, most := took[len(took)*99/100], max(time.Second, queue/4); p99 > most {
		t.Errorf("during logins, which took %v, a token was verified in %v (p99 of %d), want %v at most",
			queue, p99, len(took), most)
	}
	t.Logf("%d of %d logins succeeded; %d verifications during them", in, crowd, len(took))
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

	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the kernel does not report the peak")
	return 0
}
