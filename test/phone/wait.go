package phone

import (
	"errors"
	"time"
)

// WaitConnected waits until audio can flow in the call. The phone must be a light phone.
func (c *Call) WaitConnected() {
	c.phone.t.Helper()
	select {
	case <-c.connected:
	case <-time.After(patience):
		c.phone.t.Fatalf("the media of the call did not connect")
	}
}

// WaitAnswered waits until the call is answered.
func (c *Call) WaitAnswered() {
	c.phone.t.Helper()
	select {
	case <-c.answered:
	case cause := <-c.ended:
		c.phone.t.Fatalf("the call ended with %s instead of being answered", cause)
	case <-time.After(patience):
		c.phone.t.Fatalf("the call was not answered")
	}
}

// WaitLost waits until the server reports that the call's node is lost.
func (c *Call) WaitLost() {
	c.phone.t.Helper()
	select {
	case <-c.lost:
	case cause := <-c.ended:
		c.phone.t.Fatalf("the call ended with %s", cause)
	case <-time.After(patience):
		c.phone.t.Fatalf("the server did not report the lost node")
	}
}

// WaitEnded waits until the server has ended the call, and returns the cause.
func (c *Call) WaitEnded() string {
	c.phone.t.Helper()
	select {
	case cause := <-c.ended:
		return cause
	case <-time.After(patience):
		c.phone.t.Fatalf("the call did not end")
		return ""
	}
}

// Ended returns an error until the server has ended the call. It fails the test if the call ended
// with a different cause.
func (c *Call) Ended(cause string) error {
	c.phone.t.Helper()
	select {
	case got := <-c.ended:
		if got != cause {
			c.phone.t.Fatalf("the call ended with %s, want %s", got, cause)
		}
		return nil
	default:
		return errors.New("the call has not ended")
	}
}

// WaitRing waits until the phone rings, and returns the call.
func (p *Phone) WaitRing() *Call {
	p.t.Helper()
	select {
	case c := <-p.Rings:
		return c
	case <-time.After(patience):
		p.t.Fatalf("the phone did not ring")
		return nil
	}
}
