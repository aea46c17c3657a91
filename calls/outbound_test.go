package calls

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestCaps shows at which usage a call through a gateway is refused, and that negative limits
// allow any usage.
func TestCaps(t *testing.T) {
	caps := OutboundLimits{}.orDefaults()
	belowAll := Usage{
		Running:        1,
		ProjectRunning: 19,
		GatewayRunning: 9,
		Hourly:         29,
		ProjectHourly:  199,
		Daily:          2*time.Hour - 1,
		ProjectDaily:   24*time.Hour - 1,
	}
	for _, tt := range []struct {
		name string
		used Usage
		want string
	}{
		{"unused", Usage{}, ""},
		{"below all", belowAll, ""},
		{"calls of the caller", Usage{Running: 2}, reasonCallerBusy},
		{"calls of the project", Usage{ProjectRunning: 20}, reasonProjectBusy},
		{"lines of the gateway", Usage{GatewayRunning: 10}, reasonGatewayBusy},
		{"calls of the caller within an hour", Usage{Hourly: 30}, reasonCallerBusy},
		{"calls of the project within an hour", Usage{ProjectHourly: 200}, reasonProjectBusy},
		{"minutes of the caller", Usage{Daily: 2 * time.Hour}, reasonCallerDay},
		{"minutes of the project", Usage{ProjectDaily: 24 * time.Hour}, reasonProjectDay},
	} {
		if got := caps.check(tt.used, 1, 10); got != tt.want {
			t.Errorf("%s: check(%+v) = %q, want %q", tt.name, tt.used, got, tt.want)
		}
	}

	noCaps := OutboundLimits{
		Running:        -1,
		ProjectRunning: -1,
		Hourly:         -1,
		ProjectHourly:  -1,
		Daily:          -1,
		ProjectDaily:   -1,
		Longest:        -1,
	}
	heavy := Usage{
		Running:        1000,
		ProjectRunning: 1000,
		GatewayRunning: 9,
		Hourly:         1000,
		ProjectHourly:  1000,
		Daily:          1000 * time.Hour,
		ProjectDaily:   1000 * time.Hour,
	}
	if got := noCaps.orDefaults().check(heavy, 1, 10); got != "" {
		t.Errorf("without caps, check = %q, want no cap", got)
	}
}

// TestCapsWithoutStore shows that the caps on minutes hold while the usage cannot be read. Two calls
// of the caller are running, so the 40 minutes that are left are used up after 20 minutes.
func TestCapsWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBareCall(New(Config{}), "1")
		check := func(u Usage, err error) {
			k.checkCaps(u, err)
			k.capTimer.Stop() // the next check would need a store
		}
		check(Usage{Running: 2, ProjectRunning: 2, Daily: 80 * time.Minute}, nil)

		time.Sleep(20*time.Minute - time.Second)
		check(Usage{}, errors.New("the database is unavailable"))
		caps := k.calls.limits.Outbound
		if got := caps.checkDay(k.spending.now()); got != "" {
			t.Errorf("before the minutes are used up, the cap is %q, want none", got)
		}
		time.Sleep(time.Second)
		if got := caps.checkDay(k.spending.now()); got != reasonCallerDay {
			t.Errorf("after the minutes are used up, the cap is %q, want %q", got, reasonCallerDay)
		}
	})
}
