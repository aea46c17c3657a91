package media

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/stun/v4"

	"github.com/selvage/selvage/calls"
)

const (
	// probesPerSecond limits the answers to tests. It prevents attackers who replay a request with a
	// forged source address from directing many answers at a third party.
	probesPerSecond = 10
	// probeRepeat is the time after which a test repeats its request.
	probeRepeat = 200 * time.Millisecond

	maxTestCalls     = 4 // test calls that may be in progress at the same time
	testCallDuration = 10 * time.Second
)

// A probe answers programs that test the engine's UDP port. Their requests must be signed with the
// probe's credentials.
type probe struct {
	*credentials

	mu   sync.Mutex // guards rate
	rate bucket

	testCalls atomic.Int32 // test calls in progress
}

func newProbe() *probe {
	return &probe{
		credentials: newCredentials(),
		rate:        bucket{rate: probesPerSecond, burst: probesPerSecond},
	}
}

// allow reports whether the probe may answer another request now.
func (p *probe) allow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rate.take(1, now)
}

// beginTestCall reports whether another test call may begin. If it returns true, endTestCall must be
// called when the call ends.
func (p *probe) beginTestCall() bool {
	if p.testCalls.Add(1) > maxTestCalls {
		p.testCalls.Add(-1)
		return false
	}
	return true
}

func (p *probe) endTestCall() { p.testCalls.Add(-1) }

// Probe returns the credentials for Reach and TestCall, which serve no other purpose. Each engine
// has its own credentials.
func (e *Engine) Probe() string { return e.probe.ufrag + ":" + e.probe.password }

// receiveProbe handles a request with a username that no transport has. If the request is a test,
// receiveProbe answers it. Tests use only UDP.
func (w *worker) receiveProbe(m *stun.Message, ufrag []byte, from *path, now time.Time) {
	p := w.engine.probe
	if from.tcp != nil || string(ufrag) != p.ufrag {
		return
	}
	if p.key.Check(m) != nil {
		w.engine.counters.badSTUN.Add(1)
		return
	}
	if !p.allow(now) {
		w.engine.counters.limited.Add(1)
		return
	}

	if offer, err := m.Get(stun.AttrData); err == nil {
		w.receiveTestCall(m, offer, from)
		return
	}
	w.respond(m, from, p.credentials, stun.BindingSuccess, nil)
}

// receiveTestCall answers the offer of a test with the description of a leg that hears itself. The
// leg is closed after testCallDuration.
func (w *worker) receiveTestCall(m *stun.Message, offer []byte, from *path) {
	e := w.engine
	if !e.probe.beginTestCall() {
		e.counters.limited.Add(1)
		return
	}
	leg := e.newLeg(testWatcher{}, calls.Terms{})
	_, description, err := e.answer(leg, string(offer))
	if err != nil {
		e.probe.endTestCall()
		return
	}

	leg.Link(calls.Audio, leg)
	time.AfterFunc(testCallDuration, func() {
		leg.Close()
		e.probe.endTestCall()
	})

	err = w.response.Build(
		stun.BindingSuccess,
		stun.NewTransactionIDSetter(m.TransactionID),
		stun.RawAttribute{Type: stun.AttrData, Value: []byte(withoutCandidates(description))},
		e.probe.key,
		stun.Fingerprint,
	)
	if err == nil {
		from.write(w.response.Raw)
	}
}

// withoutCandidates removes the candidates from a description, so that it fits into a packet.
func withoutCandidates(description string) string {
	var shorter strings.Builder
	for line := range strings.Lines(description) {
		if !strings.HasPrefix(line, "a=candidate:") {
			shorter.WriteString(line)
		}
	}
	return shorter.String()
}

// A testWatcher ignores all events of a test call.
type testWatcher struct{}

func (testWatcher) Connected(calls.Path) {}
func (testWatcher) Lost()                {}
func (testWatcher) Talking(bool)         {}
func (testWatcher) Pressed(byte)         {}
func (testWatcher) Failed(error)         {}
