package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"github.com/selvage/selvage/test/harness"
)

// floorName is the name of the operation that all others are compared with.
const floorName = "net/http hello (the floor)"

// A report holds the results of a run.
type report struct {
	Go       string  `json:"go"`
	Pinned   bool    `json:"pinned"`
	Start    float64 `json:"start_ms"`
	IdleMiB  float64 `json:"idle_mib"`
	BusyMiB  float64 `json:"busy_mib"`
	BinaryMB float64 `json:"binary_mb"`
	bare     bareServer
	Figures  []row       `json:"figures"`
	Ratios   []ratio     `json:"ratios,omitempty"`
	Crowd    *crowd      `json:"crowd,omitempty"`
	Burst    *burst      `json:"burst,omitempty"`
	Talk     *talk       `json:"calls,omitempty"`
	Room     *conference `json:"rooms,omitempty"`
}

// A row holds the results of one operation.
type row struct {
	Name        string  `json:"name"`
	Connections int     `json:"connections"`
	CPU         float64 `json:"cpu_ms"`
	Machine     machine `json:"machine"`           // how fast the machine was during the measurement
	Floors      float64 `json:"floors"`            // CPU time as a multiple of the floor
	There       float64 `json:"there_ms"`          // CPU time on the reference machine
	Goal        float64 `json:"goal_ms,omitempty"` // goal on the reference machine
	Rate        float64 `json:"per_second"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	Pace        int     `json:"pace,omitempty"` // rate at which latencies were measured
}

func newReport(pinned bool, bare bareServer) report {
	return report{Go: runtime.Version(), Pinned: pinned, bare: bare}
}

// add measures an operation and the speed of the machine alternately, and records the results.
func (r *report) add(p *harness.Program, s settings, op operation, pid int) {
	p.Logf("%s", op.title())
	var samples []sample
	var machines []machine
	for range s.repeat {
		samples = append(samples, measure(p, op, pid, s.length, nil))
		machines = append(machines, r.bare.measureMachine(p, s.length, op.work))
	}

	m, here := median(samples), medianMachine(machines)
	if op.pace > 0 {
		paced := measurePaced(p, op, pid, s.length)
		m.p50, m.p99 = paced.p50, paced.p99
	}

	r.Figures = append(r.Figures, row{
		Name:        op.name,
		Connections: op.connections,
		CPU:         m.cpu,
		Machine:     here,
		Floors:      m.cpu / here.Floor,
		There:       here.there(m.cpu, op.work),
		Goal:        op.goal,
		Rate:        m.rate,
		P50:         m.p50,
		P99:         m.p99,
		Pace:        op.pace,
	})
}

// print prints the tables of the report.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%s, server and load each pinned to a core: %v\n", r.Go, r.Pinned)
	fmt.Fprintf(w,
		"start to first answer %.0f ms, resident %.0f MiB idle and %.0f MiB at the end, binary %.1f MB\n\n",
		r.Start, r.IdleMiB, r.BusyMiB, r.BinaryMB)

	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operation\tc\tCPU ms\tfloors\treference, ms\tgoal\t\tper second\tp50 ms\tp99 ms\t")
	for _, f := range r.Figures {
		goal, verdict, pace := "", "", ""
		if f.Goal > 0 {
			goal = fmt.Sprintf("%.3f", f.Goal)
		}
		if f.Goal > 0 && f.There > f.Goal {
			verdict = "missed"
		}
		if f.Pace > 0 {
			pace = fmt.Sprintf(" at %d/s", f.Pace)
		}
		fmt.Fprintf(t, "%s\t%d\t%.3f\t%.1f\t%.3f\t%s\t%s\t%.0f\t%.2f\t%.2f%s\t\n", f.Name, f.Connections,
			f.CPU, f.Floors, f.There, goal, verdict, f.Rate, f.P50, f.P99, pace)
	}
	_ = t.Flush() // a failed write to the terminal is ignored

	r.printRatios(w)
	if c := r.Crowd; c != nil {
		fmt.Fprintf(w, "\n%d idle sockets: %.0f MiB, %.3f CPU ms to open one, %.1f %% of a core for all\n",
			c.Sockets, c.MiB, c.Connect, 100*c.Idle)
	}

	if b := r.Burst; b != nil {
		fmt.Fprintf(w, "\n%d parallel uploads: %.0f MiB of anonymous memory at most, %.0f MiB before\n",
			b.Uploads, b.Most, b.Idle)
	}
	if r.Talk != nil {
		r.Talk.print(w)
	}
	if r.Room != nil {
		r.Room.print(w)
	}
}

// write writes the report to a file as JSON.
func (r *report) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing figures: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing figures: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing figures: %w", err)
	}
	return nil
}
