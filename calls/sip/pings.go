package sip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// pingEvery is the interval between the packets that keep NAT mappings alive. Some NATs drop a
// mapping after 30 seconds (RFC 4787, section 4.3).
const pingEvery = 20 * time.Second

// maxPinged is the maximum number of UDP addresses to ping.
const maxPinged = 50_000

// savePingsEvery is the interval at which the addresses to ping are saved.
const savePingsEvery = time.Minute

// A pinger pings phones and gateways with a registration over UDP. If the server is the only node, the
// registrations of phones survive a restart. The pinger then saves their addresses in the session store, so
// that it continues to ping them. Otherwise, the NATs of phones might drop their mappings before the phones
// register again.
type pinger struct{ *Server }

// keepOpen makes the server ping an address until the given time.
func (s pinger) keepOpen(a netip.AddrPort, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.pinged[a]; known || len(s.pinged) < maxPinged {
		s.pinged[a] = until
		s.unsaved = true
	}
}

// ping sends a packet to each phone that is registered here over UDP, to keep the phone's NAT
// mapping alive (RFC 5626, section 4.4.1). It does the same for each gateway at which this server is
// registered over UDP, because the server may be behind NAT, too. It deletes expired addresses. It does not
// hold mu while it sends, because all other messages would have to wait.
func (s pinger) ping(now time.Time) {
	s.mu.Lock()
	maps.DeleteFunc(s.pinged, func(_ netip.AddrPort, until time.Time) bool { return now.After(until) })
	addresses := slices.Collect(maps.Keys(s.pinged))
	for _, r := range s.registrations {
		if r.path.udp != nil && now.Before(r.until) {
			addresses = append(addresses, r.path.remote)
		}
	}
	s.mu.Unlock()
	for _, a := range addresses {
		// If this fails, the next registration restores the mapping.
		_, _ = s.c.UDP.WriteToUDPAddrPort([]byte("\r\n\r\n"), a)
	}
}

// keepSaved restores the addresses to ping, and then saves them until ctx is done.
func (s pinger) keepSaved(ctx context.Context) {
	if !s.c.Alone || s.c.UDP == nil {
		return
	}
	isRestored := false
	tick := time.NewTicker(savePingsEvery)
	defer tick.Stop()

	for {
		var err error
		if !isRestored { // otherwise, save would overwrite the addresses
			err = s.restore(ctx)
			isRestored = err == nil
		} else {
			err = s.save(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Error("keeping the addresses of phones", "error", err)
		}
		select {
		case <-ctx.Done():
			if isRestored {
				s.saveLast(context.WithoutCancel(ctx))
			}
			return
		case <-tick.C:
		}
	}
}

// saveLast is like save, for a server that stops.
func (s pinger) saveLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, unregisterFor)
	defer cancel()
	if err := s.save(ctx); err != nil {
		s.log.Warn("saving the addresses of phones", "error", err)
	}
}

// pingedKey is the key of the saved addresses. The value contains until when to ping each of them, in Unix
// seconds.
var pingedKey = session.Key{Kind: "pinged", ID: "phones"}

// save saves the addresses to ping if they have changed since they were last saved.
func (s pinger) save(ctx context.Context) error {
	s.mu.Lock()
	if !s.unsaved {
		s.mu.Unlock()
		return nil
	}
	s.unsaved = false
	times := make(map[netip.AddrPort]int64, len(s.pinged))
	for a, until := range s.pinged {
		times[a] = until.Unix()
	}
	s.mu.Unlock()

	value, err := json.Marshal(times)
	if err == nil {
		err = s.c.Sessions.Put(ctx, pingedKey, value, maxExpiry)
	}
	if err != nil {
		s.mu.Lock()
		s.unsaved = true
		s.mu.Unlock()
		return fmt.Errorf("saving the addresses of phones: %w", err)
	}
	return nil
}

// restore adds the addresses that an earlier process has saved, and pings them.
func (s pinger) restore(ctx context.Context) error {
	value, err := s.c.Sessions.Get(ctx, pingedKey)
	if errors.Is(err, problem.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the addresses of phones: %w", err)
	}
	var times map[netip.AddrPort]int64
	if json.Unmarshal(value, &times) != nil {
		return nil // written by a different version of selvage
	}
	now := time.Now()
	for a, seconds := range times {
		until := time.Unix(seconds, 0)
		if s.mayRestore(a) && until.After(now) {
			s.keepOpen(a, until)
		}
	}
	s.ping(now)
	return nil
}

// mayRestore reports whether an address is not pinged yet. Otherwise, its phone has registered again.
func (s pinger) mayRestore(a netip.AddrPort) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.pinged[a]
	return !known
}
