package top

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// at returns a reading of metrics, taken this many seconds after the first reading.
func at(t *testing.T, seconds int, metrics string) reading {
	t.Helper()
	s, err := parse(strings.NewReader(metrics))
	if err != nil {
		t.Fatal(err)
	}
	return reading{at: time.Unix(int64(1000+seconds), 0), samples: s, state: "ready"}
}

// metricsOf returns the metrics of a process that started at the time start and has served
// requests.
func metricsOf(start, oauth, uploads, failed, queue int) string {
	return fmt.Sprintf(`process_start_time_seconds %d
selvage_webhook_queue %d
selvage_http_request_duration_seconds_bucket{route="POST /oauth/token",status="200",le="0.01"} %[3]d
selvage_http_request_duration_seconds_bucket{route="POST /oauth/token",status="200",le="0.02"} %[3]d
selvage_http_request_duration_seconds_bucket{route="POST /oauth/token",status="200",le="+Inf"} %[3]d
selvage_http_request_duration_seconds_count{route="POST /oauth/token",status="200"} %[3]d
selvage_http_request_duration_seconds_count{route="PUT /ingest/{key}/{path...}",status="201"} %d
selvage_http_request_duration_seconds_count{route="GET /login",status="503"} %d
`, start, queue, oauth, uploads, failed)
}

// TestValues computes the values of nodes between two readings. A restarted node counts from zero.
// The queues that all nodes report are not added up.
func TestValues(t *testing.T) {
	tests := []struct {
		name        string
		before, now []reading
		want        Values // expected values of all nodes
	}{
		{"first reading", []reading{{}}, []reading{at(t, 2, metricsOf(1, 10, 0, 0, 3))},
			Values{"requests": -1, "latency_p50_seconds": -1, "webhook_queue": 3}},
		{"one node", []reading{at(t, 0, metricsOf(1, 10, 2, 1, 3))}, []reading{at(t, 2, metricsOf(1, 30, 6, 2, 4))},
			Values{
				"requests":            12.5,
				"requests_oauth":      10,
				"requests_recordings": 2,
				"uploads":             2,
				"requests_pages":      .5,
				"errors":              .5,
				"refused":             0,
				"latency_p50_seconds": .005,
				"webhook_queue":       4,
			}},
		{"restarted", []reading{at(t, 0, metricsOf(1, 1000, 0, 0, 0))}, []reading{at(t, 2, metricsOf(2, 30, 0, 0, 0))},
			Values{"requests_oauth": 15}},

		{"two nodes", []reading{at(t, 0, metricsOf(1, 0, 0, 0, 0)), at(t, 0, metricsOf(1, 0, 0, 0, 0))},
			[]reading{at(t, 2, metricsOf(1, 10, 0, 0, 7)), at(t, 2, metricsOf(1, 30, 0, 0, 7))},
			Values{"requests_oauth": 20, "webhook_queue": 7}},
		{"one of two unreachable", []reading{at(t, 0, metricsOf(1, 0, 0, 0, 0)), {}},
			[]reading{at(t, 2, metricsOf(1, 10, 0, 0, 7)), {state: Unreachable, err: errors.New("refused")}},
			Values{"requests_oauth": 5, "webhook_queue": 7}},
	}

	for _, tt := range tests {
		p := compare(make([]string, len(tt.now)), tt.before, tt.now)
		got := maps.Clone(p.All)
		for key, want := range tt.want {
			if value, ok := got[key]; ok != (want >= 0) || ok && value != want {
				t.Errorf("%s: %s = %v, %v, want %v", tt.name, key, value, ok, want)
			}
		}
	}
}

// TestQuantile shows that a quantile is interpolated within its bucket. In the last bucket, it is
// the lower bound.
func TestQuantile(t *testing.T) {
	const name = "selvage_http_request_duration_seconds"
	metrics := func(first, second, all int) string {
		return fmt.Sprintf("%[1]s_bucket{route=\"GET /login\",le=\"0.1\"} %[2]d\n"+
			"%[1]s_bucket{route=\"GET /login\",le=\"0.2\"} %[3]d\n"+
			"%[1]s_bucket{route=\"GET /login\",le=\"+Inf\"} %[4]d\n", name, first, second, all)
	}

	s := between(at(t, 0, metrics(5, 5, 5)), at(t, 1, metrics(15, 25, 45)))
	for q, want := range map[float64]float64{.125: .05, .25: .1, .375: .15, .9: .2} {
		if got, ok := s.quantile(q, name, every(nil)); !ok || got < want-1e-9 || got > want+1e-9 {
			t.Errorf("quantile %v = %v, %v, want %v", q, got, ok, want)
		}
	}

	if got, ok := between(at(t, 0, metrics(5, 5, 5)), at(t, 1, metrics(5, 5, 5))).quantile(.5, name, every(nil)); ok {
		t.Errorf("the quantile without observations = %v, want none", got)
	}
}
