package bus

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

func TestSeal(t *testing.T) {
	now := time.Now()
	a, b := newSealer([32]byte{1}, "a"), newSealer([32]byte{1}, "b")
	first, second := a.seal("b", []byte("1"), now), a.seal("b", []byte("2"), now)

	for _, tt := range []struct {
		name   string
		sealed []byte
		now    time.Time
		want   error
	}{
		{"the second message", second, now, nil},
		{"the same again", second, now, errAgain},
		{"the first after the second", first, now, errAgain},
		{"a message for another node", a.seal("c", []byte("3"), now), now, errSeal},
		{"a message that was held back", a.seal("b", []byte("4"), now), now.Add(freshFor + time.Second), errOld},
		{"a message of the future", a.seal("b", []byte("5"), now.Add(freshFor+time.Second)), now, errOld},
		{"a message with another secret", newSealer([32]byte{2}, "a").seal("b", []byte("6"), now), now, errSeal},
		{"a message in another's name", rename(a.seal("b", []byte("7"), now), 'x'), now, errSeal},
		{"a message from a clock that is late", a.seal("b", []byte("8"), now.Add(time.Second-freshFor)), now, nil},
	} {
		from, text, err := b.open(tt.sealed, tt.now)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
		if err == nil && (from != "a" || len(text) != 1) {
			t.Errorf("%s: %q from %q", tt.name, text, from)
		}
	}
}

// TestSealBroadcast shows that each node opens a message to all nodes once, and that no node
// accepts it as a message to one node, or a message to one node as a message to all.
func TestSealBroadcast(t *testing.T) {
	now, secret := time.Now(), [32]byte{1}
	a, b, c := newBroadcastSealer(secret, "a"), newBroadcastSealer(secret, "b"), newBroadcastSealer(secret, "c")
	message := a.seal(a.receiver, []byte("1"), now)
	for name, by := range map[string]*sealer{"b": b, "c": c} {
		if from, text, err := by.open(message, now); from != "a" || string(text) != "1" || err != nil {
			t.Errorf("%s opens %q from %q, %v", name, text, from, err)
		}
		if _, _, err := by.open(message, now); !errors.Is(err, errAgain) {
			t.Errorf("%s opens it again: %v", name, err)
		}
	}
	disguised := append([]byte{toOne}, message[1:]...)
	direct := newSealer(secret, "a").seal("b", []byte("2"), now)
	for name, err := range map[string]error{
		"a broadcast as a direct message":                errorOf(newSealer(secret, "b"), disguised, now),
		"a direct message as a broadcast":                errorOf(b, append([]byte{toAll}, direct[1:]...), now),
		"a broadcast of another installation":            errorOf(newBroadcastSealer([32]byte{2}, "b"), message, now),
		"a broadcast that is opened by a sealer for one": errorOf(newSealer(secret, "b"), message, now),
	} {
		if !errors.Is(err, errSeal) {
			t.Errorf("%s: %v, want %v", name, err, errSeal)
		}
	}
}

func errorOf(s *sealer, sealed []byte, now time.Time) error {
	_, _, err := s.open(sealed, now)
	return err
}

// TestSenders shows that a node does not remember other nodes forever, and still opens no message
// twice.
func TestSenders(t *testing.T) {
	now, b := time.Now(), newSealer([32]byte{1}, "b")
	first := newSealer([32]byte{1}, "node0").seal("b", nil, now)
	if _, _, err := b.open(first, now); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		now = now.Add(freshFor)
		message := newSealer([32]byte{1}, "node"+strconv.Itoa(i+1)).seal("b", nil, now)
		if _, _, err := b.open(message, now); err != nil {
			t.Error(err)
		}
		if _, _, err := b.open(first, now); err == nil {
			t.Errorf("after %d×%v, the first message is opened again", i+1, freshFor)
		}
	}
	if n := len(b.senders); n > 3 {
		t.Errorf("it remembers %d senders", n)
	}
}

// rename replaces the first letter of the sender's name in a sealed message, and returns the
// message.
func rename(sealed []byte, letter byte) []byte {
	sealed[2] = letter
	return sealed
}
