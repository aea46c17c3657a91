package top

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
)

// A span is the time between two readings of a node, or of several nodes.
type span struct {
	seconds     float64 // 0 before the second reading
	before, now samples
}

// started is the name of a metric whose value changes when a node restarts.
const started = "process_start_time_seconds"

// between returns the span between two readings of a node. If the node has restarted in between, its
// counters began at zero again, so before is empty.
func between(before, now reading) span {
	s := span{before: before.samples, now: now.samples}
	if before.err != nil || before.at.IsZero() {
		return s
	}
	s.seconds = now.at.Sub(before.at).Seconds()
	startedBefore, _ := before.samples.sum(started, nil)
	startedNow, _ := now.samples.sum(started, nil)
	if startedNow != startedBefore {
		s.before = nil
	}
	return s
}

// gauge returns the sum of gauges.
func (s span) gauge(name string, accept filter) (float64, bool) { return s.now.sum(name, accept) }

// rate returns the growth of counters per second.
func (s span) rate(name string, accept filter) (float64, bool) {
	now, ok := s.now.sum(name, accept)
	if !ok || s.seconds == 0 {
		return 0, false
	}
	before, _ := s.before.sum(name, accept)
	return max(0, now-before) / s.seconds, true
}

// quantile returns the q-quantile of the values that a histogram observed in the span. It
// interpolates between two bounds of the histogram. ok is false if nothing was observed.
func (s span) quantile(q float64, name string, accept filter) (value float64, ok bool) {
	counts := s.now.buckets(name, accept)
	for bound, count := range s.before.buckets(name, accept) {
		counts[bound] -= count
	}
	all := counts[math.Inf(1)]
	if s.seconds == 0 || all <= 0 {
		return 0, false
	}

	wanted := q * all
	var lower, below float64 // the previous bound and its count
	for _, bound := range slices.Sorted(maps.Keys(counts)) {
		count := counts[bound]
		if count < wanted {
			lower = bound
			below = count
			continue
		}
		if math.IsInf(bound, 1) {
			return lower, true // only a lower bound is known
		}
		return lower + (bound-lower)*(wanted-below)/(count-below), true
	}
	return 0, false
}

// buckets returns the cumulative counts of a histogram by upper bound.
func (s samples) buckets(name string, accept filter) map[float64]float64 {
	counts := make(map[float64]float64)
	for _, sample := range s {
		if string(sample.Metric[model.MetricNameLabel]) != name+"_bucket" || !accept(sample.Metric) {
			continue
		}
		bound, err := strconv.ParseFloat(string(sample.Metric[model.BucketLabel]), 64)
		if err == nil {
			counts[bound] += float64(sample.Value)
		}
	}
	return counts
}

// values computes all rows for one node.
func (s span) values() Values {
	v := make(Values)
	for _, row := range Rows {
		if n, ok := row.read(s); ok {
			v[row.Key] = n
		}
	}
	return v
}

// summarize computes all rows for several nodes. If the earlier values of a node could not be read, only
// its gauges count, because it is unknown when its counters grew.
func summarize(spans []span) Values {
	all := span{before: make(samples), now: make(samples)}
	for _, s := range spans {
		before := s.before
		if s.seconds == 0 {
			before = s.now
		}
		all.before.add(before)
		all.now.add(s.now)
		all.seconds = max(all.seconds, s.seconds)
	}

	// The total of a shared row is the greatest value of any node.
	v := all.values()
	for _, row := range Rows {
		if !row.shared {
			continue
		}
		delete(v, row.Key)
		for _, s := range spans {
			if n, ok := row.read(s); ok {
				v[row.Key] = max(v[row.Key], n)
			}
		}
	}
	return v
}
