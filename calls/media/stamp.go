package media

import "time"

// origin is a time before all times that the engine records.
var origin = time.Now().Add(-time.Hour)

// stamp returns a time as nanoseconds since origin, for an atomic field. Unlike Unix time, it continues
// evenly if the machine's clock is set. Otherwise, a client that has left would seem to be there for as
// long as the clock was set back.
func stamp(t time.Time) int64 { return int64(t.Sub(origin)) }

// stamped returns the time of a stamp.
func stamped(at int64) time.Time { return origin.Add(time.Duration(at)) }
