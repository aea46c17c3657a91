package egress

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Limits on the lines of a Log. The author of a URL also decides how often requests to it are
// refused.
const (
	logEvery = time.Minute
	maxHosts = 20 // hosts that are logged in this time
)

// A Log logs refused addresses: each host at most once a minute, and few hosts in this time. A nil
// Log discards them.
type Log struct {
	to *slog.Logger

	mu    sync.Mutex
	until time.Time       // when hosts are forgotten
	hosts map[string]bool // hosts that were logged
}

// NewLog returns a Log that writes to a logger.
func NewLog(to *slog.Logger) *Log { return &Log{to: to} }

func (l *Log) add(ctx context.Context, host, address string) {
	if l == nil || !l.admit(host, time.Now()) {
		return
	}
	l.to.WarnContext(ctx, "refused to connect; to permit it, add the host to egress.allow",
		"host", host, "address", address)
}

// admit reports whether a host may be logged now.
func (l *Log) admit(host string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.until) {
		l.until, l.hosts = now.Add(logEvery), map[string]bool{}
	}
	if l.hosts[host] || len(l.hosts) == maxHosts {
		return false
	}
	l.hosts[host] = true
	return true
}
