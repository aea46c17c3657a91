package servers

import "syscall"

// dieWithUs makes a process receive a signal when this process ends. It also keeps interrupts from
// the terminal away from the process, so that servers live longer than their clients.
func dieWithUs(attr *syscall.SysProcAttr, dying syscall.Signal) {
	attr.Pdeathsig, attr.Setpgid = dying, true
}
