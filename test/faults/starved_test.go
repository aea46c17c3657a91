package faults

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// memoryCap is the memory, in KiB, of a container in which the server must be able to run.
const memoryCap = 256 << 10

// TestMemoryCap lets many browsers sign in at the same time. It also requests many long MP3s, and
// abandons each of them early. The server has two CPUs, and each of its processes has a soft memory
// limit of 200 MiB. The memory of the processes that the kernel cannot reclaim must fit into a
// container of 256 MiB.
func TestMemoryCap(t *testing.T) {
	harness.OneBackend(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"GOMEMLIMIT=200MiB", "GOMAXPROCS=2"}})
	p := s.NewProject(t)
	c, sub := p.NewClient(t, "spa", "--first-party"), p.NewSubscriber(t)
	long := p.LaML("/Recordings/" + p.Upload(t, harness.Tone(20_000_000, 8)) + ".mp3") // forty minutes

	over, peak := make(chan struct{}), 0
	var watch, readers sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for going := true; going; {
			peak = max(peak, anonymous(harness.Family(s.PID())))
			select {
			case <-over:
				going = false
			case <-tick.C:
			}
		}
	})
	for range 50 {
		readers.Go(func() {
			if err := abandon(p.HTTP+long, 100_000); err != nil {
				t.Errorf("reading the beginning of an MP3: %v", err)
			}
		})
	}

	in, refused := signInCrowd(t, c, sub, 300)
	readers.Wait()
	close(over)
	watch.Wait()

	t.Logf("%d logins succeeded and %d were refused; the peak was %d MiB", in, refused, peak>>10)
	if in == 0 || peak == 0 || peak > memoryCap {
		t.Errorf("%d logins succeeded with a peak of %d KiB, want at least one with at most %d KiB", in, peak,
			memoryCap)
	}
}

// TestStarvedCPU lets a server with two CPUs run for only a fifth of the time while a crowd of
// browsers signs in. The crowd grows until it is too large for this machine. The server answers
// every request, refuses logins that would have to wait too long, stays healthy, and recovers.
func TestStarvedCPU(t *testing.T) {
	harness.OneBackend(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"GOMAXPROCS=2"}})
	p := s.NewProject(t)
	c, sub := p.NewClient(t, "spa", "--first-party"), p.NewSubscriber(t)

	feed := starve(s.PID())
	defer feed()
	over := make(chan struct{})
	var probes sync.WaitGroup
	probes.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for going := true; going; {
			if err := s.Get(t, s.Ops+"/healthz").StatusIs(200); err != nil {
				t.Errorf("a health check while the server is starved: %v", err)
			}
			select {
			case <-over:
				going = false
			case <-tick.C:
			}
		}
	})
	in, refused := 0, 0
	for crowd := 400; refused == 0 && crowd <= 1600; crowd *= 2 {
		in, refused = signInCrowd(t, c, sub, crowd)
		t.Logf("of a crowd of %d, %d logins succeeded and %d were refused", crowd, in, refused)
	}
	close(over)
	probes.Wait()
	if in == 0 || refused == 0 {
		t.Errorf("%d logins succeeded and %d were refused, want some of both", in, refused)
	}

	feed()
	fed := time.Now()
	harness.Eventually(t, recovers, "a login to succeed", func() error {
		if in, _ := signInCrowd(t, c, sub, 1); in == 0 {
			return fmt.Errorf("the login was refused")
		}
		return s.Get(t, s.Ops+"/readyz").StatusIs(200)
	})
	t.Logf("the server recovered within %v", time.Since(fed))
}

// recovers limits how long a server may take to recover after a fault.
const recovers = 10 * time.Second

// starve stops a process and its children for four fifths of the time, as if their CPU time was
// limited. The returned function lets them run again, and may be called twice.
func starve(pid int) (feed func()) {
	over, family := make(chan struct{}), harness.Family(pid)
	signal := func(s syscall.Signal) {
		for _, pid := range family {
			_ = syscall.Kill(pid, s) // fails if a child has ended
		}
	}

	var work sync.WaitGroup
	work.Go(func() {
		const period = 100 * time.Millisecond
		tick := time.NewTicker(period / 5)
		defer tick.Stop()
		for n := 0; ; n++ {
			if n%5 == 0 {
				signal(syscall.SIGCONT)
			} else {
				signal(syscall.SIGSTOP)
			}
			select {
			case <-over:
				signal(syscall.SIGCONT)
				return
			case <-tick.C:
			}
		}
	})

	return sync.OnceFunc(func() {
		close(over)
		work.Wait()
	})
}

// signInCrowd lets n browsers submit a password at the same time. It returns how many of them were
// signed in, and how many must try again later. Any other answer is an error.
func signInCrowd(t *testing.T, c *harness.Client, sub harness.Subscriber, n int) (in, refused int) {
	t.Helper()
	browsers, pages := make([]*harness.Browser, n), make([]harness.Page, n)
	var all sync.WaitGroup
	for i := range browsers {
		all.Go(func() {
			browsers[i] = c.Browser()
			pages[i] = browsers[i].Open(t, c.NewFlow("openid").URL())
		})
	}

	all.Wait()
	for i, b := range browsers {
		all.Go(func() {
			pages[i] = b.Submit(t, pages[i], "login-submit",
				map[string]string{"username": sub.Email, "password": sub.Password})
		})
	}
	all.Wait()

	for i, page := range pages {
		switch after := page.Header.Get("Retry-After"); {
		case page.Left != nil:
			in++
		case page.Status == http.StatusTooManyRequests && after != "",
			page.Status == http.StatusServiceUnavailable && after != "":
			refused++
		default:
			t.Errorf("login %d returned %d with Retry-After %q, want a login, or 429 or 503 with Retry-After",
				i, page.Status, after)
		}
	}
	return in, refused
}

// abandon requests a file and reads its first bytes.
func abandon(url string, bytes int64) error {
	r, err := http.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, err = io.CopyN(io.Discard, r.Body, bytes)
	return err
}

// anonymous returns how much memory of processes is not a copy of a file, in KiB (proc(5),
// RssAnon).
func anonymous(pids []int) (total int) {
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // a child has ended
		}
		for line := range strings.Lines(string(status)) {
			if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
				n, _ := strconv.Atoi(strings.Fields(rest)[0]) // the kernel formats it
				total += n
			}
		}
	}
	return total
}
