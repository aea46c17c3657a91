package store

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
)

func TestOutboundUsage(t *testing.T) { EachDatabase(t, testOutboundUsage) }

// testOutboundUsage shows which calls count against the caps of a caller, a gateway and a project.
func testOutboundUsage(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	now := time.Now().UTC()
	through := func(gateway string, ago time.Duration) calls.Record {
		r := callAt("p", now.Add(-ago))
		r.Gateway = gateway
		r.Payer = r.From.SubscriberID
		r.Lines = 1
		return r
	}

	other := through("g", 90*time.Minute)
	other.From.SubscriberID = "carol"
	other.Payer = "carol"
	guest := through("h", time.Minute)
	guest.From = calls.Party{Name: "Guest"}
	guest.Guest = "token"
	guest.Payer = "token"
	saveCalls(t, s,
		ended(through("g", 2*time.Hour), calls.NormalClearing, true), // counts one minute
		ended(through("g", 30*time.Minute), calls.NoAnswer, false),
		ended(through("g", 25*time.Hour), calls.NormalClearing, true), // does not count: it began too early
		ended(other, calls.NormalClearing, true),                      // counts one minute of another caller
		through("h", time.Minute), guest, callAt("p", now))

	next := through("g", 0)
	for _, tt := range []struct {
		name    string
		gateway string
		admits  error
		want    calls.Usage
	}{
		{
			name:    "refused",
			gateway: "g",
			admits:  errors.New("over"),
			want: calls.Usage{
				Running:        1,
				ProjectRunning: 2,
				Hourly:         2,
				ProjectHourly:  3,
				Daily:          time.Minute,
				ProjectDaily:   2 * time.Minute,
			},
		},
		{
			name:    "through the busy gateway",
			gateway: "h",
			want: calls.Usage{
				Running:        1,
				ProjectRunning: 2,
				GatewayRunning: 2,
				Hourly:         2,
				ProjectHourly:  3,
				Daily:          time.Minute,
				ProjectDaily:   2 * time.Minute,
			},
		},
	} {
		next.Gateway = tt.gateway
		var got calls.Usage
		err := s.SaveOutbound(t.Context(), next, func(u calls.Usage) error {
			got = u
			return tt.admits
		})
		if got != tt.want {
			t.Errorf("%s: the usage before the call is %+v, want %+v", tt.name, got, tt.want)
		}
		if !errors.Is(err, tt.admits) {
			t.Errorf("%s: SaveOutbound = %v, want %v", tt.name, err, tt.admits)
		}

		_, err = s.FindCall(t.Context(), "p", next.ID)
		if tt.admits == nil && err != nil {
			t.Errorf("%s: FindCall of an admitted call = %v", tt.name, err)
		}
		if tt.admits != nil && err == nil {
			t.Errorf("%s: FindCall finds a call that was not admitted", tt.name)
		}
	}

	// The minutes of a call in progress count, too.
	talking := through("g", 10*time.Minute)
	talking.State, talking.Answered = calls.InCall, now.Add(-5*time.Minute)
	saveCalls(t, s, talking)
	usage, err := s.OutboundUsage(t.Context(), "p", talking.ID)
	if err != nil {
		t.Fatal(err)
	}
	if usage.Running != 3 {
		t.Errorf("%d calls of the caller are running, want 3", usage.Running)
	}
	if usage.Daily < 6*time.Minute {
		t.Errorf("the caller has talked %v, want at least 6 minutes", usage.Daily)
	}
	if usage.ProjectDaily < 7*time.Minute {
		t.Errorf("the project has talked %v, want at least 7 minutes", usage.ProjectDaily)
	}

	none, err := s.OutboundUsage(t.Context(), "p", newID())
	if err != nil || none != (calls.Usage{}) {
		t.Errorf("OutboundUsage of an unknown call = %+v, %v, want none", none, err)
	}
}

func TestOutboundTogether(t *testing.T) { EachDatabase(t, testOutboundTogether) }

// testOutboundTogether shows that only as many concurrent calls succeed as a cap permits.
func testOutboundTogether(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	over := errors.New("over")
	var admitted atomic.Int64
	var calling sync.WaitGroup
	admit := func(u calls.Usage) error {
		if u.ProjectRunning >= 3 {
			return over
		}
		return nil
	}

	for range 12 {
		calling.Go(func() {
			r := callAt("p", time.Now().UTC())
			r.Gateway = "g"
			err := s.SaveOutbound(t.Context(), r, admit)
			switch {
			case err == nil:
				admitted.Add(1)
			case !errors.Is(err, over):
				t.Error(err)
			}
		})
	}
	calling.Wait()
	if n := admitted.Load(); n != 3 {
		t.Errorf("%d calls began, want 3", n)
	}
}
