package relay

import (
	"testing"
	"time"
)

func TestBucket(t *testing.T) {
	var b bucket
	now := time.Now()
	for i := range int(messageBurst) {
		if got := b.take(now); got != 0 {
			t.Fatalf("message %d of a burst waits %v, want 0", i, got)
		}
	}

	if got, want := b.take(now), time.Second/messageRate; got != want {
		t.Errorf("the first message after a burst waits %v, want %v", got, want)
	}

	now = now.Add(time.Second / messageRate)
	if got, want := b.take(now), time.Second/messageRate; got.Round(time.Microsecond) != want {
		t.Errorf("the next message, after that wait, waits %v, want %v", got, want)
	}
	if got := b.take(now.Add(time.Minute)); got != 0 {
		t.Errorf("a message after a minute waits %v, want 0", got)
	}
	if b.tokens != messageBurst-1 {
		t.Errorf("after a minute, %v further messages need not wait, want %v", b.tokens, messageBurst-1)
	}
}

func TestLimitsOrDefaults(t *testing.T) {
	want := Limits{
		PerCaller:    100,
		PerNetwork:   200,
		Authenticate: 10 * time.Second,
		Ping:         10 * time.Second,
		Silence:      45 * time.Second,
	}
	if got := (Limits{}).orDefaults(); got != want {
		t.Errorf("the defaults are %+v, want %+v", got, want)
	}

	want.PerCaller, want.Ping = 7, time.Second
	if got := (Limits{PerCaller: 7, Ping: time.Second}).orDefaults(); got != want {
		t.Errorf("with two limits set, orDefaults() = %+v, want %+v", got, want)
	}

	want = Limits{
		PerCaller:    many,
		PerNetwork:   many,
		Authenticate: never,
		Ping:         never,
		Silence:      never,
	}
	unlimited := Limits{
		PerCaller:    -1,
		PerNetwork:   -1,
		Authenticate: -1,
		Ping:         -1,
		Silence:      -1,
	}
	if got := unlimited.orDefaults(); got != want {
		t.Errorf("with negative limits, orDefaults() = %+v, want %+v", got, want)
	}
}
