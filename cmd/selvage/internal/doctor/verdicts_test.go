package doctor

import (
	"testing"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/session/redis"
	"github.com/selvage/selvage/keys"
)

// wantVerdict checks the status of a finding, and that it has a remedy unless it is fine.
func wantVerdict(t *testing.T, what string, got Finding, want Verdict) {
	t.Helper()
	if got.Status != want || (got.Remedy == "") != (want == Fine) {
		t.Errorf("%s = %+v, want %s", what, got, want)
	}
}

// TestRingVerdicts shows the verdicts on several states of the key ring.
func TestRingVerdicts(t *testing.T) {
	e := &Examination{}
	e.Config.Keys.SigningRotation, e.Config.Keys.SealingRotation = config.Period(720*time.Hour),
		config.Period(24*time.Hour)
	whole := func() (all []keys.Record) {
		for _, use := range keys.Uses() {
			all = append(all, keys.Record{Use: use, State: keys.Current}, keys.Record{Use: use, State: keys.Next})
		}
		return all
	}

	since := func(seal time.Duration) keys.Status {
		now := time.Now()
		return keys.Status{Since: map[keys.Use]time.Time{keys.RS256: now, keys.ES256: now, keys.PS256: now,
			keys.EdDSA: now, keys.Seal: now.Add(-seal)}}
	}

	wantVerdict(t, "a complete ring", e.ringKeys(since(time.Hour), whole())[0], Fine)
	wantVerdict(t, "a ring that has just come due", e.ringKeys(since(24*time.Hour+time.Minute), whole())[0], Fine)
	wantVerdict(t, "an overdue ring", e.ringKeys(since(48*time.Hour), whole())[0], Warned)
	wantVerdict(t, "a ring without a next key", e.ringKeys(since(0), whole()[1:])[0], Warned)
	wantVerdict(t, "a ring under another master key", e.ringKeys(keys.Status{Err: keys.ErrMaster}, whole())[0], Broken)
}

// TestPostgresVerdicts shows the verdicts on several configurations of PostgreSQL.
func TestPostgresVerdicts(t *testing.T) {
	as := func(change func(*database.ServerReport)) *database.ServerReport {
		s := &database.ServerReport{Role: "selvage", Connections: 97, InUse: 3, Fsync: true, FullPages: true,
			SynchronousCommit: "on", Creates: true}
		change(s)
		return s
	}

	well := as(func(*database.ServerReport) {})
	wantVerdict(t, "room for 16", room(well, 16), Fine)
	wantVerdict(t, "room for 60", room(well, 60), Warned)
	wantVerdict(t, "room for 120", room(well, 120), Broken)
	wantVerdict(t, "a crowded server", room(as(func(s *database.ServerReport) { s.InUse = 95 }), 16), Warned)
	wantVerdict(t, "a role", rights(well), Fine)
	wantVerdict(t, "a superuser", rights(as(func(s *database.ServerReport) { s.Superuser = true })), Warned)
	wantVerdict(t, "a role that may not write",
		rights(as(func(s *database.ServerReport) { s.Refused = []string{"ring"} })), Broken)

	wantVerdict(t, "a safe server", safety(well), Fine)
	wantVerdict(t, "a server without fsync", safety(as(func(s *database.ServerReport) { s.Fsync = false })), Broken)
}

// TestRedisVerdicts shows the verdicts on several configurations of Redis.
func TestRedisVerdicts(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name                string
		server              redis.Server
		memory, persistence Verdict
	}{
		{"a recommended setup", redis.Server{Clock: now, Used: 10, Max: 1000, Policy: "noeviction", AOF: true},
			Fine, Fine},
		{"without a limit", redis.Server{Clock: now, Used: 10, Policy: "allkeys-lru", Save: "3600 1"}, Fine, Fine},
		{"filling up", redis.Server{Clock: now, Used: 850, Max: 1000, Policy: "noeviction", AOF: true}, Warned, Fine},
		{"full", redis.Server{Clock: now, Used: 980, Max: 1000, Policy: "noeviction"}, Broken, Warned},
		{"evicting", redis.Server{Clock: now, Used: 10, Max: 1000, Policy: "allkeys-lru", AOF: true}, Broken, Fine},
	} {
		found := redisServer(tt.server, now)
		wantVerdict(t, tt.name+": memory", found[0], tt.memory)
		wantVerdict(t, tt.name+": persistence", found[1], tt.persistence)
	}

	found := redisServer(redis.Server{Clock: now.Add(-time.Hour), AOF: true}, now)
	wantVerdict(t, "a clock that is off by an hour", found[len(found)-1], Broken)
}
