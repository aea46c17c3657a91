package servers

import "syscall"

// dieWithUs makes a process receive a signal when this one ends, and not the interrupts of the
// terminal, so that the servers outlive their clients.
func dieWithUs(attr *syscall.SysProcAttr, dying syscall.Signal) {
	attr.Pdeathsig, attr.Setpgid = dying, true
}
