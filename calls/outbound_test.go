package calls

import (
	"testing"
	"time"
)

// TestCaps shows for which usage a call through a gateway is refused, and that negative limits
// allow any usage.
func TestCaps(t *testing.T) {
	caps := OutboundLimits{}.orDefaults()
	for _, tt := range []struct {
		name string
		used Usage
		want string
	}{
		{"unused", Usage{}, ""},
		{"below all", Usage{1, 19, 9, 29, 199, 2*time.Hour - 1, 24*time.Hour - 1}, ""},
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

	none := OutboundLimits{-1, -1, -1, -1, -1, -1, -1}.orDefaults()
	if got := none.check(Usage{1000, 1000, 9, 1000, 1000, 1000 * time.Hour, 1000 * time.Hour}, 1, 10); got != "" {
		t.Errorf("without limits, check = %q, want no cap", got)
	}
}
