package rtpengine

import "sync"

// tasks counts running goroutines. Unlike a [sync.WaitGroup], it may start goroutines while another
// goroutine waits. Calls that end while the engine closes do this. The zero value has no
// goroutines.
type tasks struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when no goroutine runs; nil if nobody waits
}

// Go runs f in a goroutine.
func (t *tasks) Go(f func()) {
	t.mu.Lock()
	t.running++
	t.mu.Unlock()
	go func() {
		defer t.leave()
		f()
	}()
}

func (t *tasks) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.running == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// Wait returns once no goroutine runs. Only one goroutine may wait.
func (t *tasks) Wait() {
	t.mu.Lock()
	if t.running == 0 {
		t.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	t.idle = idle
	t.mu.Unlock()
	<-idle
}
