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
	e.Config.Keys.SigningRotation = config.Period(720 * time.Hour)
	e.Config.Keys.SealingRotation = config.Period(24 * time.Hour)

	var ring []keys.Record
	for _, use := range keys.Uses() {
		ring = append(ring, keys.Record{Use: use, State: keys.Current}, keys.Record{Use: use, State: keys.Next})
	}

	// sealingSince returns the status of a ring whose sealing key has that age. Its other keys are
	// new.
	sealingSince := func(age time.Duration) keys.Status {
		since := make(map[keys.Use]time.Time)
		for _, use := range keys.Uses() {
			since[use] = time.Now()
		}
		since[keys.Seal] = time.Now().Add(-age)
		return keys.Status{Since: since}
	}

	for _, tt := range []struct {
		name   string
		status keys.Status
		ring   []keys.Record
		want   Verdict
	}{
		{"a complete ring", sealingSince(time.Hour), ring, Fine},
		{"a ring that has just come due", sealingSince(24*time.Hour + time.Minute), ring, Fine},
		{"an overdue ring", sealingSince(48 * time.Hour), ring, Warned},
		{"a ring without a next key", sealingSince(0), ring[1:], Warned},
		{"a ring under a different master key", keys.Status{Err: keys.ErrMaster}, ring, Broken},
	} {
		wantVerdict(t, tt.name, e.ringKeys(tt.status, tt.ring)[0], tt.want)
	}
}

// TestPostgresVerdicts shows the verdicts on several configurations of PostgreSQL.
func TestPostgresVerdicts(t *testing.T) {
	as := func(change func(*database.ServerReport)) *database.ServerReport {
		s := &database.ServerReport{
			Role:              "selvage",
			Connections:       97,
			InUse:             3,
			Fsync:             true,
			FullPages:         true,
			SynchronousCommit: "on",
			Creates:           true,
		}
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
