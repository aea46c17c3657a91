// Command passwords measures, with the built binary, what a password login reveals and how much it
// slows down other requests:
//
//	go run ./bench/passwords            everything, about a minute
//	go run ./bench/passwords -n 100     fewer attempts
//
// The benchmark has three parts:
//
//   - It tries unknown email addresses and wrong passwords in turn, and compares the times with the
//     Mann-Whitney test.
//   - It signs in from many browsers at the same time, and compares the cost with argon2id alone.
//   - It uses a token while other clients guess passwords.
//
// The exit status is 1 if any figure misses its goal.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/selvage/selvage/test/harness"
)

func main() {
	n := flag.Int("n", 500, "attempts of each kind")
	length := flag.Duration("length", 5*time.Second, "how long each load lasts")
	flag.Parse()
	p := &harness.Program{Name: "passwords"}
	w := newWorld(p)
	w.timing(*n)
	w.logins(*length)
	w.spraying(*length)
	p.End()
	if w.missed || p.Failed() {
		os.Exit(1)
	}
}

// A world is a project on a running server, with the accounts that sign in.
type world struct {
	*harness.Project
	p      *harness.Program
	client *harness.Client
	sub    harness.Subscriber
	sat    harness.SAT
	missed bool // at least one figure missed its goal
}

func newWorld(p *harness.Program) *world {
	w := &world{Project: harness.StartConfig(p, harness.Config{}).NewProject(p), p: p}
	w.client = w.NewClient(p, "spa", "--first-party")
	w.sub = w.NewSubscriber(p)
	w.sat = w.NewSAT(p, "bench")
	return w
}

// A guesser is a browser at the login page.
type guesser struct {
	w    *world
	b    *harness.Browser
	page harness.Page
}

func (w *world) guesser() *guesser {
	b := w.client.Browser()
	return &guesser{w: w, b: b, page: b.Open(w.p, w.client.NewFlow("openid").URL())}
}

// try submits the form and returns how long the response took.
func (g *guesser) try(email, password string) time.Duration {
	began := time.Now()
	page := g.b.Submit(g.w.p, g.page, "login-submit", map[string]string{"username": email, "password": password})
	took := time.Since(began)
	if page.Has("login-submit") {
		g.page = page
	}
	return took
}

// check prints a figure, and whether it meets its goal.
func (w *world) check(ok bool, format string, args ...any) {
	verdict := "ok    "
	if !ok {
		verdict, w.missed = "MISSED", true
	}
	fmt.Printf("%s  %s\n", verdict, fmt.Sprintf(format, args...))
}

// timing compares the times of logins with an unknown email address and of logins with a wrong
// password. It omits the slowest 5 % of each sample.
func (w *world) timing(n int) {
	const keptShare, maxDifference, minP = 0.95, 2 * time.Millisecond, 0.01
	g := w.guesser()
	for range 10 { // the first attempts are slower
		g.try(w.sub.Email, "wrong")
	}

	var unknown, wrong []time.Duration
	for i := range n {
		// Try each kind once, and change the order every time.
		tryWrong := func() { wrong = append(wrong, g.try(w.sub.Email, "wrong")) }
		tryUnknown := func() {
			unknown = append(unknown,
				g.try(fmt.Sprintf("nobody%d@example.com", i), "wrong"))
		}
		if i%2 == 0 {
			tryWrong()
			tryUnknown()
		} else {
			tryUnknown()
			tryWrong()
		}
	}

	unknown, wrong = fastest(unknown, keptShare), fastest(wrong, keptShare)
	a, b := quantile(unknown, 0.5), quantile(wrong, 0.5)

	p := mannWhitney(unknown, wrong)
	fmt.Printf("        unknown email: median %v of %d; wrong password: median %v of %d\n", a, len(unknown),
		b, len(wrong))
	w.check((a-b).Abs() < maxDifference, "the medians are %v apart, want less than %v", (a - b).Abs(), maxDifference)
	w.check(p > minP, "Mann-Whitney p = %.3f, want more than %.2f", p, minP)
}
