package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/session/failover"
	"github.com/selvage/selvage/internal/session/redis"
)

// databases collects the statistics of each database for /metrics. Its keys name the contents of
// the databases.
type databases map[string]func() database.Stats

// A databaseMetric is a metric that every database has.
type databaseMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(database.Stats) float64
}

func newDatabaseMetric(name, help string, kind prometheus.ValueType, read func(database.Stats) float64) databaseMetric {
	return databaseMetric{
		desc: prometheus.NewDesc("selvage_database_"+name, help, []string{"holds"}, nil),
		kind: kind,
		read: read,
	}
}

var databaseMetrics = []databaseMetric{
	newDatabaseMetric("connections_open", "Connections to the database.", prometheus.GaugeValue,
		func(s database.Stats) float64 { return float64(s.Open) }),
	newDatabaseMetric("connections_in_use", "Connections to the database in use.",
		prometheus.GaugeValue, func(s database.Stats) float64 { return float64(s.InUse) }),
	newDatabaseMetric("waits_total", "Queries that had to wait for a connection.", prometheus.CounterValue,
		func(s database.Stats) float64 { return float64(s.Waits) }),
	newDatabaseMetric("wait_seconds_total", "Total time that queries waited for a connection.",
		prometheus.CounterValue, func(s database.Stats) float64 { return s.Waited.Seconds() }),
	newDatabaseMetric("changes_total", "Transactions committed; several may share a commit.",
		prometheus.CounterValue, func(s database.Stats) float64 { return float64(s.Changes) }),
	newDatabaseMetric("commits_total", "Commits to the database.", prometheus.CounterValue,
		func(s database.Stats) float64 { return float64(s.Commits) }),
	newDatabaseMetric("retries_total", "Transactions retried because of a conflict.",
		prometheus.CounterValue, func(s database.Stats) float64 { return float64(s.Retries) }),
}

// Describe names the metrics.
func (d databases) Describe(to chan<- *prometheus.Desc) {
	for _, m := range databaseMetrics {
		to <- m.desc
	}
}

// Collect reads the metrics.
func (d databases) Collect(to chan<- prometheus.Metric) {
	for holds, stats := range d {
		now := stats()
		for _, m := range databaseMetrics {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.read(now), holds)
		}
	}
}

// redisSessions collects the statistics of sessions in Redis and in its fallback.
type redisSessions struct {
	redis    *redis.Store
	failover *failover.Store
}

var (
	sessionOperations = prometheus.NewDesc("selvage_session_operations_total",
		"Operations on sessions, by backend (primary is Redis, fallback the database) and result.",
		[]string{"backend", "result"}, nil)
	sessionFallback = prometheus.NewDesc(
		"selvage_session_fallback", "1 while Redis is unavailable and sessions are stored in the database, else 0.",
		nil, nil)
	redisOpen = prometheus.NewDesc(
		"selvage_redis_connections_open", "Connections to all Redis servers.", nil, nil)
	redisInUse = prometheus.NewDesc(
		"selvage_redis_connections_in_use", "Connections to Redis in use.", nil, nil)
	redisWaits = prometheus.NewDesc(
		"selvage_redis_waits_total", "Operations that had to wait for a connection to Redis.", nil, nil)
	redisWaited = prometheus.NewDesc(
		"selvage_redis_wait_seconds_total", "Total time that operations waited for a connection to Redis.", nil, nil)
)

// Describe names the metrics.
func (s redisSessions) Describe(to chan<- *prometheus.Desc) {
	to <- sessionOperations
	to <- sessionFallback
	to <- redisOpen
	to <- redisInUse
	to <- redisWaits
	to <- redisWaited
}

// Collect reads the metrics.
func (s redisSessions) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}

	for _, c := range s.failover.Stats() {
		send(sessionOperations, prometheus.CounterValue, float64(c.N), c.Backend, c.Result)
	}

	away := 0.0
	if s.failover.State().Away {
		away = 1
	}
	send(sessionFallback, prometheus.GaugeValue, away)

	stats := s.redis.Stats()
	send(redisOpen, prometheus.GaugeValue, float64(stats.Open))
	send(redisInUse, prometheus.GaugeValue, float64(stats.Open-stats.Idle))
	send(redisWaits, prometheus.CounterValue, float64(stats.Waits))
	send(redisWaited, prometheus.CounterValue, stats.Waited.Seconds())
}
