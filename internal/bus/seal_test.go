package bus

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

func TestSeal(t *testing.T) {
	now := time.Now()
	a, b := newSealer(only([32]byte{1}), "a"), newSealer(only([32]byte{1}), "b")
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
		{"a message with another secret", newSealer(only([32]byte{2}), "a").seal("b", []byte("6"), now), now, errSeal},
		{"a message in another's name", rename(a.seal("b", []byte("7"), now), 'x'), now, errSeal},
		{"a message from a clock that is late", a.seal("b", []byte("8"), now.Add(time.Second-freshFor)), now, nil},
	} {
		from, text, err := b.open(tt.sealed, tt.now)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
		if err == nil && (from != "a" || len(text) != 1) {
			t.Errorf("%s: %q from %q, want one byte from a", tt.name, text, from)
		}
	}
}

// TestSealBroadcast shows that each node opens a message to all nodes once, and that no node
// accepts a broadcast as a message to one node, or vice versa.
func TestSealBroadcast(t *testing.T) {
	now, secret := time.Now(), [32]byte{1}
	a, b := newBroadcastSealer(only(secret), secret, "a"), newBroadcastSealer(only(secret), secret, "b")
	c := newBroadcastSealer(only(secret), secret, "c")
	message := a.seal(a.receiver, []byte("1"), now)

	for name, by := range map[string]*sealer{"b": b, "c": c} {
		if from, text, err := by.open(message, now); from != "a" || string(text) != "1" || err != nil {
			t.Errorf("%s opens %q from %q, %v, want 1 from a", name, text, from, err)
		}
		if _, _, err := by.open(message, now); !errors.Is(err, errAgain) {
			t.Errorf("%s opens it again: %v, want errAgain", name, err)
		}
	}
	disguised := append([]byte{toOne}, message[1:]...)

	foreign := newBroadcastSealer(only([32]byte{2}), [32]byte{2}, "b")
	direct := newSealer(only(secret), "a").seal("b", []byte("2"), now)
	for name, err := range map[string]error{
		"a broadcast as a direct message":                errorOf(newSealer(only(secret), "b"), disguised, now),
		"a direct message as a broadcast":                errorOf(b, append([]byte{toAll}, direct[1:]...), now),
		"a broadcast of another installation":            errorOf(foreign, message, now),
		"a broadcast that is opened by a sealer for one": errorOf(newSealer(only(secret), "b"), message, now),
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
	now, b := time.Now(), newSealer(only([32]byte{1}), "b")
	first := newSealer(only([32]byte{1}), "node0").seal("b", nil, now)
	if _, _, err := b.open(first, now); err != nil {
		t.Fatal(err)
	}

	for i := range 10 {
		now = now.Add(freshFor)
		message := newSealer(only([32]byte{1}), "node"+strconv.Itoa(i+1)).seal("b", nil, now)
		if _, _, err := b.open(message, now); err != nil {
			t.Error(err)
		}
		if _, _, err := b.open(first, now); err == nil {
			t.Errorf("after %d×%v, the first message is opened again", i+1, freshFor)
		}
	}

	if n := len(b.senders); n > 3 {
		t.Errorf("the sealer remembers %d senders, want at most 3", n)
	}
}

// rename replaces the first letter of the sender's name in a sealed message, and returns the
// message.
func rename(sealed []byte, letter byte) []byte {
	sealed[2] = letter
	return sealed
}

func only(all ...secret) func() []secret { return func() []secret { return all } }

// TestSecretReplaced shows that messages arrive while nodes change to a new secret one after the
// other, and that a secret that is no longer trusted opens nothing.
func TestSecretReplaced(t *testing.T) {
	old, next := secret{1}, secret{2}
	first, second := []secret{old}, []secret{old}
	a := newSealer(func() []secret { return first }, "a")
	b := newSealer(func() []secret { return second }, "b")
	now := time.Now()
	arrives := func(when string, want bool) {
		t.Helper()
		_, _, err := b.open(a.seal("b", []byte("x"), now), now)
		if (err == nil) != want {
			t.Errorf("%s: open = %v, want success %v", when, err, want)
		}
	}

	arrives("at first", true)
	first = []secret{next, old}
	arrives("the sender knows the new secret, the receiver does not", true)
	second = []secret{next, old}
	arrives("both know it", true)
	now = now.Add(settleFor)
	arrives("later", true)
	if a.using != next {
		t.Error("the sender still uses the old secret")
	}
	second = []secret{next}
	arrives("the receiver no longer trusts the old one", true)

	forged := newSealer(only(old), "a").seal("b", []byte("x"), now)
	if _, _, err := b.open(forged, now); err == nil {
		t.Error("a message sealed with a leaked secret was opened")
	}
}
