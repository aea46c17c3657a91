package calls

import "time"

// A Meter measures calls. The goroutines of calls use its methods, so they must not block.
type Meter interface {
	// Connected is called when media can flow to and from a client for the first time. took is the
	// time since the client's description arrived.
	Connected(took time.Duration)

	// Ended is called with the record of a call that has ended. The call was on this node, or on a
	// node that died.
	Ended(r Record)
}

// unmetered is a Meter that measures nothing.
type unmetered struct{}

func (unmetered) Connected(time.Duration) {}
func (unmetered) Ended(Record)            {}
