// Package turn relays the media of browsers in networks that permit nothing but TLS.
//
// It is a TURN server (RFC 8656) over TCP or TLS that forwards only to the media ports of this
// deployment. Therefore, it gives no access to the network behind it. Clients get credentials when
// they connect, but only while the server is known to work. The SDK fails calls whose TURN server
// does not answer.
package turn

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/turn/v5"

	"github.com/selvage/selvage/internal/limit"
)

// These constants limit clients. With the stock SDK, Chromium gathers ten candidates in advance for
// each media section, and each candidate is an allocation.
const (
	maxAllocations = 4000 // allocations of all clients together
	maxOfNetwork   = 1000 // allocations of one network, which may be a company's
	maxPerHolder   = 64
)

// realm is the realm of the credentials (RFC 8489, section 9.2).
const realm = "selvage"

// Config configures a Server.
type Config struct {
	// Listener accepts TCP or TLS connections. The server closes it.
	Listener net.Listener
	// URL is the server's URL for clients, such as turns:example.com:443?transport=tcp.
	URL string

	// Own lists the UDP media addresses of this node as clients see them. This node itself reaches
	// its media port at Local.
	Own   []netip.AddrPort
	Local netip.AddrPort
	// Others returns the UDP media addresses of the other nodes, which carry some of the calls. It
	// is called for each packet. Nil means that this is the only node.
	Others func() []netip.AddrPort

	// Longest is how long an allocation may be used after its credentials have expired. Set it to the time
	// after which every call ends: a call may continue after its token has expired, but its browser cannot
	// change the credentials of its allocations.
	Longest time.Duration
	// Secret signs the credentials. It is the same on all nodes.
	Secret [32]byte
	// Roots are the authorities that may have signed the server's certificate. Nil means the system's
	// authorities.
	Roots *x509.CertPool

	Log *slog.Logger
}

// A Server is a TURN server.
type Server struct {
	config Config
	server *turn.Server
	works  atomic.Bool
	proof  atomic.Int64 // see proofTimeout

	mu          sync.Mutex
	allocations map[string]int // allocations by user
	networks    map[netip.Prefix]int
	all         int
	conns       map[string]*conn // connections by client address
}

// New starts a server on the listener. Clients cannot use it until [Server.Watch] has found that it
// works.
func New(c Config) (*Server, error) {
	s := &Server{
		config:      c,
		allocations: map[string]int{},
		networks:    map[netip.Prefix]int{},
		conns:       map[string]*conn{},
	}
	s.proof.Store(int64(proofTimeout))

	var err error
	s.server, err = turn.NewServer(turn.ServerConfig{
		Realm:        realm,
		AuthHandler:  s.authenticate,
		QuotaHandler: s.admit,
		EventHandler: turn.EventHandler{OnAllocationCreated: s.created, OnAllocationDeleted: s.deleted},
		ListenerConfigs: []turn.ListenerConfig{{
			Listener: &listener{
				Listener: c.Listener,
				server:   s,
				unproven: limit.Connections{Most: maxUnproven, PerNetwork: maxPerNetwork},
			},
			RelayAddressGenerator: relays{s},
			PermissionHandler:     s.permits,
		}},
		LoggerFactory: quiet{},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the TURN server: %w", err), c.Listener.Close())
	}
	return s, nil
}

// Close closes the server and all allocations.
func (s *Server) Close() error {
	s.works.Store(false)
	err := s.server.Close()
	s.mu.Lock()
	open := slices.Collect(maps.Values(s.conns))
	s.mu.Unlock()
	for _, c := range open {
		_ = c.Conn.Close() // ends its reader, and thus the allocation
	}
	return err
}

// An ICEServer is a server in the format of RTCPeerConnection (W3C WebRTC, section 4.2.4).
type ICEServer struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username"`
	Credential string   `json:"credential"`
}

// ICEServers returns the server for the holder of a token, with credentials that are valid as long
// as the token. It returns nil while the server does not work.
func (s *Server) ICEServers(holder string, expires time.Time) []ICEServer {
	if !s.works.Load() {
		return nil
	}
	username, password := s.credentials(holder, expires)
	return []ICEServer{{URLs: []string{s.config.URL}, Username: username, Credential: password}}
}

// checkEvery is the interval between checks of the server.
const checkEvery = time.Minute

// Watch checks the server now and every minute until ctx is done. It logs when the server starts or
// stops working.
func (s *Server) Watch(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		s.update(ctx, first)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// update checks the server. It logs the result of the first check, and each result that differs
// from the previous one.
func (s *Server) update(ctx context.Context, first bool) {
	err := s.Check(ctx)
	if ctx.Err() != nil {
		return
	}
	switch worked := s.works.Swap(err == nil); {
	case err == nil && !worked:
		s.config.Log.Info("clients may use the TURN server", "url", s.config.URL)
	case err != nil && (worked || first):
		s.config.Log.Warn("no client may use the TURN server, because it does not work", "url",
			s.config.URL, "error", err)
	}
}

// URL returns the server's URL for clients.
func (s *Server) URL() string { return s.config.URL }

// Allocations returns the number of allocations.
func (s *Server) Allocations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// permits reports whether a client may send to an IP address. The relay also checks the port.
func (s *Server) permits(_ net.Addr, peer net.IP) bool {
	ip, ok := netip.AddrFromSlice(peer)
	return ok && slices.ContainsFunc(s.peers(), func(a netip.AddrPort) bool { return a.Addr() == ip.Unmap() })
}

// peers returns all addresses to which clients may send.
func (s *Server) peers() []netip.AddrPort {
	addresses := slices.Clone(s.config.Own)
	if s.config.Others != nil {
		addresses = append(addresses, s.config.Others()...)
	}
	return addresses
}

// admit reports whether a user may create another allocation.
func (s *Server) admit(user, _ string, client net.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all < maxAllocations && s.allocations[user] < maxPerHolder &&
		s.networks[limit.RangeOf(addressOf(client).Addr())] < maxOfNetwork
}

func (s *Server) created(client, _ net.Addr, _, user, _ string, _ net.Addr, _ int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	s.allocations[user]++
	s.networks[limit.RangeOf(addressOf(client).Addr())]++
	if c := s.conns[client.String()]; c != nil {
		c.prove()
	}
}

func (s *Server) deleted(client, _ net.Addr, _, user, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.allocations[user]--; s.allocations[user] == 0 {
		delete(s.allocations, user)
	}
	n := limit.RangeOf(addressOf(client).Addr())
	if s.networks[n]--; s.networks[n] == 0 {
		delete(s.networks, n)
	}
	if c := s.conns[client.String()]; c != nil {
		c.unprove()
	}
}
