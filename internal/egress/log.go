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
	maxHosts = 20 // maximum number of hosts logged per logEvery
)

// A Log logs refused addresses: each host at most once a minute, and at most maxHosts hosts in this
// time. If there are more, one line says that they are not logged. A nil Log discards all
// addresses.
type Log struct {
	to *slog.Logger

	mu    sync.Mutex
	until time.Time       // when hosts are forgotten
	hosts map[string]bool // hosts that were logged
	full  bool            // a line says that more hosts are not logged
}

// NewLog returns a Log that writes to a logger.
func NewLog(to *slog.Logger) *Log { return &Log{to: to} }

func (l *Log) add(ctx context.Context, host, address string) {
	if l == nil {
		return
	}
	logs, full := l.admit(host, time.Now())
	if logs {
		l.to.WarnContext(ctx, "refused to connect; to permit it, add the host to egress.allow",
			"host", host, "address", address)
	}
	if full {
		l.to.WarnContext(ctx, "refused to connect to many hosts; more are not logged in this minute",
			"logged", maxHosts)
	}
}

// admit reports whether a host may be logged now, and whether to say that more are not logged.
func (l *Log) admit(host string, now time.Time) (logs, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.until) {
		l.until, l.hosts, l.full = now.Add(logEvery), map[string]bool{}, false
	}
	if l.hosts[host] {
		return false, false
	}
	if len(l.hosts) == maxHosts {
		full, l.full = !l.full, true
		return false, full
	}
	l.hosts[host] = true
	return true, false
}
