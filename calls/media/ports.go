package media

import (
	"errors"
	"net"
	"strconv"
	"sync"
)

// Ports is a range of UDP ports for phones. The zero value means any free port.
type Ports struct{ First, Last int }

// Count returns how many phones can have a port at the same time. RTP uses even ports (RFC 3550,
// section 11), because some phones send RTCP to the port above.
func (p Ports) Count() int { return (p.Last+1)/2 - (p.First+1)/2 }

// errNoPort is returned if all ports of the range are in use.
var errNoPort = errors.New("all ports for phones are in use")

// A portRange opens ports one after the other, so that a closed port is not reused soon. Otherwise,
// late packets of the previous call could reach the next call.
type portRange struct {
	Ports
	mu   sync.Mutex
	next int // index of the port to try next
}

// open opens a port at an address.
func (r *portRange) open(host string) (*net.UDPConn, error) {
	if r.Ports == (Ports{}) {
		return listenUDP(host, 0)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.Count()
	for range n {
		port := (r.First+1)/2*2 + 2*r.next
		r.next = (r.next + 1) % n
		if conn, err := listenUDP(host, port); err == nil {
			return conn, nil
		}
	}
	return nil, errNoPort
}

func listenUDP(host string, port int) (*net.UDPConn, error) {
	c, err := net.ListenPacket("udp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}
