// Package network simulates a network between clients and the media port of a server. It can lose
// and delay packets, block UDP, and change clients' addresses, like a NAT that forgets them.
// [Isolate] runs a test in a network namespace.
package network

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// loopback is the address at which clients on loopback reach a network. On Linux, all addresses in
// 127.0.0.0/8 are loopback addresses.
const loopback = "127.0.0.2"

// A Network forwards UDP and TCP between clients and a media port. Its faults can be changed at any
// time.
type Network struct {
	server string // host:port
	udp    *net.UDPConn
	tcp    net.Listener

	mu     sync.Mutex
	random *rand.Rand
	faults Faults
	ways   map[netip.AddrPort]*net.UDPConn // sockets to the server, by client
	conns  map[net.Conn]bool
	back   int // the result of Returned
	closed bool
}

// Faults describes what happens to UDP packets, in each direction, and to new connections.
type Faults struct {
	Blocked bool          // no packet arrives
	Lost    float64       // fraction of packets that are lost
	Delay   time.Duration // delay of each packet
	Jitter  time.Duration // maximum additional random delay, which lets packets overtake each other
	NoTCP   bool          // new connections are closed immediately
}

// Open returns a network on loopback in front of a media port on which nothing listens yet. args
// are the arguments of a server that uses this network and port.
func Open(t harness.T) (n *Network, args []string) {
	t.Helper()
	return OpenAt(t, loopback, "127.0.0.1")
}

// OpenAt is like [Open], for clients that do not use loopback addresses. host is the address of the
// network, and server is the address of the server.
func OpenAt(t harness.T, host, server string) (n *Network, args []string) {
	t.Helper()
	port := harness.FreePort(t)
	outside := &net.UDPAddr{IP: net.ParseIP(host), Port: port}
	n = &Network{
		server: netip.AddrPortFrom(netip.MustParseAddr(server), uint16(port)).String(),
		random: rand.New(rand.NewPCG(1, 2)),
		ways:   map[netip.AddrPort]*net.UDPConn{},
		conns:  map[net.Conn]bool{},
	}

	var err error
	if n.udp, err = net.ListenUDP("udp4", outside); err != nil {
		t.Fatalf("opening a network: %v", err)
	}
	if n.tcp, err = net.Listen("tcp4", outside.String()); err != nil {
		t.Fatalf("opening a network: %v", err)
	}
	t.Cleanup(n.close)
	go n.forwardUDP()
	go n.forwardTCP()
	return n, []string{"--listen-media", n.server, "--media-address", host}
}

func (n *Network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	_ = n.udp.Close()
	_ = n.tcp.Close()
	for _, way := range n.ways {
		_ = way.Close()
	}
	for c := range n.conns {
		_ = c.Close()
	}
}

// Set changes the faults.
func (n *Network) Set(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
}

// Rebind changes the addresses of all clients from the server's point of view. Packets to the old
// addresses are lost.
func (n *Network) Rebind() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for client, way := range n.ways {
		_ = way.Close()
		delete(n.ways, client)
	}
	n.back = 0
}

// Returned returns the number of UDP packets that the server has sent to clients since the last
// [Network.Rebind].
func (n *Network) Returned() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.back
}

// forwardUDP forwards packets from clients.
func (n *Network) forwardUDP() {
	b := make([]byte, 2048)
	for {
		size, client, err := n.udp.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		packet := append([]byte(nil), b[:size]...)
		if way := n.way(client); way != nil {
			n.send(func() { _, _ = way.Write(packet) }) // the network may lose any packet
		}
	}
}

// way returns the socket that sends a client's packets to the server, or nil.
func (n *Network) way(client netip.AddrPort) *net.UDPConn {
	n.mu.Lock()
	defer n.mu.Unlock()
	if way := n.ways[client]; way != nil || n.closed {
		return way
	}
	c, err := net.Dial("udp4", n.server)
	if err != nil {
		return nil
	}
	way := c.(*net.UDPConn)
	n.ways[client] = way
	go n.backward(way, client)
	return way
}

// backward forwards the server's packets to a client.
func (n *Network) backward(way *net.UDPConn, client netip.AddrPort) {
	b := make([]byte, 2048)
	for {
		size, err := way.Read(b)
		if n.isOver(way, client, err == nil) {
			return
		}
		if err != nil {
			continue // for example, because the server refused a packet
		}
		packet := append([]byte(nil), b[:size]...)
		n.send(func() { _, _ = n.udp.WriteToUDPAddrPort(packet, client) }) // the network may lose any packet
	}
}

// isOver reports whether the socket way is no longer in use. If it is still in use and a packet has
// arrived on it (came is true), isOver counts the packet as returned.
func (n *Network) isOver(way *net.UDPConn, client netip.AddrPort, came bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.ways[client] != way {
		return true
	}
	if came {
		n.back++
	}
	return false
}

// send calls the function that sends a packet after the network's delay, unless the packet is lost.
func (n *Network) send(send func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.faults.Blocked || n.random.Float64() < n.faults.Lost {
		return
	}
	delay := n.faults.Delay
	if n.faults.Jitter > 0 {
		delay += time.Duration(n.random.Int64N(int64(n.faults.Jitter)))
	}
	if delay == 0 {
		send()
		return
	}
	time.AfterFunc(delay, send)
}

// forwardTCP forwards connections.
func (n *Network) forwardTCP() {
	for {
		client, err := n.tcp.Accept()
		if err != nil {
			return
		}

		server, err := n.dialTCP()
		if err != nil {
			_ = client.Close()
			continue
		}

		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			n.keep(pair[0])
			go func() {
				_, _ = io.Copy(pair[0], pair[1]) // either side may end at any time
				n.drop(pair[0])
				n.drop(pair[1])
			}()
		}
	}
}

// dialTCP connects to the server, unless TCP is blocked.
func (n *Network) dialTCP() (net.Conn, error) {
	n.mu.Lock()
	blocked := n.faults.NoTCP
	n.mu.Unlock()
	if blocked {
		return nil, errors.New("connections are blocked")
	}
	return net.Dial("tcp4", n.server)
}

// keep stores a connection, so that it is closed at the end.
func (n *Network) keep(c net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[c] = true
	if n.closed {
		_ = c.Close()
	}
}

func (n *Network) drop(c net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
	_ = c.Close()
}
