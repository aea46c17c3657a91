package media

import (
	"net"
	"strconv"
	"time"
)

// Housekeep does one round of housekeeping at the given time.
func (e *Engine) Housekeep(now time.Time) { e.doHousekeeping(now) }

// TCP returns the TCP address of an engine on loopback.
func (e *Engine) TCP() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(e.port)) }

// Unproven returns how many networks have TCP connections that belong to no section yet.
func (e *Engine) Unproven() int {
	return e.unproven.Networks()
}

// WaitForProof sets how long a new TCP connection may take to prove which transport it belongs to.
func (e *Engine) WaitForProof(d time.Duration) { e.proof.Store(int64(d)) }

// TableSizes holds how many names, addresses and checks of its own are in an engine's table.
type TableSizes struct{ Names, Addresses, Checks int }

// TableSizes returns what the engine remembers about its clients.
func (e *Engine) TableSizes() TableSizes {
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	e.table.checksMu.Lock()
	defer e.table.checksMu.Unlock()
	return TableSizes{
		Names:     len(e.table.byName),
		Addresses: len(e.table.byAddress),
		Checks:    len(e.table.checks),
	}
}

// MaxTestCalls is the maximum number of test calls at the same time.
const MaxTestCalls = maxTestCalls

// TestCallFor is the maximum duration of a test call.
const TestCallFor = testCallDuration
