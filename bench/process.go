package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// clockTick is the unit of times in /proc: on all platforms, USER_HZ is 100 per second.
const clockTick = 10 * time.Millisecond

// cpu returns the CPU time of a process and its descendants, including descendants that have ended.
func cpu(p *harness.Program, pid int) time.Duration {
	var ticks int64
	for _, one := range harness.Family(pid) {
		fields := harness.Stat(one)
		const utime, count = 11, 4 // user and system time of the process, and of its reaped children
		if len(fields) < utime+count {
			if one != pid {
				continue // the descendant has ended
			}
			p.Fatalf("reading processor time: process %d has ended", pid)
		}

		for _, f := range fields[utime : utime+count] {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				p.Fatalf("reading processor time: %v", err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * clockTick
}

// residentMiB returns the resident memory of a process.
func residentMiB(p *harness.Program, pid int) float64 { return memoryMiB(p, pid, "VmRSS:") }

// anonymousMiB returns the resident memory of a process, without files such as its binary.
func anonymousMiB(p *harness.Program, pid int) float64 { return memoryMiB(p, pid, "RssAnon:") }

// memoryMiB returns the size in a field of a process's status.
func memoryMiB(p *harness.Program, pid int, field string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		p.Fatalf("reading memory: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), field)
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		p.Fatalf("reading memory: %v", err)
	}
	return kib / 1024
}

// binarySize returns the size of the stripped binary in MB.
func binarySize(p *harness.Program) float64 {
	path := filepath.Join(p.TempDir(), "selvage")
	build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", path,
		"github.com/selvage/selvage/cmd/selvage")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		p.Fatalf("building the stripped binary: %v\n%s", err, out)
	}

	info, err := os.Stat(path)
	if err != nil {
		p.Fatalf("%v", err)
	}
	return float64(info.Size()) / 1e6
}
