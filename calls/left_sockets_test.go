package calls

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestLeftSocket shows that a leg keeps the newest socket of its client, even if a command from the former
// socket is carried out while the client reconnects. The two goroutines take one step at a time, so that
// they use the same leg at the same time.
func TestLeftSocket(t *testing.T) {
	newest := Client{Socket: Socket{ID: "newest"}}
	legs := make([]leg, 1000)
	for range 100 {
		var left leftSockets
		former := func(i int) Client { return Client{Socket: Socket{ID: strconv.Itoa(i)}} }
		command := func(i int) { left.use(former(i), &legs[i]) }
		reconnect := func(i int) {
			left.add(former(i).Socket, newest)
			left.assign(newest, &legs[i])
		}
		var commands, moves atomic.Int64
		var work sync.WaitGroup
		work.Go(func() { inStep(&commands, &moves, len(legs), command) })
		work.Go(func() { inStep(&moves, &commands, len(legs), reconnect) })
		work.Wait()

		for i := range legs {
			if got := legs[i].at.Load().(Socket); got != newest.Socket {
				t.Fatalf("leg %d has the socket %q, want %q", i, got.ID, newest.Socket.ID)
			}
		}
	}
}

// inStep calls f n times. Before each call, it waits until the other goroutine has begun this step, too.
func inStep(own, other *atomic.Int64, n int, f func(i int)) {
	for i := range n {
		own.Add(1)
		for other.Load() <= int64(i) {
			runtime.Gosched()
		}
		f(i)
	}
}

// TestLeftSockets shows that the sockets that a client has left lead to its last socket, even if a node
// learns of them out of order. They are forgotten after a while, and their number is limited.
func TestLeftSockets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left leftSockets
		first := Client{Socket: Socket{ID: "1"}}
		second := Client{Socket: Socket{ID: "2"}}
		third := Client{Socket: Socket{ID: "3"}}
		left.add(second.Socket, third)
		left.add(first.Socket, second)
		if got := left.find(first); got != third.Socket {
			t.Errorf("the client has the socket %q, want %q", got.ID, third.Socket.ID)
		}

		time.Sleep(leftFor) // the clock of synctest
		if got := left.find(first); got != first.Socket {
			t.Errorf("after %v, a command moves a leg to the socket %q, want %q", leftFor, got.ID, first.Socket.ID)
		}
		for i := range 2 * maxLeft {
			left.add(Socket{ID: strconv.Itoa(i)}, first)
		}
		if n := len(left.newer) + len(left.former); n > maxLeft {
			t.Errorf("%d sockets are remembered, want at most %d", n, maxLeft)
		}
	})
}
