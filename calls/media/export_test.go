package media

import "time"

// Keep does the engine's housekeeping as of a time.
func (e *Engine) Keep(now time.Time) { e.keepOnce(now) }
