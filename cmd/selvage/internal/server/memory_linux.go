package server

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// unmapBinary removes the code and constants of this program from the memory of the process.
// Starting touches most of them, although few are needed later. The kernel maps those again when
// they are used, from its cache of the file. A mapping that a debugger has changed stays.
func unmapBinary() error {
	binary, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer maps.Close()

	var start, end uintptr // of the mapping
	isConstant := false    // whether the mapping contains code or constants
	isUnchanged := false   // whether the mapping equals the file
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if !strings.HasSuffix(fields[0], ":") { // the first line of a mapping
			if _, err := fmt.Sscanf(fields[0], "%x-%x", &start, &end); err != nil {
				return fmt.Errorf("reading /proc/self/smaps: %w", err)
			}
			isConstant = fields[1][1] != 'w' && strings.HasSuffix(lines.Text(), " "+binary)
		}
		if fields[0] == "Anonymous:" { // changed pages in memory
			isUnchanged = fields[1] == "0"
		}
		if !isConstant || !isUnchanged || fields[0] != "Swap:" || fields[1] != "0" { // changed pages in swap
			continue
		}

		_, _, failed := syscall.Syscall(syscall.SYS_MADVISE, start, end-start, syscall.MADV_DONTNEED)
		if failed != 0 {
			return fmt.Errorf("unmapping %s: %w", binary, failed)
		}
	}
	return lines.Err()
}

// cpuTime returns the CPU time that the process has used.
func cpuTime() time.Duration {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use) // never fails
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// mappedBytes returns how much of the process's memory is a part of files, such as the binary. It
// returns 0 if that is unknown.
func mappedBytes() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var total, resident, mapped uint64
	_, err = fmt.Sscan(string(text), &total, &resident, &mapped)
	if err != nil {
		return 0
	}
	return mapped * uint64(os.Getpagesize())
}
