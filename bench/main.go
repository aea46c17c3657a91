// Command bench measures the cost of every operation of selvage: the server's CPU time per
// operation, the rate, and the latency. It also prints the ratio of each CPU time to the CPU time
// of a bare net/http server, the floor. These ratios depend little on the load and the speed of the
// machine.
//
// It builds the binary, pins the server to one core and itself to another, and checks every
// response. It repeats each measurement, and measures the floor in between.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// The server and the load each run on one of these cores. Both have a GOMAXPROCS of 2, so that a
// blocking write to disk does not delay everything else.
const (
	serverCore = "0"
	loadCore   = "1"
	procs      = "GOMAXPROCS=2"
	pinnedMark = "SELVAGE_BENCH_PINNED"
)

// settings holds the values of the flags.
type settings struct {
	length time.Duration
	repeat int
	only   *regexp.Regexp
	json   string
	// profiles is a directory for a CPU profile of each operation. "" means no profiles.
	profiles string
	// compare is another binary. Measurements of each operation alternate between this version and
	// the other binary. "" means no comparison.
	compare string
}

func main() {
	floor := flag.Bool("floor", false, "only serve the bare handler (used by the benchmark itself)")
	length := flag.Duration("length", 3*time.Second, "how long each measurement takes")
	repeat := flag.Int("repeat", 3, "how many times each measurement is repeated; the median is reported")
	only := flag.String("only", "", "measure only operations whose name matches this pattern")
	json := flag.String("json", "bin/bench.json", "file for the figures")
	profiles := flag.String("profiles", "", "directory for a CPU profile of each operation")
	compare := flag.String("compare", "",
		"only compare another `binary` with this version: measure them alternately, and print the ratios")
	peers := flag.Bool("peers", false,
		"only compare with other OpenID providers, measured alternately; make bench-peers installs them")
	scale := flag.Bool("scale", false,
		"only measure the cost of operations on PostgreSQL and Redis, and compute what large installations need")
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
	s := settings{
		length:   *length,
		repeat:   *repeat,
		only:     pattern,
		json:     *json,
		profiles: *profiles,
		compare:  *compare,
	}
	if s.compare != "" {
		compareBinaries(p, s, pinned, os.Stdout)
		return
	}
	if *scale {
		scaling(p, s, pinned, os.Stdout)
		return
	}
	if *peers {
		compareWithPeers(p, s, pinned, os.Stdout)
		return
	}

	r := run(p, s, pinned)
	r.print(os.Stdout)
	if err := r.write(*json); err != nil {
		p.Fatalf("%v", err)
	}
}

// pin restarts this process on its own core, if the machine permits that. It reports whether the
// process is pinned.
func pin() bool {
	if os.Getenv(pinnedMark) != "" {
		return true
	}

	taskset, err := exec.LookPath("taskset")
	if err != nil || runtime.NumCPU() < 2 {
		fmt.Fprintln(os.Stderr, "bench: taskset is missing, or the machine has only one core; "+
			"nothing is pinned, and the figures are rough")
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

// serverPrefix returns the words to put before the command of a server, so that it is pinned.
func serverPrefix(pinned bool) []string {
	if !pinned {
		return nil
	}
	return []string{"taskset", "-c", serverCore}
}

// run measures all selected operations.
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

	if slices.ContainsFunc(soundNames, s.only.MatchString) {
		for _, op := range w.soundOperations(p) {
			if !s.only.MatchString(op.name) {
				continue
			}
			r.add(p, s, op, w.PID())
			w.profile(p, s, op)
		}
	}

	w.addLame(p, s, &r, serverPrefix(pinned))
	r.compare()
	r.BusyMiB = residentMiB(p, w.PID())
	r.bare.stop()
	r.Crowd = sockets(p, s, serverPrefix(pinned))
	r.Burst = uploadsAtOnce(p, s, serverPrefix(pinned))
	r.Talk = talking(p, s, serverPrefix(pinned))
	r.Room = measureRoom(p, s, serverPrefix(pinned))
	harness.Sweep()
	return r
}
