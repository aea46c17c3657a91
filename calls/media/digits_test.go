package media

import (
	"testing"

	"github.com/selvage/selvage/calls"
)

// A keyLog notes the keys that a client presses.
type keyLog struct {
	testWatcher
	pressed string
}

func (k *keyLog) Pressed(digit byte) { k.pressed += string(digit) }

// TestLateEvents shows that each key counts once, even if packets of an earlier key arrive late.
// After a restart of the stream, all keys count.
func TestLateEvents(t *testing.T) {
	log := &keyLog{}
	l := (&Engine{}).newLeg(log, calls.Terms{})
	var keys pressed
	for _, event := range []struct {
		code byte
		at   uint32
	}{
		{5, 1000},
		{5, 1000},
		{6, 3000},
		{5, 1000}, // late
		{6, 3000},
		{7, 4_000_000_000}, // of a restarted stream
		{8, 4_000_000_800},
	} {
		keys.put(l, event.at, []byte{event.code, 10, 0, 160})
	}
	if log.pressed != "5678" {
		t.Errorf("the pressed keys are %s, want 5678", log.pressed)
	}
}
