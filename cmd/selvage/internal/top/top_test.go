package top

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// readAt returns a reading of metrics, taken this many seconds after the first reading.
func readAt(t *testing.T, seconds int, metrics string) reading {
	t.Helper()
	s, err := parse(strings.NewReader(metrics))
	if err != nil {
		t.Fatal(err)
	}
	return reading{at: time.Unix(int64(1000+seconds), 0), samples: s, state: "ready"}
}

// A process has served some requests since its start.
type process struct {
	start   int // in seconds
	oauth   int // requests for tokens, each of which took at most 10ms
	uploads int
	failed  int // requests with status 503
	queue   int // length of the queue of webhooks
}

// readAt returns a reading of the metrics of p.
func (p process) readAt(t *testing.T, seconds int) reading {
	t.Helper()
	return readAt(t, seconds, fmt.Sprintf(`process_start_time_seconds %d
selvage_webhook_queue %d
selvage_http_request_duration_seconds_bucket{route="POST /oauth/token",status="200",le="0.01"} %[3]d
selvage_http_request_duration_seconds_bucket{route="POST /oauth/token",status="200",le="0.02"} %[3]d
selvage_http_request_duration_seconds_bucket{route="POST /oauth/token",status="200",le="+Inf"} %[3]d
selvage_http_request_duration_seconds_count{route="POST /oauth/token",status="200"} %[3]d
selvage_http_request_duration_seconds_count{route="PUT /ingest/{key}/{path...}",status="201"} %d
selvage_http_request_duration_seconds_count{route="GET /login",status="503"} %d
`, p.start, p.queue, p.oauth, p.uploads, p.failed))
}

// TestValues computes the values of nodes between two readings. A restarted node counts from zero. All
// nodes report the same queues, so their lengths are not added up.
func TestValues(t *testing.T) {
	unused := process{start: 1}.readAt(t, 0)
	tests := []struct {
		name        string
		before, now []reading
		want        Values   // some of the values for all nodes
		missing     []string // keys without a value
	}{
		{
			name:    "first reading",
			before:  []reading{{}},
			now:     []reading{process{start: 1, oauth: 10, queue: 3}.readAt(t, 2)},
			want:    Values{"webhook_queue": 3},
			missing: []string{"requests", "latency_p50_seconds"},
		},
		{
			name:   "one node",
			before: []reading{process{start: 1, oauth: 10, uploads: 2, failed: 1, queue: 3}.readAt(t, 0)},
			now:    []reading{process{start: 1, oauth: 30, uploads: 6, failed: 2, queue: 4}.readAt(t, 2)},
			want: Values{
				"requests":            12.5,
				"requests_oauth":      10,
				"requests_recordings": 2,
				"uploads":             2,
				"requests_pages":      .5,
				"errors":              .5,
				"refused":             0,
				"latency_p50_seconds": .005,
				"webhook_queue":       4,
			},
		},
		{
			name:   "restarted",
			before: []reading{process{start: 1, oauth: 1000}.readAt(t, 0)},
			now:    []reading{process{start: 2, oauth: 30}.readAt(t, 2)},
			want:   Values{"requests_oauth": 15},
		},
		{
			name:   "two nodes",
			before: []reading{unused, unused},
			now: []reading{
				process{start: 1, oauth: 10, queue: 7}.readAt(t, 2),
				process{start: 1, oauth: 30, queue: 7}.readAt(t, 2),
			},
			want: Values{"requests_oauth": 20, "webhook_queue": 7},
		},
		{
			name:   "one of two unreachable",
			before: []reading{unused, {}},
			now: []reading{
				process{start: 1, oauth: 10, queue: 7}.readAt(t, 2),
				{state: Unreachable, err: errors.New("refused")},
			},
			want: Values{"requests_oauth": 5, "webhook_queue": 7},
		},
		{
			name:   "one of two reachable again",
			before: []reading{unused, {at: unused.at, state: Unreachable, err: errors.New("refused")}},
			now: []reading{
				process{start: 1, oauth: 10, queue: 7}.readAt(t, 2),
				process{start: 1, oauth: 1000, queue: 8}.readAt(t, 2),
			},
			want: Values{"requests_oauth": 5, "latency_p50_seconds": .005, "webhook_queue": 8},
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			urls := make([]string, len(tt.now))
			got := compare(urls, tt.before, tt.now).All
			for key, want := range tt.want {
				if value, ok := got[key]; !ok || value != want {
					t.Errorf("%s = %v (present: %t), want %v", key, value, ok, want)
				}
			}
			for _, key := range tt.missing {
				if value, ok := got[key]; ok {
					t.Errorf("%s = %v, want no value", key, value)
				}
			}
		})
	}
}

// TestQuantile shows that a quantile is interpolated within its bucket. In the last bucket, it is
// the lower bound.
func TestQuantile(t *testing.T) {
	const name = "selvage_http_request_duration_seconds"
	durations := func(seconds, upTo100ms, upTo200ms, all int) reading {
		return readAt(t, seconds, fmt.Sprintf(`%[1]s_bucket{route="GET /login",le="0.1"} %[2]d
%[1]s_bucket{route="GET /login",le="0.2"} %[3]d
%[1]s_bucket{route="GET /login",le="+Inf"} %[4]d
`, name, upTo100ms, upTo200ms, all))
	}

	before := durations(0, 5, 5, 5)
	s := between(before, durations(1, 15, 25, 45))
	const tolerance = 1e-9
	for q, want := range map[float64]float64{.125: .05, .25: .1, .375: .15, .9: .2} {
		got, ok := s.quantile(q, name, every(nil))
		if !ok || math.Abs(got-want) > tolerance {
			t.Errorf("quantile %v = %v (present: %t), want %v", q, got, ok, want)
		}
	}

	s = between(before, durations(1, 5, 5, 5))
	if got, ok := s.quantile(.5, name, every(nil)); ok {
		t.Errorf("the quantile without observations = %v, want none", got)
	}
}
