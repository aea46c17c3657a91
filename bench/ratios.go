package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A comparison divides one of our measurements by a measurement of another program in the same run,
// and has a goal for this ratio.
type comparison struct {
	name string

	// These are the names of the two measurements. They are made of the same constants as the names
	// of the operations, so that a renamed operation keeps its goal.
	ours   string
	theirs string

	of     func(row) float64 // returns the figure to compare
	goal   float64
	atMost bool // the goal is an upper bound; otherwise, it is a lower bound
}

// throughput returns the rate of a measurement. More is better.
func throughput(r row) float64 { return r.Rate }

// cpuTime returns the CPU time of a measurement. Less is better.
func cpuTime(r row) float64 { return r.CPU }

// comparisons lists the comparisons of recordings.
var comparisons = []comparison{
	{
		name:   "whole WAV, throughput against nginx",
		ours:   recording + wholeFile,
		theirs: nginxServer + wholeFile,
		of:     throughput,
		goal:   0.9,
	},
	{
		name:   "whole WAV, CPU per byte against nginx",
		ours:   recording + wholeFile,
		theirs: nginxServer + wholeFile,
		of:     cpuTime,
		goal:   1.1,
		atMost: true,
	},
	{
		name:   "1 MiB range, throughput against nginx",
		ours:   recording + largeRange,
		theirs: nginxServer + largeRange,
		of:     throughput,
		goal:   0.85,
	},
	{
		name:   "64 KiB range, throughput against nginx",
		ours:   recording + smallRange,
		theirs: nginxServer + smallRange,
		of:     throughput,
		goal:   0.5,
	},
	{
		name:   "MP3, CPU against lame -b 32",
		ours:   mp3Whole,
		theirs: lameDefault,
		of:     cpuTime,
		goal:   0.5,
		atMost: true,
	},
	{
		name:   "MP3, CPU against lame -b 32 -q 7",
		ours:   mp3Whole,
		theirs: lameFast,
		of:     cpuTime,
		goal:   1,
		atMost: true,
	},
}

// A ratio is the result of a comparison.
type ratio struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"` // our figure divided by the other program's
	Goal   float64 `json:"goal"`
	AtMost bool    `json:"at_most"` // the goal is an upper bound
}

// met reports whether the goal is met.
func (r ratio) met() bool {
	if r.AtMost {
		return r.Value <= r.Goal
	}
	return r.Value >= r.Goal
}

// compare adds the ratios to the report. It skips a comparison if one of its measurements is
// missing, because an operation was not selected or a program is not installed.
func (r *report) compare() {
	for _, c := range comparisons {
		ours, haveOurs := r.measurement(c.ours)
		theirs, haveTheirs := r.measurement(c.theirs)
		if !haveOurs || !haveTheirs {
			continue
		}
		r.Ratios = append(r.Ratios, ratio{
			Name:   c.name,
			Value:  c.of(ours) / c.of(theirs),
			Goal:   c.goal,
			AtMost: c.atMost,
		})
	}
}

// measurement returns the first measurement with this name. ok is false if no measurement has this name.
func (r *report) measurement(name string) (_ row, ok bool) {
	for _, m := range r.Figures {
		if m.Name == name {
			return m, true
		}
	}
	return row{}, false
}

// printRatios prints the table of ratios.
func (r *report) printRatios(w io.Writer) {
	if len(r.Ratios) == 0 {
		return
	}
	fmt.Fprintln(w)

	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "compared with others\tratio\tgoal\t\t")
	for _, result := range r.Ratios {
		sign := "≥"
		if result.AtMost {
			sign = "≤"
		}
		verdict := "missed"
		if result.met() {
			verdict = ""
		}
		fmt.Fprintf(t, "%s\t%.2f\t%s %.2f\t%s\t\n", result.Name, result.Value, sign, result.Goal, verdict)
	}
	_ = t.Flush() // a failed write to the terminal is ignored
}
