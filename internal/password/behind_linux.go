package password

import "syscall"

// standBehind has the kernel prefer other threads to this one, and to the processes that
// it starts. Where it will not, hashes run as all else does.
func standBehind() {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), behind)
}
