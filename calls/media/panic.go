package media

import (
	"fmt"
	"runtime/debug"
	"time"
)

// panicPause is the minimum time between two log entries about panics outside legs.
const panicPause = time.Second

// handlePanic keeps a panic, for example one caused by a client's packet, from ending the process.
// It closes the leg and notifies its watcher. cause is the result of recover, which is nil without
// a panic. l is nil if the panic belongs to no leg.
func (e *Engine) handlePanic(l *leg, cause any) {
	if cause == nil {
		return
	}
	err := fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
	e.counters.panics.Add(1)
	if l == nil {
		now, last := stamp(time.Now()), e.panicked.Load()
		if now-last > int64(panicPause) && e.panicked.CompareAndSwap(last, now) {
			e.log.Error("handling a packet", "error", err)
		}
		return
	}
	l.fail(err)
}
