package media

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/pion/stun/v4"
)

// The engine answers signed requests from programs that test its UDP port, although no client sends
// them. The limit keeps it from being used against others.
const (
	probesPerSecond = 10
	probeRepeat     = 200 * time.Millisecond // before Reach sends another request
)

// A probe holds the credentials of tests.
type probe struct {
	*credentials
	mu   sync.Mutex
	rate bucket
}

func newProbe() *probe {
	return &probe{credentials: newCredentials(), rate: bucket{rate: probesPerSecond, burst: probesPerSecond}}
}

// Probe returns the credentials for Reach. They lead to no call. Each engine has its own.
func (e *Engine) Probe() string { return e.probe.ufrag + ":" + e.probe.password }

// receiveProbe answers a request for a user name that no transport has, if it is a test.
func (w *worker) receiveProbe(m *stun.Message, ufrag []byte, from *path, now time.Time) {
	p := w.engine.probe
	if from.tcp != nil || string(ufrag) != p.ufrag {
		return
	}
	if p.key.Check(m) != nil {
		w.engine.counters.badSTUN.Add(1)
		return
	}
	p.mu.Lock()
	ok := p.rate.take(1, now)
	p.mu.Unlock()
	if !ok {
		w.engine.counters.limited.Add(1)
		return
	}
	w.respond(m, from, p.credentials, stun.BindingSuccess, nil)
}

// Reach sends requests to the UDP port of an engine at an address, until one is answered or ctx is
// done. probe comes from the engine's Probe.
func Reach(ctx context.Context, at netip.AddrPort, probe string) error {
	name, password, _ := strings.Cut(probe, ":")
	key := stun.NewShortTermIntegrity(password)
	request, err := stun.Build(stun.BindingRequest, stun.TransactionID, stun.NewUsername(name+":test"), key,
		stun.Fingerprint)
	if err != nil {
		return fmt.Errorf("making a STUN request: %w", err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "udp", at.String())
	if err != nil {
		return fmt.Errorf("testing the media port: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends the reading
	defer stop()

	answer := &stun.Message{Raw: make([]byte, maxPacket)}
	for ctx.Err() == nil {
		_, _ = conn.Write(request.Raw) // an error shows when reading
		_ = conn.SetReadDeadline(time.Now().Add(probeRepeat))
		n, err := conn.Read(answer.Raw[:maxPacket])
		if isTimeout(err) || ctx.Err() != nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("testing the media port: %w", err)
		}
		answer.Raw = answer.Raw[:n]
		if answer.Decode() == nil && answer.Type == stun.BindingSuccess &&
			answer.TransactionID == request.TransactionID && key.Check(answer) == nil {
			return nil
		}
	}
	return fmt.Errorf("testing the media port: %w", ctx.Err())
}

// isTimeout reports whether a deadline has passed.
func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
