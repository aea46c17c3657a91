package doctor

import "syscall"

// clockIsSet reports whether the kernel considers this machine's clock synchronized, and whether it
// can tell (adjtimex(2), TIME_ERROR).
func clockIsSet() (set, known bool) {
	const unsynchronised = 5
	state, err := syscall.Adjtimex(new(syscall.Timex))
	return state != unsynchronised, err == nil
}
