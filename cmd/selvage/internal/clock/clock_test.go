package clock

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestClock shows which differences cause a warning, make the server unready, or prevent a start.
func TestClock(t *testing.T) {
	tests := []struct {
		ahead          time.Duration
		refused        bool
		warns, unready string // the expected messages; "" for none
	}{
		{0, false, "", ""},
		{time.Minute, false, "", ""},
		{-time.Minute, false, "", ""},
		{61 * time.Second, false, "1m1s ahead of the database's", "1m1s ahead of"},
		{-5 * time.Minute, false, "5m0s behind the database's", "5m0s behind"},
		{301 * time.Second, true, "", "5m1s ahead of"},
		{-time.Hour, true, "", "1h0m0s behind"},
	}

	synctest.Test(t, func(t *testing.T) {
		for _, tt := range tests {
			var log bytes.Buffer
			c := Source(func(context.Context) (time.Time, error) { return time.Now().Add(-tt.ahead), nil })
			err := c.Check(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
			if (err != nil) != tt.refused || !strings.Contains(log.String(), tt.warns) ||
				(log.Len() > 0) != (tt.warns != "") {
				t.Errorf("check of a clock %s ahead = %v, log %q", tt.ahead, err, log.String())
			}
			err = c.CheckTolerance(t.Context())
			if (err != nil) != (tt.unready != "") || err != nil && !strings.Contains(err.Error(), tt.unready) {
				t.Errorf("CheckTolerance with a clock %s ahead = %v, want %q", tt.ahead, err, tt.unready)
			}
		}
	})
}
