package rtpengine_test

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/line"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/rtpengine"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/test/servers"
)

// A deafDaemon answers pings until the first other command. From then on, it answers nothing, and
// reports pings and other commands over its channels.
type deafDaemon struct {
	address string
	pinged  chan struct{} // receives a value for each ping, unless one is waiting
	called  chan struct{} // receives a value for each other command, unless one is waiting
}

func newDeafDaemon(t *testing.T) deafDaemon {
	t.Helper()
	conn := newSocket(t)
	d := deafDaemon{
		address: conn.LocalAddr().String(),
		pinged:  make(chan struct{}, 1),
		called:  make(chan struct{}, 1),
	}
	d.answerOn(t, conn)
	return d
}

// newSocket returns a socket on which nothing answers yet. It is closed at the end of the test.
func newSocket(t *testing.T) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// answerOn answers on conn until the end of the test.
func (d deafDaemon) answerOn(t *testing.T, conn *net.UDPConn) {
	var group sync.WaitGroup
	t.Cleanup(func() {
		_ = conn.Close()
		group.Wait()
	})
	group.Go(func() { d.listen(conn) })
}

// listen receives requests until conn is closed.
func (d deafDaemon) listen(conn *net.UDPConn) {
	b := make([]byte, 64<<10)
	deaf := false
	for {
		n, from, err := conn.ReadFromUDP(b)
		if err != nil {
			return
		}
		reports := d.pinged
		if isPing := bytes.Contains(b[:n], []byte("7:command4:ping")); !isPing {
			reports = d.called
			deaf = true
		}
		if !deaf {
			cookie, _, _ := bytes.Cut(b[:n], []byte(" "))
			_, _ = conn.WriteToUDP(append(bytes.Clone(cookie), " d6:result4:ponge"...), from)
			continue
		}
		select {
		case reports <- struct{}{}:
		default:
		}
	}
}

// engineOf returns an engine for daemons, all of which answer. It is closed at the end of the test.
func engineOf(t *testing.T, addresses ...string) *rtpengine.Engine {
	t.Helper()
	e := start(t, addresses...)
	waitUntilUp(t, e, len(addresses))
	return e
}

// start returns an engine for daemons, which may not answer yet. It is closed at the end of the test.
func start(t *testing.T, addresses ...string) *rtpengine.Engine {
	t.Helper()
	rooms, err := media.New(media.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rooms.Close() })
	e, err := rtpengine.New(rtpengine.Config{Addresses: addresses, Rooms: rooms})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestLateDaemon shows that an engine starts although its daemon does not answer. The engine refuses
// calls until the daemon answers.
func TestLateDaemon(t *testing.T) {
	conn := newSocket(t)
	e := start(t, conn.LocalAddr().String())
	if err := e.Check(); !errors.Is(err, problem.Unavailable) {
		t.Errorf("before the daemon answers, Check = %v, want an error of kind Unavailable", err)
	}
	_, _, err := e.Answer(newWatcher(), line.Description(), calls.Terms{})
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("before the daemon answers, Answer = %v, want an error of kind Unavailable", err)
	}

	deafDaemon{}.answerOn(t, conn)
	waitUntilUp(t, e, 1)
	if err := e.Check(); err != nil {
		t.Errorf("once the daemon answers, Check = %v, want no error", err)
	}
}

// TestSilentDaemon shows that after one request without a reply, new calls use the next daemon.
func TestSilentDaemon(t *testing.T) {
	deaf, live := newDeafDaemon(t), servers.OwnRTPEngine(t)
	e := engineOf(t, deaf.address, live.Address)
	if _, _, err := e.Answer(newWatcher(), line.Description(), calls.Terms{}); err == nil {
		t.Fatal("Answer by a daemon that does not reply succeeds, want an error")
	}
	if _, _, err := e.Answer(newWatcher(), line.Description(), calls.Terms{}); err != nil {
		t.Errorf("after the first daemon fell silent, Answer = %v, want no error", err)
	}
}

// TestCloseWhileWaiting shows that Close ends requests that wait for a reply.
func TestCloseWhileWaiting(t *testing.T) {
	deaf := newDeafDaemon(t)
	e := engineOf(t, deaf.address)
	answered := make(chan error, 1)
	go func() {
		_, _, err := e.Answer(newWatcher(), line.Description(), calls.Terms{})
		answered <- err
	}()
	wait(t, "the request", deaf.called)
	wait(t, "a ping after the request", deaf.pinged)
	if err := e.Close(); err != nil {
		t.Errorf("Close = %v, want no error", err)
	}
	const closed = "the media engine is closed"
	if err := wait(t, "the answer", answered); err == nil || err.Error() != closed {
		t.Errorf("during Close, Answer = %v, want the error %q", err, closed)
	}
}
