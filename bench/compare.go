package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/selvage/selvage/test/harness"
)

// compareBinaries measures two binaries alternately, so that other load on the machine affects both. It
// prints the medians. It also prints the median, the minimum and the maximum of the ratios of the
// pairs (this binary's time divided by the other's).
func compareBinaries(p *harness.Program, s settings, pinned bool, out io.Writer) {
	other, ours := newWorld(p, pinned, s.compare), newWorld(p, pinned, "")
	theirs, mine := other.operations(p), ours.operations(p)
	if slices.ContainsFunc(soundNames, s.only.MatchString) {
		theirs = append(theirs, other.soundOperations(p)...)
		mine = append(mine, ours.soundOperations(p)...)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operation\tc\tCPU ms before\tafter\tratio\tfrom\tto\t")

	for i, op := range mine {
		if !s.only.MatchString(op.name) {
			continue
		}
		p.Logf("%s", op.title())

		var before, after []sample
		var ratios []float64
		for range s.repeat {
			b := measure(p, theirs[i], other.PID(), s.length, nil)
			a := measure(p, op, ours.PID(), s.length, nil)
			before, after, ratios = append(before, b), append(after, a), append(ratios, a.cpu/b.cpu)
		}

		ours.profile(p, s, op)
		slices.Sort(ratios)
		fmt.Fprintf(t, "%s\t%d\t%.4f\t%.4f\t%.2f\t%.2f\t%.2f\t\n", op.name, op.connections,
			median(before).cpu, median(after).cpu,
			ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
	}

	_ = t.Flush() // a failed write to the terminal is ignored
	harness.Sweep()
}
