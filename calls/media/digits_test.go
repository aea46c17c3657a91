package media

import (
	"testing"

	"github.com/selvage/selvage/calls"
)

// A keyLog records the keys that a client presses.
type keyLog struct {
	testWatcher
	pressed string
}

func (k *keyLog) Pressed(digit byte) { k.pressed += string(digit) }

// TestLateEvents shows that each key counts once, even if packets of an earlier key arrive late.
// After a restart of the stream, and in a new stream, all keys count.
func TestLateEvents(t *testing.T) {
	log := &keyLog{}
	l := (&Engine{}).newLeg(log, calls.Terms{})
	var keys pressed
	for _, event := range []struct {
		code byte
		ssrc uint32
		at   uint32
	}{
		{5, 1, 1000},
		{5, 1, 1000},
		{6, 1, 3000},
		{5, 1, 1000}, // late
		{6, 1, 3000},
		{7, 1, 4_000_000_000}, // of a restarted stream
		{8, 1, 4_000_000_800},
		{9, 2, 4_000_000_000}, // of a new stream
		{9, 2, 4_000_000_000},
		{0, 2, 4_000_000_800},
	} {
		keys.put(l, event.ssrc, event.at, []byte{event.code, 10, 0, 160})
	}
	if log.pressed != "567890" {
		t.Errorf("the pressed keys are %s, want 567890", log.pressed)
	}
}
