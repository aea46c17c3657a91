package rtpengine

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// The engine repeats a request for four seconds before it gives up and ends all calls of the daemon. A
// busy machine may have suspended the daemon for a while. A repeated request has the same cookie, so
// that the daemon repeats its reply.
const (
	repeatAfter = 250 * time.Millisecond
	repeats     = 16
	pingEvery   = time.Second
)

// maxReply is the maximum size of a UDP packet.
const maxReply = 64 << 10

var (
	errDown   = errors.New("rtpengine does not answer")
	errClosed = errors.New("the media engine is closed")
)

// A refusal is an error that the daemon returns. Its text comes from the daemon.
type refusal string

func (r refusal) Error() string { return "rtpengine refused the request: " + string(r) }

// unknownSession is the refusal for an unknown session.
const unknownSession = refusal("Unknown call-id")

// A daemon is one rtpengine. Its methods are safe for concurrent use.
type daemon struct {
	address string
	conn    *net.UDPConn
	done    <-chan struct{}
	up      atomic.Bool  // the daemon answered the last ping
	silent  atomic.Bool  // a request has timed out since the last reply
	drain   *net.UDPConn // never read: receives media that nobody hears

	mu      sync.Mutex
	waiting map[string]chan dict // waiting requests by cookie
}

// dial opens the sockets to a daemon. It sends nothing. Once done is closed, requests no longer wait
// for replies.
func dial(address string, done <-chan struct{}) (*daemon, error) {
	remote, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("finding rtpengine: %w", err)
	}
	conn, err := net.DialUDP("udp", nil, remote)
	if err != nil {
		return nil, fmt.Errorf("connecting to rtpengine: %w", err)
	}
	d := &daemon{address: address, conn: conn, done: done, waiting: map[string]chan dict{}}
	if d.drain, err = d.listen(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	_ = d.drain.SetReadBuffer(1) // the kernel's minimum; a failure costs only memory
	return d, nil
}

// listen opens a UDP port at the address from which this machine reaches the daemon.
func (d *daemon) listen() (*net.UDPConn, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: d.conn.LocalAddr().(*net.UDPAddr).IP})
	if err != nil {
		return nil, fmt.Errorf("opening a port for rtpengine: %w", err)
	}
	return conn, nil
}

// addressOf returns the address of a port that listen opened.
func addressOf(conn *net.UDPConn) netip.AddrPort {
	a := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// close closes the sockets. Waiting requests fail.
func (d *daemon) close() error { return errors.Join(d.conn.Close(), d.drain.Close()) }

// read passes replies to their requests until the daemon is closed.
func (d *daemon) read() {
	b := make([]byte, maxReply)
	for {
		n, err := d.conn.Read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error: the request times out
		}

		d.silent.Store(false)
		cookie, body, _ := bytes.Cut(b[:n], []byte(" "))
		d.mu.Lock()
		waits := d.waiting[string(cookie)]
		delete(d.waiting, string(cookie))
		d.mu.Unlock()
		if waits == nil {
			continue
		}

		reply, err := decodeDict(body)
		if err != nil {
			reply = dict{"result": "error", "error-reason": err.Error()}
		}
		waits <- reply
	}
}

// request sends a command and returns the reply. After done is closed, it sends the command once
// and returns errClosed.
func (d *daemon) request(command string, arguments dict) (dict, error) {
	message := dict{"command": command}
	for key, value := range arguments {
		message[key] = value
	}
	cookie := rand.Text()
	packet := encode([]byte(cookie+" "), message)

	replies := make(chan dict, 1)
	d.mu.Lock()
	d.waiting[cookie] = replies
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.waiting, cookie)
		d.mu.Unlock()
	}()

	for range repeats {
		if _, err := d.conn.Write(packet); errors.Is(err, net.ErrClosed) {
			return nil, errClosed
		}
		timer := time.NewTimer(repeatAfter)
		select {
		case reply := <-replies:
			timer.Stop()
			if reply.text("result") == "error" {
				return nil, refusal(reply.text("error-reason"))
			}
			return reply, nil
		case <-d.done:
			timer.Stop()
			return nil, errClosed
		case <-timer.C:
		}
	}
	d.silent.Store(true)
	return nil, errDown
}

// ping reports whether the daemon answers.
func (d *daemon) ping() bool {
	reply, err := d.request("ping", nil)
	return err == nil && reply.text("result") == "pong"
}
