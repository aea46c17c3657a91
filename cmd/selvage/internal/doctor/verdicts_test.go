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
	if got.Status != want {
		t.Errorf("%s = %+v, want %s", what, got, want)
	}
	if want == Fine && got.Remedy != "" {
		t.Errorf("%s has the remedy %q, want none", what, got.Remedy)
	}
	if want != Fine && got.Remedy == "" {
		t.Errorf("%s = %+v, want a remedy", what, got)
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

	// sealingSince returns the status of a ring with a sealing key of the given age, and other keys that
	// are new.
	sealingSince := func(age time.Duration) keys.Status {
		since := make(map[keys.Use]time.Time)
		for _, use := range keys.Uses() {
			since[use] = time.Now()
		}
		since[keys.Seal] = time.Now().Add(-age)
		return keys.Status{Since: since}
	}

	dueSince := 24*time.Hour + time.Minute
	wantVerdict(t, "a complete ring", e.ringKeys(sealingSince(time.Hour), ring)[0], Fine)
	wantVerdict(t, "a ring that has just come due", e.ringKeys(sealingSince(dueSince), ring)[0], Fine)
	wantVerdict(t, "an overdue ring", e.ringKeys(sealingSince(48*time.Hour), ring)[0], Warned)
	wantVerdict(t, "a ring without a current key", e.ringKeys(sealingSince(0), ring[1:])[0], Warned)

	wrongMaster := keys.Status{Err: keys.ErrMaster}
	wantVerdict(t, "a ring under a different master key", e.ringKeys(wrongMaster, ring)[0], Broken)
}

// TestPostgresVerdicts shows the verdicts on several configurations of PostgreSQL.
func TestPostgresVerdicts(t *testing.T) {
	well := database.ServerReport{
		Role:              "selvage",
		Connections:       97,
		InUse:             3,
		Fsync:             true,
		FullPages:         true,
		SynchronousCommit: "on",
		Creates:           true,
	}
	crowded := well
	crowded.InUse = 95
	superuser := well
	superuser.Superuser = true
	reader := well
	reader.Refused = []string{"ring"}
	unsafe := well
	unsafe.Fsync = false

	wantVerdict(t, "room for 16", checkConnections(&well, 16), Fine)
	wantVerdict(t, "room for 60", checkConnections(&well, 60), Warned)
	wantVerdict(t, "room for 120", checkConnections(&well, 120), Broken)
	wantVerdict(t, "a crowded server", checkConnections(&crowded, 16), Warned)

	wantVerdict(t, "a role", checkRole(&well), Fine)
	wantVerdict(t, "a superuser", checkRole(&superuser), Warned)
	wantVerdict(t, "a role that may not write", checkRole(&reader), Broken)

	wantVerdict(t, "a safe server", checkDurability(&well), Fine)
	wantVerdict(t, "a server without fsync", checkDurability(&unsafe), Broken)
}

// TestRedisVerdicts shows the verdicts on several configurations of Redis.
func TestRedisVerdicts(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name                string
		server              redis.Server
		memory, persistence Verdict
	}{
		{
			name:        "a recommended setup",
			server:      redis.Server{Used: 10, Max: 1000, Policy: "noeviction", AOF: true},
			memory:      Fine,
			persistence: Fine,
		},
		{
			name:        "without a limit",
			server:      redis.Server{Used: 10, Policy: "allkeys-lru", Save: "3600 1"},
			memory:      Fine,
			persistence: Fine,
		},
		{
			name:        "filling up",
			server:      redis.Server{Used: 850, Max: 1000, Policy: "noeviction", AOF: true},
			memory:      Warned,
			persistence: Fine,
		},
		{
			name:        "full",
			server:      redis.Server{Used: 980, Max: 1000, Policy: "noeviction"},
			memory:      Broken,
			persistence: Warned,
		},
		{
			name:        "evicting",
			server:      redis.Server{Used: 10, Max: 1000, Policy: "allkeys-lru", AOF: true},
			memory:      Broken,
			persistence: Fine,
		},
	}
	for _, tt := range tests {
		tt.server.Clock = now
		found := redisServer(tt.server, now)
		wantVerdict(t, tt.name+": memory", found[0], tt.memory)
		wantVerdict(t, tt.name+": persistence", found[1], tt.persistence)
	}

	found := redisServer(redis.Server{Clock: now.Add(-time.Hour), AOF: true}, now)
	wantVerdict(t, "a clock that is off by an hour", found[len(found)-1], Broken)
}
