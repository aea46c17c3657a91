package password

import "syscall"

// behind is how nice the threads of hashes are, from 0 to 19 (setpriority(2)): one that
// wants the same processor as a thread of the others gets a tenth of it. Nicer ones would
// keep the others waiting where the runtime waits for all threads.
const behind = 10

// standBehind has the kernel prefer other threads to this one. Where it will not, hashes
// run as all else does.
func standBehind() {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), behind)
}
