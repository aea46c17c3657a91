package password

import (
	"runtime"
	"sync"
	"time"
)

// linger is how long the room of hashes stays after the last, so that the runtime does not
// stop for each of them.
const linger = time.Second

// A room is what the runtime has beside its processors (GOMAXPROCS) while there are hashes:
// they would else take its own, each for ten milliseconds in a row, and who waits for a
// token to be verified would wait for that. Which thread gets a processor of the machine is
// up to the kernel then, which prefers the others, see aside.
type room struct {
	mu   sync.Mutex
	in   int  // hashes that run
	made bool // whether the room is there
	left int  // how often the last has gone
}

// MakeRoom has the runtime make room for the hashes while there are any. A process calls
// it for one Hasher, before that is used.
func (h *Hasher) MakeRoom() { h.room = new(room) }

// take makes room for so many hashes, if there is none; leave ends one of them.
func (r *room) take(most int) (leave func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in++
	if !r.made {
		r.made = true
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + most)
	}
	return r.leave
}

func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in--; r.in > 0 {
		return
	}
	r.left++
	last := r.left
	time.AfterFunc(linger, func() { r.clear(last) })
}

// clear gives the room back, if nobody came since.
func (r *room) clear(last int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made && r.in == 0 && r.left == last {
		r.made = false
		runtime.SetDefaultGOMAXPROCS()
	}
}
