// Package doctor finds problems in an installation: in its data directory, databases, keys,
// certificates, listeners and running server. Each check examines one thing and changes nothing. It
// suggests a remedy for each problem.
//
// Callers decide how findings are printed.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/internal/database"
)

// A Verdict is the result of a check.
type Verdict string

// The verdicts are ordered from best to worst. Skipped means that the check did not apply or was
// impossible. That is not a problem.
const (
	Skipped Verdict = "skipped"
	Fine    Verdict = "ok"
	Warned  Verdict = "warning"
	Broken  Verdict = "failed"
)

// Worse reports whether v is a worse verdict than the other.
func (v Verdict) Worse(than Verdict) bool {
	order := []Verdict{Skipped, Fine, Warned, Broken}
	return slices.Index(order, v) > slices.Index(order, than)
}

// A Finding is one line of an examination. It names the thing examined and describes what was
// found. If there is a problem, Remedy is the command or setting that solves it.
type Finding struct {
	Group  string  `json:"group"`
	Name   string  `json:"name"`
	Status Verdict `json:"status"`
	Found  Text    `json:"found"`
	Remedy Text    `json:"remedy,omitempty"`
}

func finef(format string, values ...any) Finding {
	return Finding{Status: Fine, Found: textf(format, values...)}
}

func skippedf(format string, values ...any) Finding {
	return Finding{Status: Skipped, Found: textf(format, values...)}
}

func warnedf(format string, values ...any) Finding {
	return Finding{Status: Warned, Found: textf(format, values...)}
}

func brokenf(format string, values ...any) Finding {
	return Finding{Status: Broken, Found: textf(format, values...)}
}

// withRemedy returns f with the command or setting that solves the problem.
func (f Finding) withRemedy(remedy Text) Finding {
	f.Remedy = remedy
	return f
}

// of returns f under a different name. Checks that examine several things use it.
func (f Finding) of(name string) Finding {
	f.Name = name
	return f
}

// A check examines one thing. It changes nothing, and may run concurrently with other checks.
type check struct {
	group, name string
	look        func(context.Context) []Finding
}

// An Examination holds what the checks examine: the configuration of an installation and
// the origin of each of its values.
type Examination struct {
	Config  config.Config
	From    config.Origins
	Getenv  func(string) string
	Version string // version of this program

	where   config.Where
	running datadir.Running // content of run.json
	alive   bool            // whether a server holds the lock of the data directory
}

// Examine runs all checks and returns their findings. It returns after a limited time even if
// reading the data directory hangs.
func (e *Examination) Examine(ctx context.Context) []Finding {
	prepared := make(chan []check, 1)
	go func() {
		e.where = config.LocateRunning(e.Config)
		e.running, e.alive = findRunning(e.Config.Data)
		prepared <- e.checks()
	}()
	select {
	case checks := <-prepared:
		return examine(ctx, checks, patience)
	case <-time.After(patience):
		return examine(ctx, []check{{"Data", "directory", func(context.Context) []Finding {
			return []Finding{hangs(patience)}
		}}}, time.Second)
	}
}

func hangs(patience time.Duration) Finding {
	return brokenf("no response within %s", patience).
		withRemedy("find what hangs with `dmesg`, `mount` and `df`; a network filesystem hangs if its server is " +
			"unreachable")
}

// patience is the time limit of a check.
const patience = 8 * time.Second

// examine runs checks concurrently and returns their findings in the order of the checks. It adds a
// Broken finding for a check that does not return in time.
func examine(ctx context.Context, checks []check, patience time.Duration) (all []Finding) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	answers := make([]chan []Finding, len(checks))
	for i, c := range checks {
		answers[i] = make(chan []Finding, 1) // buffered, so that a late check does not block
		go func() { answers[i] <- c.look(ctx) }()
	}

	// Some checks stop when ctx expires. They get some extra time to report, because their findings
	// are more informative than a timeout.
	late := time.After(patience + patience/8)
	for i, c := range checks {
		var found []Finding
		select {
		case found = <-answers[i]:
		case <-late:
			select {
			case found = <-answers[i]:
			default:
				found = []Finding{hangs(patience)}
			}
			late = closed
		}

		for _, f := range found {
			if f.Name == "" {
				f.Name = c.name
			}
			f.Group, f.Found = c.group, Text(strings.ReplaceAll(string(f.Found), "\n", "; "))
			all = append(all, f)
		}
	}

	return all
}

// closed is always ready to receive from. After the first late check, examine uses it so that it
// does not wait for other late checks.
var closed = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// checks returns all checks, in the order of their findings.
func (e *Examination) checks() []check {
	return slices.Concat(e.dataChecks(), e.databaseChecks(), e.keyChecks(), certificates{e}.sourceChecks(),
		e.networkChecks(), callChecks{e}.all(), e.processChecks())
}

// plainly formats err as one line, without the wrapping context.
func plainly(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no response within %s", patience)
	}
	return database.Plainly(err)
}

// stamp formats t in local time, to the minute.
func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
