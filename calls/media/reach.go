package media

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/pion/stun/v4"

	"github.com/selvage/selvage/calls/line"
)

// Reach sends requests to the UDP port of an engine at an address until the engine answers, or ctx
// is done. probe comes from the engine's Probe.
func Reach(ctx context.Context, at netip.AddrPort, probe string) error {
	if _, err := askEngine(ctx, at, probe); err != nil {
		return fmt.Errorf("testing the media port: %w", err)
	}
	return nil
}

// TestCall calls the engine at the UDP port of an address. It checks the path, exchanges keys and
// sends audio until it hears itself. It returns how long the audio took to come back. The call
// belongs to no project and leaves no record. probe comes from the engine's Probe.
func TestCall(ctx context.Context, at netip.AddrPort, probe string) (time.Duration, error) {
	answer, err := askEngine(ctx, at, probe, stun.RawAttribute{Type: stun.AttrData, Value: []byte(line.Description())})
	if err != nil {
		return 0, fmt.Errorf("placing a test call: %w", err)
	}
	description, err := answer.Get(stun.AttrData)
	if err != nil {
		return 0, fmt.Errorf("placing a test call: the answer has no description: %w", err)
	}

	heard := make(chan string, 1)
	l, err := line.OpenAt(ctx, at.String(), string(description), func(payload []byte) {
		select {
		case heard <- string(payload):
		default:
		}
	})
	if err != nil {
		return 0, fmt.Errorf("placing a test call: %w", err)
	}
	defer l.Close()
	return hearSelf(ctx, l, heard)
}

// hearSelf sends a packet every 20 ms until one comes back. It returns how long this packet took.
func hearSelf(ctx context.Context, l *line.Line, heard <-chan string) (time.Duration, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for seq := uint16(1); ; seq++ {
		if err := l.Send(seq, time.Since(began).String()); err != nil {
			return 0, fmt.Errorf("sending audio of a test call: %w", err)
		}
		select {
		case sent := <-heard:
			after, err := time.ParseDuration(sent)
			if err != nil {
				return 0, fmt.Errorf("a test call hears what it did not send: %w", err)
			}
			return time.Since(began) - after, nil
		case <-tick.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("a test call does not hear itself: %w", ctx.Err())
		}
	}
}

// askEngine sends a signed request with attributes to an engine until it answers, and returns the
// answer.
func askEngine(ctx context.Context, at netip.AddrPort, probe string, attributes ...stun.Setter) (*stun.Message, error) {
	name, password, _ := strings.Cut(probe, ":")
	key := stun.NewShortTermIntegrity(password)
	setters := append([]stun.Setter{stun.BindingRequest, stun.TransactionID, stun.NewUsername(name + ":test")},
		attributes...)
	request, err := stun.Build(append(setters, key, stun.Fingerprint)...)
	if err != nil {
		return nil, fmt.Errorf("making a STUN request: %w", err)
	}

	conn, err := new(net.Dialer).DialContext(ctx, "udp", at.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // closing ends the reading
	defer stop()

	answer := &stun.Message{Raw: make([]byte, maxPacket)}
	for ctx.Err() == nil {
		_, _ = conn.Write(request.Raw) // reading returns the error
		_ = conn.SetReadDeadline(time.Now().Add(probeRepeat))
		n, err := conn.Read(answer.Raw[:maxPacket])
		if isTimeout(err) || ctx.Err() != nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		answer.Raw = answer.Raw[:n]
		if answer.Decode() == nil && answer.Type == stun.BindingSuccess &&
			answer.TransactionID == request.TransactionID && key.Check(answer) == nil {
			return answer, nil
		}
	}
	return nil, ctx.Err()
}

// isTimeout reports whether a deadline has passed.
func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
