package media_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v4"

	"github.com/selvage/selvage/calls/media"
)

// TestReach shows that the engine's UDP port answers requests with the engine's credentials, and no
// other requests.
func TestReach(t *testing.T) {
	e := newEngine(t)
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(e.Port()))
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := media.Reach(ctx, at, e.Probe()); err != nil {
		t.Errorf("Reach = %v, want no error", err)
	}

	other := newEngine(t)
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := media.Reach(soon, at, other.Probe()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with the credentials of a different engine, Reach = %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestTestCall shows that programs with the engine's credentials can place a call and hear themselves,
// and that other programs cannot. Only a few of these calls are possible at the same time.
func TestTestCall(t *testing.T) {
	e := newEngine(t)
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(e.Port()))
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()

	// A call above the limit gets no answer, so the attempts end when the engine refuses one.
	attempts, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		for e.Stats().Limited == 0 && ctx.Err() == nil {
			<-time.After(10 * time.Millisecond)
		}
	}()

	began, placed := time.Now(), 0
	for attempts.Err() == nil {
		if _, err := media.TestCall(attempts, at, e.Probe()); err == nil {
			placed++
		}
	}

	limit := media.MaxTestCalls * (1 + int(time.Since(began)/media.TestCallFor))
	if placed == 0 || placed > limit {
		t.Errorf("%d test calls were possible, want 1 to %d", placed, limit)
	}

	other := newEngine(t)
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := media.TestCall(soon, at, other.Probe()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with the credentials of a different engine, TestCall = %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestProbeFlood shows that the engine answers only some of many signed requests. It answers no
// requests with a wrong password.
func TestProbeFlood(t *testing.T) {
	e := newEngine(t)
	name, password, _ := strings.Cut(e.Probe(), ":")
	conn := stranger(t, e)
	send := func(password string) {
		m := stun.MustBuild(
			stun.BindingRequest,
			stun.TransactionID,
			stun.NewUsername(name+":test"),
			stun.NewShortTermIntegrity(password),
			stun.Fingerprint,
		)
		_, err := conn.Write(m.Raw)
		must(t, err)
	}
	send("wrong")
	waitFor(t, "the wrong password", func() bool { return e.Stats().BadSTUN == 1 })
	waitFor(t, "a request above the limit", func() bool {
		for range 100 {
			send(password)
		}
		return e.Stats().Limited > 0
	})

	must(t, conn.SetReadDeadline(time.Now().Add(deadline)))
	b := make([]byte, 1500)
	n, err := conn.Read(b)
	must(t, err)
	first := &stun.Message{Raw: b[:n]}
	must(t, first.Decode())
	if first.Type != stun.BindingSuccess {
		t.Errorf("the first answer is %v, want success for the right password", first)
	}
}
