package bus

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

func TestSeal(t *testing.T) {
	now := time.Now()
	tooLate := now.Add(freshFor + time.Second)
	a, b := newSealer(only([32]byte{1}), "a"), newSealer(only([32]byte{1}), "b")
	stranger := newSealer(only([32]byte{2}), "a")
	toB := func(sent time.Time) []byte { return a.seal("b", []byte("x"), sent) }
	first, second := toB(now), toB(now)

	for _, tt := range []struct {
		name   string
		sealed []byte
		opened time.Time
		want   error
	}{
		{"the second message", second, now, nil},
		{"the same again", second, now, errAgain},
		{"the first after the second", first, now, errAgain},
		{"a message for another node", a.seal("c", []byte("x"), now), now, errSeal},
		{"a message that was held back", toB(now), tooLate, errOld},
		{"a message from the future", toB(tooLate), now, errOld},
		{"a message with a different secret", stranger.seal("b", []byte("x"), now), now, errSeal},
		{"a message in another's name", rename(toB(now), 'x'), now, errSeal},
		{"a message from a node whose clock is behind", toB(now.Add(time.Second - freshFor)), now, nil},
	} {
		from, text, err := b.open(tt.sealed, tt.opened)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: open = %v, want %v", tt.name, err, tt.want)
		}
		if err != nil {
			continue
		}
		if from != "a" {
			t.Errorf("%s: the sender is %q, want a", tt.name, from)
		}
		if string(text) != "x" {
			t.Errorf("%s: the text is %q, want x", tt.name, text)
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

	for name, receiver := range map[string]*sealer{"b": b, "c": c} {
		from, text, err := receiver.open(message, now)
		if err != nil {
			t.Fatalf("%s: open = %v, want success", name, err)
		}
		if from != "a" || string(text) != "1" {
			t.Errorf("%s opens %q from %q, want 1 from a", name, text, from)
		}
		if _, _, err := receiver.open(message, now); !errors.Is(err, errAgain) {
			t.Errorf("%s opens the same message again: %v, want errAgain", name, err)
		}
	}

	direct := newSealer(only(secret), "a").seal("b", []byte("2"), now)
	for _, tt := range []struct {
		name     string
		receiver *sealer
		sealed   []byte
	}{
		{
			name:     "a broadcast as a direct message",
			receiver: newSealer(only(secret), "b"),
			sealed:   append([]byte{toOne}, message[1:]...),
		},
		{
			name:     "a direct message as a broadcast",
			receiver: b,
			sealed:   append([]byte{toAll}, direct[1:]...),
		},
		{
			name:     "a broadcast of another installation",
			receiver: newBroadcastSealer(only([32]byte{2}), [32]byte{2}, "b"),
			sealed:   message,
		},
		{
			name:     "a broadcast opened by a sealer for direct messages",
			receiver: newSealer(only(secret), "b"),
			sealed:   message,
		},
	} {
		if _, _, err := tt.receiver.open(tt.sealed, now); !errors.Is(err, errSeal) {
			t.Errorf("%s: open = %v, want %v", tt.name, err, errSeal)
		}
	}
}

// TestSenders shows that a node forgets other nodes after some time, and still opens no message twice.
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

// only returns a function that returns the given secrets.
func only(secrets ...secret) func() []secret { return func() []secret { return secrets } }

// TestSecretReplaced shows that messages arrive while nodes change to a new secret one after the
// other, and that a secret that is no longer trusted opens nothing.
func TestSecretReplaced(t *testing.T) {
	old, next := secret{1}, secret{2}
	first, second := []secret{old}, []secret{old}
	a := newSealer(func() []secret { return first }, "a")
	b := newSealer(func() []secret { return second }, "b")
	now := time.Now()
	wantOpened := func(when string) {
		t.Helper()
		if _, _, err := b.open(a.seal("b", []byte("x"), now), now); err != nil {
			t.Errorf("%s: open = %v, want success", when, err)
		}
	}

	wantOpened("at first")
	first = []secret{next, old}
	wantOpened("the sender knows the new secret, the receiver does not")
	second = []secret{next, old}
	wantOpened("both know the new secret")
	now = now.Add(settleFor)
	wantOpened("later")
	if a.using != next {
		t.Error("the sender still uses the old secret")
	}
	second = []secret{next}
	wantOpened("the receiver no longer trusts the old secret")

	forged := newSealer(only(old), "a").seal("b", []byte("x"), now)
	if _, _, err := b.open(forged, now); err == nil {
		t.Error("a message sealed with a leaked secret was opened")
	}
}
