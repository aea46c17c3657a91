package media

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/stun/v4"

	"github.com/selvage/selvage/calls"
)

// In addition to requests from clients, the engine answers signed requests from programs that test
// its UDP port. probesPerSecond prevents attackers from directing many answers at a third party.
const (
	probesPerSecond = 10
	probeRepeat     = 200 * time.Millisecond // time before a test repeats its request

	maxTestCalls = 4
	testCallFor  = 10 * time.Second
)

// A probe holds the credentials for tests.
type probe struct {
	*credentials
	mu    sync.Mutex
	rate  bucket
	calls atomic.Int32 // test calls in progress
}

func newProbe() *probe {
	return &probe{credentials: newCredentials(), rate: bucket{rate: probesPerSecond, burst: probesPerSecond}}
}

// Probe returns the credentials for Reach and TestCall, which serve no other purpose. Each engine
// has its own credentials.
func (e *Engine) Probe() string { return e.probe.ufrag + ":" + e.probe.password }

// receiveProbe handles a request with a username that no transport has. If the request is a test,
// receiveProbe answers it.
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
	allowed := p.rate.take(1, now)
	p.mu.Unlock()
	if !allowed {
		w.engine.counters.limited.Add(1)
		return
	}

	if offer, err := m.Get(stun.AttrData); err == nil {
		w.receiveTestCall(m, offer, from)
		return
	}
	w.respond(m, from, p.credentials, stun.BindingSuccess, nil)
}

// receiveTestCall answers the offer of a test with the description of a leg that hears itself.
func (w *worker) receiveTestCall(m *stun.Message, offer []byte, from *path) {
	e := w.engine
	if e.probe.calls.Add(1) > maxTestCalls {
		e.probe.calls.Add(-1)
		e.counters.limited.Add(1)
		return
	}
	l := e.newLeg(testWatcher{}, calls.Terms{})
	_, description, err := e.answer(l, string(offer))
	if err != nil {
		e.probe.calls.Add(-1)
		return
	}

	l.Link(calls.Audio, l)
	time.AfterFunc(testCallFor, func() {
		l.Close()
		e.probe.calls.Add(-1)
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
	var kept strings.Builder
	for line := range strings.Lines(description) {
		if !strings.HasPrefix(line, "a=candidate:") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// A testWatcher ignores all events of a test call.
type testWatcher struct{}

func (testWatcher) Connected(calls.Path) {}
func (testWatcher) Lost()                {}
func (testWatcher) Talking(bool)         {}
func (testWatcher) Pressed(byte)         {}
func (testWatcher) Failed(error)         {}
