package rtpengine_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/line"
	"github.com/selvage/selvage/calls/rtpengine"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/test/harness"
)

// TestTranscoding connects a browser that sends Opus with a phone that supports only PCMU.
func TestTranscoding(t *testing.T) {
	e, _ := newEngine(t)
	alice := dial(t, e, calls.Terms{})
	desk := ring(t, e, alice.media, atLoopback)
	link(alice.media, desk.media)
	alice.speak()
	go desk.speak(desk.conn)

	wait(t, "the browser connects", alice.connected)
	if p := wait(t, "the phone connects", desk.connected); p.Remote != desk.conn.LocalAddr().String() {
		t.Errorf("the path to the phone is %+v, want %s", p, desk.conn.LocalAddr())
	}
	waitFor(t, "the phone hears the tone in PCMU", desk.heard, isLoudPCMU)
	isOpus := func(payload []byte) bool { return len(payload) > 20 && len(payload) != 160 }
	waitFor(t, "the browser hears the phone in Opus", alice.heard, isOpus)

	for digit, event := range map[string]byte{"7": 7, "#": 11, "a": 12} {
		alice.media.SendDigits(digit)
		isDigit := func(p []byte) bool { return isEvent(p) && p[12] == event }
		waitFor(t, "the phone receives the digit "+digit, desk.heard, isDigit)
	}
}

// A tap passes on the packets that it receives.
type tap chan calls.Packet

func (t tap) Packet(p calls.Packet) {
	p.Payload = slices.Clone(p.Payload)
	select {
	case t <- p:
	default:
	}
}

func (tap) Clock(calls.Kind, uint32, time.Time) {}

// waitPacket waits for a packet in a codec whose payload begins with the given text.
func (t tap) waitPacket(test *testing.T, codec, payload string) {
	test.Helper()
	after := time.After(deadline)
	for {
		select {
		case p := <-t:
			if p.Codec == codec && strings.HasPrefix(string(p.Payload), payload) && p.Kind == calls.Audio {
				return
			}
		case <-after:
			test.Fatalf("no packet %q in %s within %v", payload, codec, deadline)
		}
	}
}

// TestRecording shows that a recording gets the packets of both sides unchanged, even after the
// browser has reloaded its page.
func TestRecording(t *testing.T) {
	e, _ := newEngine(t)
	alice := dial(t, e, calls.Terms{})
	desk := ring(t, e, alice.media, atLoopback)
	link(alice.media, desk.media)
	left, right := make(tap, 1000), make(tap, 1000)
	alice.media.Record(left)
	desk.media.Record(right)
	alice.speak()
	go desk.speak(desk.conn)
	left.waitPacket(t, "opus", "")
	right.waitPacket(t, "PCMU", "")

	answer, err := alice.media.Renew(withEvents())
	if err != nil {
		t.Fatalf("Renew: %v", err)
	}

	before := alice.line
	drain(left)
	alice.renew(answer)
	left.waitPacket(t, "opus", "")
	drain(alice.heard)
	waitFor(t, "the browser hears the phone again", alice.heard, func(p []byte) bool { return len(p) > 20 })
	before.Close()

	alice.media.Record(nil)
	drain(left)
	right.waitPacket(t, "PCMU", "")
	if len(left) > 1 { // one packet may have been in transit
		t.Errorf("%d packets arrived after the end of the recording, want 1 at most", len(left))
	}
}

// drain discards what a channel has buffered.
func drain[T any](buffered <-chan T) {
	for len(buffered) > 0 {
		<-buffered
	}
}

// answer returns a browser that has answered the engine's offer.
func answer(t *testing.T, e *rtpengine.Engine, from calls.Media) *browser {
	t.Helper()
	b := &browser{watcher: newWatcher(), t: t, heard: make(chan []byte, 1000)}
	m, offer, err := e.Offer(b, from, calls.Terms{})
	if err != nil {
		t.Fatalf("Offer: %v", err)
	}
	b.media = m
	if err := m.Accept(withEvents()); err != nil {
		t.Fatalf("Accept: %v", err)
	}
	b.open(offer)
	return b
}

// saysAll sends packets, and waits until rtpengine has received all of them, and the tap has read the
// copies. Only the last packets may still be on their way.
func (b *browser) saysAll(payload string, n int) {
	b.t.Helper()
	before, err := rtpengine.Received(b.media)
	if err != nil {
		b.t.Fatal(err)
	}
	for range n {
		b.say(payload)
	}
	harness.Eventually(b.t, deadline, "rtpengine to receive the packets", func() error {
		got, err := rtpengine.Received(b.media)
		if err == nil && got < before+n {
			err = fmt.Errorf("it has received %d packets, want %d", got, before+n)
		}
		return err
	})
	harness.Eventually(b.t, deadline, "the tap to read the copies", func() error {
		unread, err := rtpengine.HasUnread(b.media)
		if unread && err == nil {
			err = errors.New("it has not read all")
		}
		return err
	})
}

// TestMute sends packets that the other browser must not receive. A recording shows when rtpengine
// has handled these packets. The packets of a muted browser are not recorded either.
func TestMute(t *testing.T) {
	e, _ := newEngine(t)
	alice := dial(t, e, calls.Terms{})
	bob := answer(t, e, alice.media)
	link(alice.media, bob.media)
	recorded := make(tap, 1000)
	alice.media.Record(recorded)

	saysUnheard := func(what string) {
		t.Helper()
		for range 5 {
			alice.say(what)
		}
		alice.say(what + "-last")
		recorded.waitPacket(t, "opus", what+"-last")
	}

	bobHears := func(what string) {
		t.Helper()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		after := time.After(deadline)
		for {
			select {
			case <-tick.C:
				alice.say(what)
			case p := <-bob.heard:
				if strings.HasPrefix(string(p), "silent") {
					t.Fatalf("bob received %q, which was muted", p)
				}
				if string(p) == what {
					return
				}
			case <-after:
				t.Fatalf("bob did not receive %q within %v", what, deadline)
			}
		}
	}

	bobHears("linked")
	alice.media.Mute(calls.Audio, true)
	alice.saysAll("silent: muted", 5)
	alice.media.Record(nil)
	for len(recorded) > 0 {
		if p := <-recorded; strings.HasPrefix(string(p.Payload), "silent") {
			t.Errorf("the packet %q was recorded although it was muted", p.Payload)
		}
	}
	alice.media.Mute(calls.Audio, false)
	alice.media.Record(recorded)
	bobHears("unmuted")
	bob.media.Deafen(true)
	saysUnheard("silent: deaf")
	bob.media.Deafen(false)
	bobHears("undeafened")
	alice.media.Link(calls.Audio, nil)
	saysUnheard("silent: held")
	link(alice.media, bob.media)
	bobHears("linked again")

	carol := answer(t, e, alice.media)
	carol.media.Link(calls.Audio, bob.media) // replaces alice
	saysUnheard("silent: replaced")
	alice.media.Link(calls.Audio, bob.media)
	bobHears("linked at last")
	bob.media.Close()
	if got, want := alice.media.Kinds(), []calls.Kind{calls.Audio}; !slices.Equal(got, want) {
		t.Errorf("alice's kinds are %v, want %v", got, want)
	}
}

// TestClosed shows that the media of a leg does nothing after Close.
func TestClosed(t *testing.T) {
	e, _ := newEngine(t)
	alice := dial(t, e, calls.Terms{})
	alice.media.Close()
	if _, err := alice.media.Renew(withEvents()); err == nil {
		t.Error("after Close, Renew succeeds, want an error")
	}
	if _, err := alice.media.Update(withEvents()); err == nil {
		t.Error("after Close, Update succeeds, want an error")
	}
	alice.media.Record(make(tap)) // otherwise, its goroutine would keep the engine from closing
}

// TestEcho links a browser with itself.
func TestEcho(t *testing.T) {
	e, _ := newEngine(t)
	alice := dial(t, e, calls.Terms{})
	alice.media.Link(calls.Audio, alice.media)
	alice.speak()
	waitFor(t, "the browser hears itself", alice.heard, func(p []byte) bool { return len(p) == 60 })
	alice.media.Beep()
}

// TestScriptMedia shows that the built-in engine carries the calls of scripts: a caller in a mixer
// hears a sound, and then a phone with which a script connects it. The call can move into a room.
func TestScriptMedia(t *testing.T) {
	e, _ := newEngine(t)
	caller, mixer := newPhone(t), e.NewMixer()
	defer mixer.Close()
	m, answer, err := mixer.Answer(caller, caller.describe(), atLoopback)
	if err != nil {
		t.Fatalf("Answer: %v", err)
	}
	defer m.Close()
	caller.media = m
	caller.offer = answer
	go caller.listen()

	sound := make([]int16, 16000)
	for i := range sound {
		sound[i] = int16(10000 - 20000*(i/16%2))
	}
	mixer.Add(m)
	mixer.Play(sound, nil)
	waitFor(t, "the caller hears the sound", caller.heard, isLoudPCMU)

	mixer.Release(m)
	desk := ring(t, e, m, atLoopback)
	defer desk.media.Close()
	link(m, desk.media)
	go caller.speak(caller.conn)
	waitFor(t, "the phone hears the caller", desk.heard, isLoudPCMU)

	m.Mute(calls.Audio, true)
	room := e.NewMixer()
	defer room.Close()
	for _, side := range []calls.Media{m, desk.media} {
		side.Link(calls.Audio, nil)
		if err := room.Adopt(side); err != nil {
			t.Errorf("moving into a room: %v", err)
		}
		room.Add(side)
	}
	waitFor(t, "the phone hears the silent room", desk.heard, func(p []byte) bool { return !loud(p) })
	m.Mute(calls.Audio, false)
	waitFor(t, "the phone hears the caller in the room", desk.heard, loud)
}

// TestDeath kills rtpengine during calls. The calls end, and new calls are refused until rtpengine
// runs again.
func TestDeath(t *testing.T) {
	e, daemon := newEngine(t)
	alice := dial(t, e, calls.Terms{})
	desk := ring(t, e, alice.media, atLoopback)
	link(alice.media, desk.media)
	alice.speak()
	wait(t, "the browser connects", alice.connected)
	if err := e.Check(); err != nil {
		t.Errorf("Check = %v, want no error", err)
	}

	daemon.Kill(t)
	wait(t, "the browser's media fails", alice.failed)
	wait(t, "the phone's media fails", desk.failed)
	_, _, err := e.Answer(newWatcher(), line.Description(), calls.Terms{})
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("without rtpengine, Answer = %v, want %v", err, problem.Unavailable)
	}
	if err := e.Check(); err == nil {
		t.Error("without rtpengine, Check succeeds, want an error")
	}

	daemon.Start(t)
	for e.Check() != nil {
		select {
		case <-t.Context().Done():
			t.Fatal("rtpengine is not found again")
		case <-time.After(10 * time.Millisecond):
		}
	}
	again := dial(t, e, calls.Terms{})
	again.speak()
	wait(t, "the next call connects", again.connected)

	daemon.Kill(t) // it runs again before the next ping
	daemon.Start(t)
	wait(t, "media that the new process does not know fails", again.failed)
}

// TestStranger sends media to a phone's port from an address that does not belong to the phone. The
// media fails, and the stranger does not hear the caller.
func TestStranger(t *testing.T) {
	e, _ := newEngine(t)
	alice := dial(t, e, calls.Terms{})
	terms := atLoopback
	terms.Claimed = true
	desk := ring(t, e, alice.media, terms)
	link(alice.media, desk.media)
	alice.speak()
	stranger, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Close() })
	go desk.speak(stranger)
	wait(t, "the phone's media fails", desk.failed)
	if len(desk.heard) > 0 {
		t.Errorf("a phone that has not sent anything received %d packets, want none", len(desk.heard))
	}

	_ = stranger.SetReadDeadline(time.Now())
	if n, err := stranger.Read(make([]byte, 2000)); err == nil {
		t.Errorf("the stranger received a packet of %d bytes, want none", n)
	}
}

// TestListeningPhone shows that a phone that only receives counts as connected although it never sends.
func TestListeningPhone(t *testing.T) {
	e, _ := newEngine(t)
	p := newPhone(t)
	if _, _, err := e.Answer(p, p.describe()+"a=recvonly\r\n", atLoopback); err != nil {
		t.Fatalf("Answer: %v", err)
	}
	wait(t, "a phone that only receives is connected", p.connected)
}

// TestRefusals offers media that rtpengine cannot carry.
func TestRefusals(t *testing.T) {
	e, _ := newEngine(t)
	alice := dial(t, e, calls.Terms{})
	if err := e.NewMixer().Adopt(alice.media); !errors.Is(err, problem.Invalid) {
		t.Errorf("moving into a room: %v, want %v", err, problem.Invalid)
	}

	secure := atLoopback
	secure.SRTP.Required = true
	const plainRTP = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n"
	for name, tt := range map[string]struct {
		terms calls.Terms
		offer string
	}{
		"no description":      {calls.Terms{}, "hello"},
		"no codec":            {calls.Terms{}, strings.ReplaceAll(line.Description(), "opus", "speex")},
		"no ICE":              {calls.Terms{}, strings.ReplaceAll(line.Description(), "a=ice-pwd", "a=x")},
		"no DTLS":             {calls.Terms{}, strings.ReplaceAll(line.Description(), "a=fingerprint", "a=x")},
		"screen":              {calls.Terms{Source: true}, line.Description()},
		"plain RTP":           {calls.Terms{}, strings.ReplaceAll(line.Description(), "UDP/TLS/RTP/SAVPF", "RTP/AVP")},
		"RTP instead of SRTP": {secure, plainRTP},
	} {
		if _, _, err := e.Answer(newWatcher(), tt.offer, tt.terms); !errors.Is(err, problem.Invalid) {
			t.Errorf("%s: Answer = %v, want %v", name, err, problem.Invalid)
		}
	}
}
