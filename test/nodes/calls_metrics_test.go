package nodes

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// TestCallMetrics shows that the node of a call measures the call: its clients, how long they took
// to connect, and why the call ended. Nodes also count the messages between them, and measure how
// long answers take.
func TestCallMetrics(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	alice, bob := phone.Talk(here, there, "/private/bob")
	phone.HearBoth(alice, bob)
	wantMetrics(t, n.Each[0], map[string]float64{
		`selvage_calls{state="answered"}`:        1,
		`selvage_call_legs{kind="browser"}`:      2,
		`selvage_call_legs{kind="phone"}`:        0,
		`selvage_call_setup_seconds_count`:       2,
		`selvage_media_unconnected_total`:        0,
		`selvage_call_recording_lag_seconds`:     0,
		`selvage_media_packets_total{kind="lost`: 0,
	})

	bob.Hangup()
	alice.WaitEnded()
	wantMetrics(t, n.Each[0], map[string]float64{
		`selvage_calls_ended_total{cause="NORMAL_CLEARING"}`: 1,
		`selvage_call_jitter_seconds_count`:                  1,
	})
	for i, name := range []string{"received", "sent"} {
		if n := metric(t, n.Each[i], `selvage_bus_messages_total{kind="`+name+`"}`); n < 2 {
			t.Errorf("node %d has %s %v messages, want those of a call", i, name, n)
		}
	}
	if n := metric(t, n.Each[1], "selvage_bus_request_seconds_count"); n == 0 {
		t.Error("bob's node measured no answered request, although the other node has the call")
	}
}

// TestLostCallMetrics shows that the node that closes the record of a dead node's call counts the
// call.
func TestLostCallMetrics(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	_, bob := phone.Talk(here, there, "/private/bob")
	n.Each[0].Kill()
	if cause := bob.WaitEnded(); cause != "NODE_LOST" {
		t.Errorf("bob's call ended with %s, want NODE_LOST", cause)
	}
	harness.Eventually(t, soon, "the count of lost calls", func() error {
		if n := metric(t, n.Each[1], `selvage_calls_ended_total{cause="NODE_LOST"}`); n != 1 {
			return fmt.Errorf("the count is %v, want 1", n)
		}
		return nil
	})
}

// wantMetrics waits until the metrics of a server have these values. The keys of want are passed to
// metric.
func wantMetrics(t *testing.T, s *harness.Server, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		harness.Eventually(t, soon, name, func() error {
			if got := metric(t, s, name); got != value {
				return fmt.Errorf("the value is %v, want %v", got, value)
			}
			return nil
		})
	}
}

// metric returns the sum of all metrics of a server whose lines begin with name.
func metric(t *testing.T, s *harness.Server, name string) (sum float64) {
	t.Helper()
	for line := range strings.Lines(string(s.Get(t, s.Ops+"/metrics").Want(t, 200).Body)) {
		if !strings.HasPrefix(line, name) {
			continue
		}
		_, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		sum += value
	}
	return sum
}
