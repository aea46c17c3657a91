package calls

import (
	"context"
	"testing"
	"time"
)

// TestPressedIsBounded shows that the keys of a client do not fill the mailbox while the mailbox is busy, and
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

// TestAnonymousMember shows that the other members do not get the id of a subscriber who hides.
func TestAnonymousMember(t *testing.T) {
	m := newMember("1", Party{Name: "Anonymous", Address: Anonymous, SubscriberID: "2"})
	if m.SubscriberID != "" {
		t.Errorf("the member has the subscriber id %s, want none", m.SubscriberID)
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

// A discardingStore is a store that keeps no calls.
type discardingStore struct{ Store }

func (discardingStore) SaveCall(context.Context, Record) error { return nil }

// TestAbsentLeg shows how long a client may take to attach to a call whose node was lost, and the
// cause with which the call ends otherwise.
func TestAbsentLeg(t *testing.T) {
	c := New(Config{Clients: deafClients{}, Store: discardingStore{}})
	k := newBareCall(c, "1")
	l := k.legs[0]
	l.active = true
	l.member.Type = Person
	l.mediaLost = time.Now()
	l.socketLost = l.mediaLost

	l.endIfGone(l.socketLost.Add(attachWithin), 0)
	if l.ended {
		t.Fatalf("the leg has ended within %v", attachWithin)
	}
	l.endIfGone(l.socketLost.Add(attachWithin+1), 0)
	if !l.ended {
		t.Fatalf("the leg has not ended after %v", attachWithin)
	}
	if got := k.record.Cause; got != NodeLost {
		t.Errorf("the call ended with %v, want %v", got, NodeLost)
	}
}

// A silentMedia accepts every answer, and carries nothing.
type silentMedia struct{ Media }

func (silentMedia) Accept(string) error { return nil }
func (silentMedia) Link(Kind, Media)    {}
func (silentMedia) Quality() Quality    { return Quality{} }
func (silentMedia) Close()              {}

// TestLateAnswer shows that a call whose caller is a phone continues if the call is answered late. The phone
// sends no media before the answer.
func TestLateAnswer(t *testing.T) {
	k := newBareCall(New(Config{Clients: deafClients{}, Store: discardingStore{}}), "1")
	k.state = Ringing
	caller := k.legs[0]
	caller.active = true
	caller.member = Member{ID: "1", Type: Person}
	caller.media = silentMedia{}
	caller.mediaLost = time.Now().Add(-2 * noMedia)
	callee := &leg{call: k, id: "2", inbound: true, media: silentMedia{}, member: Member{ID: "2", Type: Person}}
	callee.at.Store(Socket{})
	k.addLeg(callee)

	if err := callee.answer(""); err != nil {
		t.Fatal(err)
	}
	caller.endIfGone(time.Now(), 0)
	if caller.ended {
		t.Error("the call has ended before the phone could send media")
	}
	caller.mediaLost = time.Time{}
	caller.awaitMedia()
	if !caller.mediaLost.IsZero() {
		t.Error("the media of a connected client counts as lost")
	}
}

// TestMediaBeforeAnswer shows that a call continues if the callee's media was connected before the answer.
// The engine does not report this again. Gateways often send media while a phone rings.
func TestMediaBeforeAnswer(t *testing.T) {
	k := newBareCall(New(Config{Clients: deafClients{}, Store: discardingStore{}}), "1")
	k.state = Ringing
	caller := k.legs[0]
	caller.active = true
	caller.member = Member{ID: "1", Type: Person}
	caller.media = silentMedia{}
	callee := &leg{call: k, id: "2", inbound: true, media: silentMedia{}, member: Member{ID: "2", Type: Person}}
	callee.at.Store(Socket{})
	callee.mediaLost = time.Now()
	k.addLeg(callee)

	watcher{leg: callee}.Connected(Path{})
	if err := runIn(t.Context(), k, func() error { return callee.answer("") }); err != nil {
		t.Fatal(err)
	}
	callee.endIfGone(time.Now().Add(2*noMedia), 0)
	if callee.ended {
		t.Error("the call has ended although the media of the callee is connected")
	}
	if !callee.described.IsZero() {
		t.Error("the time until the media is connected is measured from the answer, want no measurement")
	}
}

// TestExpiredToken shows that a call continues after the token of its caller has expired, as long as
// the caller sends media. With a valid token, the caller must reconnect.
func TestExpiredToken(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		expires   time.Time
		mediaLost time.Time
		ends      bool
	}{
		"valid":          {now.Add(time.Hour), time.Time{}, true},
		"expired":        {now, time.Time{}, false},
		"without media":  {now, now, true},
		"without expiry": {time.Time{}, time.Time{}, true},
	} {
		k := newBareCall(New(Config{Clients: deafClients{}, Store: discardingStore{}}), "1")
		l := k.legs[0]
		l.active = true
		l.member.Type = Person
		l.media = silentMedia{}
		l.client.Token.ExpiresAt = tt.expires
		l.socketLost = now
		l.mediaLost = tt.mediaLost
		l.endIfGone(now.Add(comeBack+1), 0)
		if l.ended != tt.ends {
			t.Errorf("%s: the leg has ended = %v, want %v", name, l.ended, tt.ends)
		}
	}
}
