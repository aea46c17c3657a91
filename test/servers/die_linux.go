package servers

import "syscall"

func dieWithUs(attr *syscall.SysProcAttr, dying syscall.Signal) { attr.Pdeathsig = dying }
