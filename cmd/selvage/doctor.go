package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/config"
	"github.com/selvage/selvage/internal/datadir"
)

// A verdict is what a check came to.
type verdict string

// The verdicts, from good to bad. Nothing is wrong with what was skipped: there
// was nothing to look at, or no way to.
const (
	skipped verdict = "skipped"
	fine    verdict = "ok"
	warned  verdict = "warning"
	broken  verdict = "failed"
)

// worse orders verdicts.
func (v verdict) worse(than verdict) bool {
	order := []verdict{skipped, fine, warned, broken}
	return slices.Index(order, v) > slices.Index(order, than)
}

// A finding is one line of an examination: what was looked at, what was found,
// and, where that is not good, the command or setting that mends it.
type finding struct {
	Group  string  `json:"group"`
	Name   string  `json:"name"`
	Status verdict `json:"status"`
	Found  string  `json:"found"`
	Remedy string  `json:"remedy,omitempty"`
}

func finef(format string, args ...any) finding {
	return finding{Status: fine, Found: fmt.Sprintf(format, args...)}
}

func skippedf(format string, args ...any) finding {
	return finding{Status: skipped, Found: fmt.Sprintf(format, args...)}
}

// warnedf and brokenf give findings that want a remedy.
func warnedf(remedy, format string, args ...any) finding {
	return finding{Status: warned, Found: fmt.Sprintf(format, args...), Remedy: remedy}
}

func brokenf(remedy, format string, args ...any) finding {
	return finding{Status: broken, Found: fmt.Sprintf(format, args...), Remedy: remedy}
}

// of names what a finding is of, where that is not all its check looks at.
func (f finding) of(name string) finding {
	f.Name = name
	return f
}

// A check looks at one thing. It changes nothing, and may be run beside any
// number of others.
type check struct {
	group, name string
	look        func(context.Context) []finding
}

// An examination is what checks look at: an installation, as its configuration
// tells of it.
type examination struct {
	cli     *cli
	config  config.Config
	from    config.Origins
	where   config.Where
	running datadir.Running // what run.json says
	alive   bool            // its process is there
}

func (c *cli) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and tell what to do",
		Long: "Looks at the configuration, the data directory, the databases, keys, certificates, listeners and the\n" +
			"running server, beside it or without one. It changes nothing, and takes ten seconds at most. The exit\n" +
			"status is 1 where something failed, and 0 where there are but warnings.",
		Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				c.output = "json"
			}
			return c.doctor(cmd)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, as -o json does")
	config.AddFlags(cmd.Flags(), false)
	return cmd
}

func (c *cli) doctor(cmd *cobra.Command) error {
	e := &examination{cli: c}
	var findings []finding
	e.config, e.from, findings = c.examineConfig(cmd.Flags())
	if e.from != nil {
		findings = append(findings, e.examine(cmd.Context())...)
	}
	if err := c.printFindings(findings); err != nil {
		return err
	}
	return sumUp(findings)
}

// examine looks around, and then at everything. It ends in time even where looking
// into the data directory hangs.
func (e *examination) examine(ctx context.Context) []finding {
	around := make(chan []check, 1)
	go func() {
		e.where = config.LocateBeside(e.config)
		e.running, e.alive = findRunning(e.config.Data)
		around <- e.checks()
	}()
	select {
	case checks := <-around:
		return examine(ctx, checks, patienceOfDoctor)
	case <-time.After(patienceOfDoctor):
		return examine(ctx, []check{{"Data", "directory", func(context.Context) []finding { return []finding{hangs(patienceOfDoctor)} }}}, time.Second)
	}
}

func hangs(patience time.Duration) finding {
	return brokenf("look for what hangs: `dmesg`, `mount`, `df`; a network filesystem whose server is away does", "no answer in %s", patience)
}

// patienceOfDoctor is how long a check may take.
const patienceOfDoctor = 8 * time.Second

// examine runs checks at once, and gives their findings in the order of the
// checks. One that takes longer than patience, whatever it hangs in, is broken.
func examine(ctx context.Context, checks []check, patience time.Duration) (all []finding) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers := make([]chan []finding, len(checks))
	for i, c := range checks {
		answers[i] = make(chan []finding, 1) // who answers too late must not wait
		go func() { answers[i] <- c.look(ctx) }()
	}
	late := time.After(patience + patience/8) // who heeds ctx says more than we could
	for i, c := range checks {
		var found []finding
		select {
		case found = <-answers[i]:
		case <-late:
			select {
			case found = <-answers[i]:
			default:
				found = []finding{hangs(patience)}
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
func (e *examination) checks() []check {
	return slices.Concat(e.dataChecks(), e.databaseChecks(), e.keyChecks(), e.certificateChecks(), e.networkChecks(), e.processChecks())
}

// sumUp is an error where something is broken.
func sumUp(findings []finding) error {
	if n := count(findings, broken); n == 1 {
		return fmt.Errorf("1 check of %d failed", len(findings))
	} else if n > 1 {
		return fmt.Errorf("%d checks of %d failed", n, len(findings))
	}
	return nil
}

func count(findings []finding, v verdict) (n int) {
	for _, f := range findings {
		if f.Status == v {
			n++
		}
	}
	return n
}
