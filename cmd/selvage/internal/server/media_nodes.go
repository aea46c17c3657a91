package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/bus"
)

// These are the kinds of messages about media addresses. A node with a TURN server asks the other
// nodes for their addresses, and a node that carries calls sends its own. The bus authenticates
// both kinds, so nobody else can make a TURN server relay to an address.
const (
	askMedia  = "media.ask"
	tellMedia = "media.tell"
)

const (
	askMediaEvery = 5 * time.Second
	mediaFor      = time.Minute // a node that has not answered for this long is forgotten
)

// A mediaNodes holds the UDP addresses at which other nodes receive media. A TURN server relays to
// them, because a client may be in a call that another node carries.
type mediaNodes struct {
	bus *bus.Bus
	own []netip.AddrPort // this node's addresses, which it sends to others

	mu    sync.Mutex
	known map[string]knownMedia // addresses by node
}

// knownMedia holds the addresses that a node has sent.
type knownMedia struct {
	addresses []netip.AddrPort
	sent      time.Time
}

// newMediaNodes returns a mediaNodes that handles messages from other nodes.
func newMediaNodes(b *bus.Bus, own []netip.AddrPort) *mediaNodes {
	m := &mediaNodes{bus: b, own: own, known: make(map[string]knownMedia)}
	b.Handle(askMedia, func(_ context.Context, node string, _ json.RawMessage) (any, error) {
		b.Send(node, tellMedia, own)
		return nil, nil
	})
	b.Handle(tellMedia, func(_ context.Context, node string, body json.RawMessage) (any, error) {
		return nil, m.note(node, body, time.Now())
	})
	return m
}

// note records the addresses that a node has sent. It also removes nodes that have not sent their
// addresses recently.
func (m *mediaNodes) note(node string, body json.RawMessage, now time.Time) error {
	var addresses []netip.AddrPort
	err := json.Unmarshal(body, &addresses)
	if err != nil {
		return fmt.Errorf("reading a node's media addresses: %w", err)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[node] = knownMedia{addresses: addresses, sent: now}
	m.forget(now)
	return nil
}

// addresses returns the addresses of all nodes that have sent them recently.
func (m *mediaNodes) addresses() (all []netip.AddrPort) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(time.Now())
	for _, k := range m.known {
		all = append(all, k.addresses...)
	}
	return all
}

// forget removes nodes that have not sent their addresses for mediaFor. The caller holds mu.
func (m *mediaNodes) forget(now time.Time) {
	maps.DeleteFunc(m.known, func(_ string, k knownMedia) bool { return now.Sub(k.sent) > mediaFor })
}

// announce sends this node's addresses to all other nodes. It is called when this node has started.
func (m *mediaNodes) announce() { m.bus.Broadcast(tellMedia, m.own) }

// watch periodically asks all nodes for their addresses, until ctx is done.
func (m *mediaNodes) watch(ctx context.Context) {
	tick := time.NewTicker(askMediaEvery)
	defer tick.Stop()
	for {
		m.bus.Broadcast(askMedia, struct{}{})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
