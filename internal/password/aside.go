package password

import "runtime"

// aside runs work on a thread of its own that stands behind all others, so that whoever
// waits for less than a hash does not wait for the hashes of those who guess. The thread
// ends with the work: what was made to stand behind cannot come forward again.
func aside(work func() error) error {
	type end struct {
		err   error
		panic any
	}
	done := make(chan end, 1)
	go func() {
		var e end
		defer func() {
			e.panic = recover()
			done <- e
		}()
		runtime.LockOSThread() // and never unlocks it
		standBehind()
		e.err = work()
	}()
	e := <-done
	if e.panic != nil {
		panic(e.panic)
	}
	return e.err
}
