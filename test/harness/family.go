package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
