package calls

import (
	"context"
	"testing"
)

// TestRungOut shows that the calls with which one caller rings a subscriber leave room for another
// caller's call. Callers with the same embed key count as one caller. A place becomes free when a
// call is answered or has ended.
func TestRungOut(t *testing.T) {
	c := New(Config{Limits: Limits{Ringing: 3}})
	bob := account{id: "bob"}
	mallory, visitor, other := account{id: "mallory"}, account{id: "visitor"}, account{id: "other visitor"}
	embed := account{id: "embed key", embed: true}

	rings := func(id string, callers ...account) *leg {
		k := newBareCall(c, "call "+id)
		l := &leg{call: k, id: id, inbound: true, counted: []account{bob}, callers: callers}
		k.addLeg(l)
		return l
	}
	wantBusy := func(when string, want bool, callers ...account) {
		t.Helper()
		if got := c.counts().isBusy("bob", 1, callers); got != want {
			t.Errorf("%s, isBusy for %v = %v, want %v", when, callers, got, want)
		}
	}

	wantBusy("with no call", false, mallory)
	rings("1", mallory)
	second := rings("2", mallory)
	wantBusy("with two calls from mallory", true, mallory)
	wantBusy("with two calls from mallory", false, visitor, embed)

	second.call.forgetLeg(second)
	wantBusy("with one call from mallory", false, mallory)

	third := rings("3", visitor, embed)
	wantBusy("with one call from a visitor", false, other, embed)
	rings("4", other, embed)
	wantBusy("with three calls", true, account{id: "alice"})

	third.call.uncountRinging(third)
	third.active = true
	wantBusy("with one answered", false, account{id: "alice"})
	third.call.forgetLeg(third)
	wantBusy("with one answered and ended", false, account{id: "alice"})
}

// TestGiveUpEarly shows that a call survives the end of its ringing time while its route is still
// being planned.
func TestGiveUpEarly(t *testing.T) {
	c := New(Config{})
	k := newBareCall(c, "1")
	k.legs = nil
	k.state = Created
	err := runIn(context.Background(), k, func() error {
		ringer{k}.giveUp()
		return nil
	})
	if err != nil {
		t.Errorf("giving up = %v, want no error", err)
	}
	if k.state != Created {
		t.Errorf("the call is %s, want %s", k.state, Created)
	}
}
