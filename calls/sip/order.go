package sip

import (
	"sync"

	"github.com/emiago/sipgo/sip"
)

// These constants limit the requests that wait for other requests of their dialogs: how many requests
// of one dialog may be waiting or being handled, and how many may be waiting in all dialogs together.
const (
	maxWaiting    = 64
	maxWaitingAll = 1024
)

// An order makes the requests of a dialog wait for each other, so that they are handled one at a
// time, in the order in which they arrived. Otherwise, a re-INVITE might overtake the ACK that the
// phone sent before it. The zero value is ready to use.
type order struct {
	mu      sync.Mutex
	last    chan struct{} // closed once the latest request has been handled; nil if there was none
	waiting int
}

// enter adds a request, unless too many requests are waiting or take returns false. The parameter
// of take is whether the request has to wait. The caller waits until earlier is closed before it
// handles the request, and then calls done.
func (o *order) enter(take func(waits bool) bool) (earlier <-chan struct{}, done func(), ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting == maxWaiting || !take(o.waiting > 0) {
		return nil, nil, false
	}
	if o.last == nil {
		o.last = make(chan struct{})
		close(o.last)
	}

	handled := make(chan struct{})
	earlier, o.last = o.last, handled
	o.waiting++
	return earlier, func() {
		close(handled)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.waiting--
	}, true
}

// orderOf returns the order of a request. A request outside a dialog has its own order. A CANCEL
// has its own order, too, because its INVITE is still being handled.
func (s allDialogs) orderOf(r *sip.Request, f flow) *order {
	if r.Method != sip.CANCEL {
		if d := s.dialogOf(r, f); d != nil {
			return &d.order
		}
	}
	return new(order)
}
