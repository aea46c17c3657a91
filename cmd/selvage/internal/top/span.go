package top

import (
	"cmp"
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

// between returns the span between two readings. If the node has restarted, its counters began at
// zero again, so the span has no earlier values.
func between(before, now reading) span {
	s := span{before: before.samples, now: now.samples}
	if before.err != nil || before.at.IsZero() {
		return s
	}
	s.seconds = now.at.Sub(before.at).Seconds()
	was, _ := before.samples.sum(started, nil)
	if is, _ := now.samples.sum(started, nil); is != was {
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
	counts := make(map[float64]float64) // cumulative counts by upper bound
	for sign, from := range map[float64]samples{1: s.now, -1: s.before} {
		for _, it := range from {
			if string(it.Metric[model.MetricNameLabel]) != name+"_bucket" || !accept(it.Metric) {
				continue
			}
			if le, err := strconv.ParseFloat(string(it.Metric[model.BucketLabel]), 64); err == nil {
				counts[le] += sign * float64(it.Value)
			}
		}
	}
	if s.seconds == 0 || counts[math.Inf(1)] <= 0 {
		return 0, false
	}

	var bounds []float64
	for le := range counts {
		bounds = append(bounds, le)
	}

	slices.SortFunc(bounds, cmp.Compare[float64])
	wanted, lower, below := q*counts[math.Inf(1)], 0.0, 0.0
	for _, le := range bounds {
		if counts[le] >= wanted && math.IsInf(le, 1) {
			return lower, true // only a lower bound is known
		}
		if counts[le] >= wanted {
			return lower + (le-lower)*(wanted-below)/(counts[le]-below), true
		}
		lower, below = le, counts[le]
	}
	return 0, false
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

// summarize computes all rows for several nodes.
func summarize(spans []span) Values {
	all := span{before: make(samples), now: make(samples)}
	for _, s := range spans {
		all.before.add(s.before)
		all.now.add(s.now)
		all.seconds = max(all.seconds, s.seconds)
	}

	v := all.values()
	for _, row := range Rows {
		if row.shared {
			delete(v, row.Key)
			for _, s := range spans {
				if n, ok := row.read(s); ok {
					v[row.Key] = max(v[row.Key], n)
				}
			}
		}
	}
	return v
}
