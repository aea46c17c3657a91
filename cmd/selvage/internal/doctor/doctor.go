// Package doctor looks for what is wrong with an installation: its data directory, its
// databases, keys, certificates, listeners and running server. Each thing is looked at by a
// check, which changes nothing and says what would mend it.
//
// How findings are printed is left to who asked.
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

// A Verdict is what a check came to.
type Verdict string

// The verdicts, from good to bad. Nothing is wrong with what was Skipped: there
// was nothing to look at, or no way to.
const (
	Skipped Verdict = "skipped"
	Fine    Verdict = "ok"
	Warned  Verdict = "warning"
	Broken  Verdict = "failed"
)

// Worse orders verdicts.
func (v Verdict) Worse(than Verdict) bool {
	order := []Verdict{Skipped, Fine, Warned, Broken}
	return slices.Index(order, v) > slices.Index(order, than)
}

// A Finding is one line of an examination: what was looked at, what was found,
// and, where that is not good, the command or setting that mends it.
type Finding struct {
	Group  string  `json:"group"`
	Name   string  `json:"name"`
	Status Verdict `json:"status"`
	Found  string  `json:"found"`
	Remedy string  `json:"remedy,omitempty"`
}

func finef(format string, args ...any) Finding {
	return Finding{Status: Fine, Found: fmt.Sprintf(format, args...)}
}

func skippedf(format string, args ...any) Finding {
	return Finding{Status: Skipped, Found: fmt.Sprintf(format, args...)}
}

// warnedf and brokenf give findings that want a remedy.
func warnedf(remedy, format string, args ...any) Finding {
	return Finding{Status: Warned, Found: fmt.Sprintf(format, args...), Remedy: remedy}
}

func brokenf(remedy, format string, args ...any) Finding {
	return Finding{Status: Broken, Found: fmt.Sprintf(format, args...), Remedy: remedy}
}

// of names what a finding is of, where that is not all its check looks at.
func (f Finding) of(name string) Finding {
	f.Name = name
	return f
}

// A check looks at one thing. It changes nothing, and may be run beside any
// number of others.
type check struct {
	group, name string
	look        func(context.Context) []Finding
}

// An Examination is what checks look at: an installation, as its configuration
// tells of it, and where each value of that came from.
type Examination struct {
	Config  config.Config
	From    config.Origins
	Getenv  func(string) string
	Version string // of this program

	where   config.Where
	running datadir.Running // what run.json says
	alive   bool            // its process is there
}

// Examine looks around, and then at everything. It ends in time even where looking
// into the data directory hangs.
func (e *Examination) Examine(ctx context.Context) []Finding {
	around := make(chan []check, 1)
	go func() {
		e.where = config.LocateRunning(e.Config)
		e.running, e.alive = findRunning(e.Config.Data)
		around <- e.checks()
	}()
	select {
	case checks := <-around:
		return examine(ctx, checks, patience)
	case <-time.After(patience):
		return examine(ctx, []check{{"Data", "directory", func(context.Context) []Finding {
			return []Finding{hangs(patience)}
		}}}, time.Second)
	}
}

func hangs(patience time.Duration) Finding {
	return brokenf("look for what hangs: `dmesg`, `mount`, `df`; a network filesystem whose server is away does", "no answer in %s", patience)
}

// patience is how long a check may take.
const patience = 8 * time.Second

// examine runs checks at once, and gives their findings in the order of the
// checks. One that takes longer than patience, whatever it hangs in, is broken.
func examine(ctx context.Context, checks []check, patience time.Duration) (all []Finding) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers := make([]chan []Finding, len(checks))
	for i, c := range checks {
		answers[i] = make(chan []Finding, 1) // who answers too late must not wait
		go func() { answers[i] <- c.look(ctx) }()
	}
	late := time.After(patience + patience/8) // who heeds ctx says more than we could
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
			f.Group, f.Found = c.group, strings.ReplaceAll(f.Found, "\n", "; ")
			all = append(all, f)
		}
	}
	return all
}

// closed is a time that has come.
var closed = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// checks lists what is looked at, in the order it is told.
func (e *Examination) checks() []check {
	return slices.Concat(e.dataChecks(), e.databaseChecks(), e.keyChecks(), e.certificateChecks(),
		e.networkChecks(), e.processChecks())
}

// plainly says an error in a line, without what it came from.
func plainly(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer in %s", patience)
	}
	return database.Plainly(err)
}

// stamp writes a time as people read it.
func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
