package media_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
)

// TestNothingLeft shows that legs release all resources, no matter how they end.
func TestNothingLeft(t *testing.T) {
	const legs = 1000
	e := newEngine(t)

	// The first leg starts what the engine keeps for later legs.
	first := newLight(t, e, lightOffer(""))
	must(t, first.connect())
	first.close()
	waitFor(t, "the first leg to end", func() bool { return e.Stats().Legs == 0 })
	goroutines, files := runtime.NumGoroutine(), openFiles(t)

	for i := range legs {
		c := newLight(t, e, lightOffer(""))
		switch i % 8 {
		case 0: // a whole call
			c.leg.Link(calls.Audio, c.leg)
			must(t, c.connect())
			c.write(c.packet("hello"))
			c.leg.SendDigits("1")
		case 1: // a client that disappears during the handshake
			c.completeICE()
			c.sendHandshake()
		case 2: // a client that completes only ICE
			c.completeICE()
		case 3: // a callee that never answers
			callee, _, err := e.Offer(newWatcher(), c.leg, calls.Terms{})
			must(t, err)
			c.leg.Link(calls.Audio, callee)
			callee.Close()
		default: // half of the clients send nothing
		}
		c.close()
	}

	waitFor(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := openFiles(t); now > files {
		t.Errorf("%d files are open, want at most %d, as before the calls", now, files)
	}
	if got := e.TableSizes(); got != (media.TableSizes{}) {
		t.Errorf("the engine's table contains %+v, want nothing", got)
	}
	stats := e.Stats()
	if stats.Legs != 0 {
		t.Errorf("%d legs are open, want none", stats.Legs)
	}
	if stats.Sections != 0 {
		t.Errorf("%d sections are open, want none", stats.Sections)
	}
}

// TestClose shows that closing an engine with open legs releases all resources.
func TestClose(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	e, err := media.New(media.Config{Listen: "127.0.0.1:0"})
	must(t, err)
	var clients []*light
	for range 10 {
		c := newLight(t, e, lightOffer(""))
		must(t, c.connect())
		clients = append(clients, c)
	}

	must(t, e.Close())
	must(t, e.Close()) // closing it again has no effect
	if _, _, err := e.Answer(newWatcher(), lightOffer(""), calls.Terms{}); err == nil {
		t.Error("a closed engine answers")
	}

	for _, c := range clients {
		c.close()
	}
	waitFor(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// openFiles returns the number of open files and sockets of the process.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	return len(entries)
}
