package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/selvage/selvage/internal/database"
)

// databases show what databases tell of themselves, by what they hold, whenever
// metrics are asked for.
type databases map[string]func() database.Stats

// A databaseMetric is one number of each database.
type databaseMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(database.Stats) float64
}

func aboutDatabases(name, help string, kind prometheus.ValueType, read func(database.Stats) float64) databaseMetric {
	return databaseMetric{prometheus.NewDesc("selvage_database_"+name, help, []string{"holds"}, nil), kind, read}
}

var databaseMetrics = []databaseMetric{
	aboutDatabases("connections_open", "Connections to the database.", prometheus.GaugeValue, func(s database.Stats) float64 { return float64(s.Open) }),
	aboutDatabases("connections_in_use", "Connections to the database that are in use.", prometheus.GaugeValue, func(s database.Stats) float64 { return float64(s.InUse) }),
	aboutDatabases("waits_total", "Queries that waited for a connection.", prometheus.CounterValue, func(s database.Stats) float64 { return float64(s.Waits) }),
	aboutDatabases("wait_seconds_total", "Time that queries have waited for a connection.", prometheus.CounterValue, func(s database.Stats) float64 { return s.Waited.Seconds() }),
	aboutDatabases("changes_total", "Changes that were committed; several may share a commit.", prometheus.CounterValue, func(s database.Stats) float64 { return float64(s.Changes) }),
	aboutDatabases("commits_total", "Commits.", prometheus.CounterValue, func(s database.Stats) float64 { return float64(s.Commits) }),
	aboutDatabases("retries_total", "Changes that were run again since another was in their way.", prometheus.CounterValue, func(s database.Stats) float64 { return float64(s.Retries) }),
}

// Describe names the metrics.
func (d databases) Describe(to chan<- *prometheus.Desc) {
	for _, m := range databaseMetrics {
		to <- m.desc
	}
}

// Collect reads them.
func (d databases) Collect(to chan<- prometheus.Metric) {
	for holds, stats := range d {
		now := stats()
		for _, m := range databaseMetrics {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.read(now), holds)
		}
	}
}
