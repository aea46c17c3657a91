package main

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A crowd is a measurement of many idle WebSockets.
type crowd struct {
	Sockets int     `json:"sockets"`
	MiB     float64 `json:"mib"`         // memory of the whole server process
	Connect float64 `json:"connect_ms"`  // CPU milliseconds for opening and authenticating one WebSocket
	Idle    float64 `json:"idle_of_cpu"` // fraction of a core that all idle WebSockets need
}

// manySockets is the number of WebSockets that a node should be able to hold.
const manySockets = 10_000

// sockets opens many WebSockets to a separate server and leaves them idle.
func sockets(p *harness.Program, s settings, prefix []string) *crowd {
	const name = "idle sockets"
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Max < manySockets+100 {
		p.Logf("%s are not measured, because a process may open only %d files", name, files.Max)
		return nil
	}
	if !s.only.MatchString(name) {
		return nil
	}

	p.Logf("%s, %d", name, manySockets)
	server := harness.StartConfig(p, harness.Config{
		Prefix: prefix,
		Env: []string{
			procs, "SELVAGE_LIMITS__RELAY_SOCKETS=0", "SELVAGE_LIMITS__RELAY_UNAUTHENTICATED=0",
		},
	})
	sat := server.NewProject(p).NewSAT(p, "crowd")

	before := cpu(p, server.PID())
	var lost atomic.Int64
	openSockets(p, server, sat.Token, &lost)
	c := &crowd{Sockets: manySockets, Connect: milliseconds(cpu(p, server.PID())-before) / manySockets}

	before, began := cpu(p, server.PID()), time.Now()
	time.Sleep(10 * s.length) // the server pings each WebSocket every ten seconds
	c.Idle = float64(cpu(p, server.PID())-before) / float64(time.Since(began))
	c.MiB = residentMiB(p, server.PID())

	if n := lost.Load(); n > 0 {
		p.Fatalf("%s: %d were closed during the measurement", name, n)
	}
	return c
}

// openSockets opens many WebSockets, several at a time, and keeps all of them open.
func openSockets(p *harness.Program, server *harness.Server, token string, lost *atomic.Int64) {
	const workers = 25
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for range manySockets / workers {
				socket, status, err := server.TryDial()
				if err != nil || socket == nil {
					p.Fatalf("opening a socket: %d, %v", status, err)
				}

				r, err := socket.TryCall(
					"signalwire.connect", map[string]any{"authentication": map[string]string{"jwt_token": token}})
				if err != nil || r.Error != nil {
					p.Fatalf("signalwire.connect: %+v, %v", r.Error, err)
				}

				go func() {
					socket.Closed() // answers pings until the WebSocket is closed
					lost.Add(1)
				}()
			}
		})
	}
	work.Wait()
}
