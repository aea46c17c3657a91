package password

import "syscall"

// standBehind lowers the priority of this thread and of the processes that it starts. If that
// fails, hashes are computed at normal priority.
func standBehind() {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), behind)
}
