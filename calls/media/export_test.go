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

// Known returns how many names, addresses and own checks are in the engine's table.
func (e *Engine) Known() (names, addresses, checks int) {
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	e.table.checksMu.Lock()
	defer e.table.checksMu.Unlock()
	return len(e.table.byName), len(e.table.byAddress), len(e.table.checks)
}

// MaxTestCalls is the maximum number of test calls at the same time.
const MaxTestCalls = maxTestCalls

// TestCallFor is the maximum duration of a test call.
const TestCallFor = testCallDuration
