package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A ratio compares a measurement with a measurement of another program in the same run.
type ratio struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Goal   float64 `json:"goal"`
	AtMost bool    `json:"at_most"` // whether the goal is an upper bound
}

// met reports whether the goal is met.
func (r ratio) met() bool { return r.AtMost == (r.Value <= r.Goal) || r.Value == r.Goal }

// A rivalry is a goal for the ratio of one of our measurements to another program's.
type rivalry struct {
	name, ours, theirs string
	of                 func(row) float64
	goal               float64
	atMost             bool
}

func throughput(f row) float64 { return f.Rate }
func processor(f row) float64  { return f.CPU }

// rivalries lists the goals for recordings.
var rivalries = []rivalry{
	{"whole WAV, throughput against nginx", "recording, whole (9.6 MB)", "nginx, whole (9.6 MB)", throughput,
		0.9, false},
	{"whole WAV, CPU per byte against nginx", "recording, whole (9.6 MB)", "nginx, whole (9.6 MB)", processor,
		1.1, true},
	{"1 MiB range, throughput against nginx", "recording, 1 MiB range", "nginx, 1 MiB range", throughput, 0.85, false},
	{"64 KiB range, throughput against nginx", "recording, 64 KiB range", "nginx, 64 KiB range", throughput,
		0.5, false},
	{"MP3, CPU against lame -b 32", mp3Whole, "lame -b 32", processor, 0.5, true},
	{"MP3, CPU against lame -b 32 -q 7", mp3Whole, "lame -b 32 -q 7", processor, 1, true},
}

// compare adds the ratios of the measured operations to the report.
func (r *report) compare() {
	figure := func(name string) (f row, ok bool) {
		for _, f := range r.Figures {
			if f.Name == name {
				return f, true
			}
		}
		return f, false
	}
	for _, c := range rivalries {
		ours, ok := figure(c.ours)
		theirs, both := figure(c.theirs)
		if ok && both {
			r.Ratios = append(r.Ratios, ratio{c.name, c.of(ours) / c.of(theirs), c.goal, c.atMost})
		}
	}
}

// printRatios prints the table of ratios.
func (r *report) printRatios(w io.Writer) {
	if len(r.Ratios) == 0 {
		return
	}
	fmt.Fprintln(w)

	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "compared with others\tratio\tgoal\t\t")
	for _, f := range r.Ratios {
		sign, verdict := "≥", "missed"
		if f.AtMost {
			sign = "≤"
		}
		if f.met() {
			verdict = ""
		}
		fmt.Fprintf(t, "%s\t%.2f\t%s %.2f\t%s\t\n", f.Name, f.Value, sign, f.Goal, verdict)
	}
	_ = t.Flush() // a failed write to the terminal is ignored
}
