package doctor

import (
	"context"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/clock"
	"github.com/selvage/selvage/internal/session/redis"
)

// inRedis checks that Redis can be used, and checks the configuration of each of its servers.
func (e *Examination) inRedis(ctx context.Context) []Finding {
	s, err := redis.Open(ctx, redis.Config{URL: string(e.Config.Sessions), Pool: 1})
	if err != nil {
		const remedy = "set --sessions as `selvage config sample` shows; put the password in SELVAGE_SESSIONS " +
			"or in the file named by SELVAGE_SESSIONS_FILE"
		return []Finding{brokenf("%s", err).withRemedy(remedy)}
	}
	defer s.Close()

	const restart = "start Redis or check its log; until then sessions are kept in the database, " +
		"and logins in progress have to start over"
	before := time.Now()
	info, err := s.Info(ctx)
	if err != nil {
		return []Finding{brokenf("%s", err).withRemedy(restart)}
	}
	if err := s.Probe(ctx); err != nil {
		return []Finding{brokenf("%s", err).withRemedy(restart)}
	}

	all := []Finding{finef("Redis %s, %s, 1 server, accepts writes", info.Servers[0].Version, info.Mode)}
	if n := len(info.Servers); n > 1 {
		all[0] = finef("Redis %s, %s, %s masters, accepts writes", info.Servers[0].Version, info.Mode, n)
	}
	for _, server := range info.Servers {
		all = append(all, redisServer(server, before)...)
	}
	return all
}

// These are percentages of the memory that a Redis server may use.
const (
	filling    = 80 // a warning above
	nearlyFull = 95 // an error above
)

// redisServer checks the memory, persistence and clock of one Redis server. asked is the time on this
// machine's clock at which the server's clock was read.
func redisServer(s redis.Server, asked time.Time) (all []Finding) {
	add := func(name string, f Finding) { all = append(all, f.of(name)) }
	used := inUnits(uint64(s.Used))
	limit := inUnits(uint64(s.Max))
	isLimited := s.Max > 0
	percent := s.Max / 100
	const grow Text = "raise maxmemory, or add masters"
	switch {
	case isLimited && s.Policy != "noeviction":
		add("memory", brokenf("%s: evicts entries when memory is full (maxmemory-policy %s), such as logins "+
			"in progress and counts of wrong passwords", s.Address, s.Policy).
			withRemedy("CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"))
	case isLimited && s.Used > nearlyFull*percent:
		add("memory", brokenf("%s: %s of %s in use; writes will soon fail", s.Address, used, limit).withRemedy(grow))
	case isLimited && s.Used > filling*percent:
		add("memory", warnedf("%s: %s of %s in use", s.Address, used, limit).withRemedy(grow))
	case isLimited:
		add("memory", finef("%s: %s of %s in use", s.Address, used, limit))
	default:
		add("memory", finef("%s: %s in use, without a limit", s.Address, used))
	}

	switch {
	case s.AOF:
		add("persistence", finef("%s: every change is stored on disk (appendonly)", s.Address))
	case s.Save == "":
		add("persistence", warnedf("%s: nothing is stored on disk: a restart ends logins in progress", s.Address).
			withRemedy("CONFIG SET appendonly yes, and the same in redis.conf"))
	default:
		add("persistence", finef("%s: snapshots are stored on disk periodically", s.Address))
	}

	ahead := asked.Sub(s.Clock).Round(time.Second)
	switch {
	case ahead > clock.Tolerated:
		add("clock", brokenf("%s: this machine's clock is %s ahead of its clock", s.Address, ahead).
			withRemedy(setClocks))
	case -ahead > clock.Tolerated:
		add("clock", brokenf("%s: this machine's clock is %s behind its clock", s.Address, -ahead).
			withRemedy(setClocks))
	}
	return all
}
