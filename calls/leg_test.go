package calls

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// TestLateAnswer shows that a call whose caller is a phone continues if it is answered late. The phone
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

// TestReplaceSocket shows that a leg keeps the newest socket of its client, even if another goroutine
// stores this socket while the mailbox replaces the former one. The two goroutines take one step at a
// time, so that they use the same leg at the same time.
func TestReplaceSocket(t *testing.T) {
	former, moved, newest := Socket{ID: "former"}, Socket{ID: "moved"}, Socket{ID: "newest"}
	legs := make([]leg, 1000)
	for range 100 {
		for i := range legs {
			legs[i].at.Store(former)
		}
		var stores, moves atomic.Int64
		var work sync.WaitGroup
		work.Go(func() { inStep(&stores, &moves, len(legs), func(i int) { legs[i].at.Store(newest) }) })
		work.Go(func() { inStep(&moves, &stores, len(legs), func(i int) { legs[i].replaceSocket(former, moved) }) })
		work.Wait()

		for i := range legs {
			if got := legs[i].at.Load().(Socket); got != newest {
				t.Fatalf("leg %d has the socket %q, want %q", i, got.ID, newest.ID)
			}
		}
	}
}

// inStep calls f n times. Before each call, it waits until the other goroutine has begun this step, too.
func inStep(own, other *atomic.Int64, n int, f func(i int)) {
	for i := range n {
		own.Add(1)
		for other.Load() <= int64(i) {
			runtime.Gosched()
		}
		f(i)
	}
}
