package doctor

import "syscall"

// clockIsSet reports whether something keeps the clock of this machine right
// (adjtimex(2), TIME_ERROR).
func clockIsSet() (set, known bool) {
	const unsynchronised = 5
	state, err := syscall.Adjtimex(new(syscall.Timex))
	return state != unsynchronised, err == nil
}
