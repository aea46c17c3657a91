package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Family returns the IDs of a process and of its direct children that are still running, on Linux
// (proc(5), /proc/PID/stat). The work of a server is spread over all of them.
func Family(pid int) []int {
	family := []int{pid}

	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, path := range stats {
		if fields := stat(path); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				family = append(family, child)
			}
		}
	}
	return family
}

// CPU returns the CPU time that a process and its children have used, on Linux. It adds up the
// exact times of all threads that are still running (proc(5), /proc/PID/task/TID/schedstat).
func CPU(pid int) (total time.Duration) {
	for _, pid := range Family(pid) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is valid
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // the thread has ended
			}
			first, _, _ := strings.Cut(string(text), " ")
			n, _ := strconv.ParseInt(first, 10, 64) // the kernel formats it
			total += time.Duration(n)
		}
	}
	return total
}

// Stat returns the fields of /proc/PID/stat after the process name, because the name may contain
// any character. The first field is the state, the second the parent's PID. Stat returns nil if the
// process is gone.
func Stat(pid int) []string { return stat(fmt.Sprintf("/proc/%d/stat", pid)) }

func stat(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}
