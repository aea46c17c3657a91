package failover

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/selvage/selvage/test/servers"
)

// A wire forwards connections to a server.
type wire struct {
	URL   string
	mu    sync.Mutex
	deaf  bool // answers are dropped
	cut   bool // connections are closed, and new ones fail
	conns []net.Conn
}

func newWire(t testing.TB, r *servers.RedisServer) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	w := &wire{URL: "redis://" + l.Addr().String()}
	t.Cleanup(func() {
		_ = l.Close()
		w.Cut()
	})
	go w.accept(l, fmt.Sprintf("127.0.0.1:%d", r.Port))
	return w
}

// accept forwards the connections of a listener to the server, until the listener is closed.
func (w *wire) accept(l net.Listener, server string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", server)
		if err != nil {
			_ = from.Close()
			continue
		}

		w.mu.Lock()
		w.conns = append(w.conns, from, to)
		if w.cut {
			_, _ = from.Close(), to.Close()
		}
		w.mu.Unlock()

		go w.carry(to, from, false)
		go w.carry(from, to, true)
	}
}

// carry forwards bytes from one connection to the other, until one of them is closed. answers says whether
// the bytes are answers of the server, which are dropped while the wire is deaf.
func (w *wire) carry(to, from net.Conn, answers bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		w.mu.Lock()
		drop := answers && w.deaf
		w.mu.Unlock()

		if n > 0 && !drop {
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}

// Cut closes all connections, and makes new ones fail immediately.
func (w *wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

// Deafen makes the wire drop answers, but not commands.
func (w *wire) Deafen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf = true
}

// Mend makes the wire work again.
func (w *wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.deaf = false, false
}
