package harness

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the CPU time that a process and its running children have used, on Linux. It reads the CPU
// clocks of the processes (clock_getcpuclockid(3)), because they count threads that have ended, too.
func CPU(pid int) (total time.Duration) {
	for _, pid := range Family(pid) {
		const scheduler = 2 // the clock that is exact to a nanosecond
		clock := int32(^pid<<3 | scheduler)

		var spent unix.Timespec
		if err := unix.ClockGettime(clock, &spent); err == nil { // otherwise the process has ended
			total += time.Duration(spent.Nano())
		}
	}
	return total
}
