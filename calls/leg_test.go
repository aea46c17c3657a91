package calls

import (
	"context"
	"testing"
)

// TestPressedIsBounded shows that the keys of a client do not fill the mailbox while it is busy, and
// that later keys are handled again.
func TestPressedIsBounded(t *testing.T) {
	k := newBareCall(New(Config{}), "1")
	w := watcher{leg: k.legs[0]}
	box := k.box.Load()
	waiting := func() int {
		box.mu.Lock()
		defer box.mu.Unlock()
		return len(box.waiting)
	}

	for range 2 {
		busy, begun := make(chan struct{}), make(chan struct{})
		k.post(func() {
			close(begun)
			<-busy
		})
		<-begun
		for range 10 * maxDigits {
			w.Pressed('1')
		}
		if n := waiting(); n != maxDigits {
			t.Errorf("%d keys wait for a busy mailbox, want %d", n, maxDigits)
		}

		close(busy)
		if _, err := k.do(context.Background(), func() (Reply, error) { return Reply{}, nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// deafClients are clients that receive no events.
type deafClients struct{}

func (deafClients) Tell(Socket, Event) {}

// TestScreensAreForgotten shows that a call does not remember the screens that were shared in it.
func TestScreensAreForgotten(t *testing.T) {
	k := newBareCall(New(Config{Clients: deafClients{}}), "1")
	for _, id := range []string{"2", "3", "4"} {
		screen := &leg{call: k, id: id, active: true, member: Member{ID: id, Type: Screen, Parent: "1"}}
		screen.at.Store(Socket{})
		k.addLeg(screen)
		screen.departSilently(NormalClearing)
	}
	if n := len(k.legs); n != 1 {
		t.Errorf("the call has %d legs after 3 screens have left, want 1", n)
	}
}
