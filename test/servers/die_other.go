//go:build !linux

package servers

import "syscall"

// dieWithUs does nothing: only Linux tells children of their parent's death. A
// test process that is killed leaves its servers behind here.
func dieWithUs(*syscall.SysProcAttr, syscall.Signal) {}
