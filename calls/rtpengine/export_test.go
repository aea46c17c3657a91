package rtpengine

import (
	"errors"
	"syscall"

	"github.com/selvage/selvage/calls"
)

// Up returns the number of daemons that answered their last ping.
func (e *Engine) Up() (n int) {
	for _, d := range e.daemons {
		if d.up.Load() {
			n++
		}
	}
	return n
}

// Received asks rtpengine how many packets have arrived from the client of m.
func Received(m calls.Media) (int, error) {
	l := m.(*leg)
	l.io.Lock()
	defer l.io.Unlock()
	reply, err := l.daemon.request("query", dict{"call-id": l.session})
	return l.read(reply).received, err
}

// HasUnread reports whether the tap of m has not yet read all packets that rtpengine has sent to it.
func HasUnread(m calls.Media) (unread bool, err error) {
	l := m.(*leg)
	l.io.Lock()
	defer l.io.Unlock()
	conn, err := l.tap.conn.SyscallConn()
	if err != nil {
		return false, err
	}
	var peeked error
	err = conn.Control(func(fd uintptr) {
		_, _, peeked = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
	})
	if errors.Is(peeked, syscall.EAGAIN) {
		return false, err
	}
	return true, errors.Join(err, peeked)
}
