//go:build !linux

package servers

import "syscall"

// dieWithUs does nothing: only Linux can signal a child when its parent dies. On other
// systems, a killed test process leaves its servers running.
func dieWithUs(*syscall.SysProcAttr, syscall.Signal) {}
