// Command bench measures what each thing that selvage does costs: the processor
// time of the server per operation, which survives noise and other machines as a
// ratio, the rate, and the time until the answer.
//
// It builds the binary, pins the server to one core and itself to another, checks
// every answer, and repeats each measurement, by turns with a bare net/http server:
// the floor, against which the figures are to be read.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// The cores of the server and of the load. GOMAXPROCS is 2 for both, so that a
// write to disk that blocks does not stand in everyone's way.
const (
	serverCore = "0"
	loadCore   = "1"
	procs      = "GOMAXPROCS=2"
	pinnedMark = "SELVAGE_BENCH_PINNED"
)

// settings are the flags.
type settings struct {
	length time.Duration
	repeat int
	only   *regexp.Regexp
	json   string
	// profiles is a directory for a processor profile of each operation; "" means
	// none.
	profiles string
	// beside is another binary, which each operation is measured on by turns; "" means
	// none.
	beside string
}

func main() {
	floor := flag.Bool("floor", false, "serve the bare handler (used by the benchmark itself)")
	length := flag.Duration("length", 3*time.Second, "how long each measurement takes")
	repeat := flag.Int("repeat", 3, "how often each is repeated; medians are reported")
	only := flag.String("only", "", "measure only operations whose name matches this pattern")
	json := flag.String("json", "bin/bench.json", "file for the figures")
	profiles := flag.String("profiles", "", "directory for a processor profile of each operation")
	beside := flag.String("beside", "", "another binary, to compare with by turns: prints ratios, and nothing else is measured")
	flag.Parse()
	if *floor {
		serveFloor()
		return
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: reading -only:", err)
		os.Exit(2)
	}
	pinned := pin()
	p := &harness.Program{Name: "bench"}
	defer p.End()
	s := settings{*length, *repeat, pattern, *json, *profiles, *beside}
	if s.beside != "" {
		byTurns(p, s, pinned, os.Stdout)
		return
	}
	r := run(p, s, pinned)
	r.print(os.Stdout)
	if err := r.write(*json); err != nil {
		p.Fatalf("%v", err)
	}
}

// pin replaces this process by itself on a core of its own, where that can be.
func pin() bool {
	if os.Getenv(pinnedMark) != "" {
		return true
	}
	taskset, err := exec.LookPath("taskset")
	if err != nil || runtime.NumCPU() < 2 {
		fmt.Fprintln(os.Stderr, "bench: no taskset or one core only: nothing is pinned, and the figures are rough")
		return false
	}
	self, err := os.Executable()
	if err == nil {
		args := append([]string{"taskset", "-c", loadCore, self}, os.Args[1:]...)
		err = syscall.Exec(taskset, args, append(os.Environ(), pinnedMark+"=1", procs))
	}
	fmt.Fprintln(os.Stderr, "bench: pinning:", err)
	return false
}

// serverPrefix is the command that the servers run under.
func serverPrefix(pinned bool) []string {
	if !pinned {
		return nil
	}
	return []string{"taskset", "-c", serverCore}
}

// run measures everything that was asked for.
func run(p *harness.Program, s settings, pinned bool) report {
	r := newReport(pinned, startFloor(p, serverPrefix(pinned)))
	r.BinaryMB = binarySize(p)
	r.addMachine(p, s)

	w := newWorld(p, pinned, "")
	r.Start = w.startTime(p, s.repeat)
	r.IdleMiB = residentMiB(p, w.PID())
	nginx := w.startNginx(p, s, serverPrefix(pinned))
	for _, op := range w.operations(p) {
		if s.only.MatchString(op.name) {
			r.add(p, s, op, w.PID())
			w.profile(p, s, op)
		}
		if theirs, ok := nginx.operations[op.name]; ok {
			r.add(p, s, theirs, nginx.pid)
		}
	}
	if s.only.MatchString(mp3Whole) {
		for _, op := range w.soundOperations(p) {
			r.add(p, s, op, w.PID())
			w.profile(p, s, op)
		}
	}
	w.addLame(p, s, &r, serverPrefix(pinned))
	r.compare()
	r.BusyMiB = residentMiB(p, w.PID())
	r.bare.stop()
	r.Crowd = sockets(p, s, serverPrefix(pinned))
	harness.Sweep()
	return r
}
