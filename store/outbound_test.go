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
		r.Gateway, r.Payer, r.Lines = gateway, r.From.SubscriberID, 1
		return r
	}

	other := through("g", 90*time.Minute)
	other.From.SubscriberID, other.Payer = "carol", "carol"
	guest := through("h", time.Minute)
	guest.From, guest.Guest, guest.Payer = calls.Party{Name: "Guest"}, "token", "token"
	saveCalls(t, s,
		ended(through("g", 2*time.Hour), calls.NormalClearing, true), // counts one minute
		ended(through("g", 30*time.Minute), calls.NoAnswer, false),
		ended(through("g", 25*time.Hour), calls.NormalClearing, true), // does not count: it was yesterday
		ended(other, calls.NormalClearing, true),                      // counts one minute of another caller
		through("h", time.Minute), guest, callAt("p", now))

	next := through("g", 0)
	for _, tt := range []struct {
		name    string
		gateway string
		admits  error
		want    calls.Usage
	}{
		{"refused", "g", errors.New("over"), calls.Usage{
			Running:        1,
			ProjectRunning: 2,
			Hourly:         2,
			ProjectHourly:  3,
			Daily:          time.Minute,
			ProjectDaily:   2 * time.Minute,
		}},
		{"through the busy gateway", "h", nil, calls.Usage{
			Running:        1,
			ProjectRunning: 2,
			GatewayRunning: 2,
			Hourly:         2,
			ProjectHourly:  3,
			Daily:          time.Minute,
			ProjectDaily:   2 * time.Minute,
		}},
	} {
		next.Gateway = tt.gateway
		var got calls.Usage
		err := s.SaveOutbound(t.Context(), next, func(u calls.Usage) error {
			got = u
			return tt.admits
		})
		if got != tt.want || !errors.Is(err, tt.admits) {
			t.Errorf("%s: SaveOutbound saw %+v and returned %v, want %+v and %v", tt.name, got, err, tt.want, tt.admits)
		}
		if _, err := s.FindCall(t.Context(), "p", next.ID); (err == nil) != (tt.admits == nil) {
			t.Errorf("%s: FindCall returned %v, want the call only if it was admitted", tt.name, err)
		}
	}

	// The minutes of a call in progress count, too.
	talking := through("g", 10*time.Minute)
	talking.State, talking.Answered = calls.InCall, now.Add(-5*time.Minute)
	saveCalls(t, s, talking)
	u, err := s.OutboundUsage(t.Context(), "p", talking.ID)
	if err != nil || u.Daily < 6*time.Minute || u.ProjectDaily < 7*time.Minute || u.Running != 3 {
		t.Errorf("OutboundUsage returned %+v, %v, want 3 running calls, and 6 and 7 minutes", u, err)
	}
	if u, err := s.OutboundUsage(t.Context(), "p", newID()); err != nil || u != (calls.Usage{}) {
		t.Errorf("OutboundUsage of an unknown call returned %+v, %v, want none", u, err)
	}
}

func TestOutboundTogether(t *testing.T) { EachDatabase(t, testOutboundTogether) }

// testOutboundTogether shows that only as many concurrent calls succeed as a cap permits.
func testOutboundTogether(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	over := errors.New("over")
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			r := callAt("p", time.Now().UTC())
			r.Gateway = "g"

			err := s.SaveOutbound(t.Context(), r, func(u calls.Usage) error {
				if u.ProjectRunning >= 3 {
					return over
				}
				return nil
			})
			if err == nil {
				admitted.Add(1)
			} else if !errors.Is(err, over) {
				t.Error(err)
			}
		})
	}

	all.Wait()
	if n := admitted.Load(); n != 3 {
		t.Errorf("%d calls began, want 3", n)
	}
}
