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
		ahead   time.Duration
		warning string // text in the log
		refusal string // text in the error that prevents a start
		unready string // text in the error that makes the server unready
	}{
		{ahead: 0},
		{ahead: time.Minute},
		{ahead: -time.Minute},
		{ahead: 61 * time.Second, warning: "1m1s ahead of the database's", unready: "1m1s ahead of"},
		{ahead: -5 * time.Minute, warning: "5m0s behind the database's", unready: "5m0s behind"},
		{ahead: 301 * time.Second, refusal: "5m1s ahead of", unready: "5m1s ahead of"},
		{ahead: -time.Hour, refusal: "1h0m0s behind", unready: "1h0m0s behind"},
	}

	synctest.Test(t, func(t *testing.T) {
		for _, tt := range tests {
			var log bytes.Buffer
			c := Source(func(context.Context) (time.Time, error) { return time.Now().Add(-tt.ahead), nil })
			err := c.Check(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
			if !hasText(err, tt.refusal) {
				t.Errorf("Check with a clock %s ahead = %v, want %q", tt.ahead, err, tt.refusal)
			}
			if tt.warning == "" && log.Len() > 0 {
				t.Errorf("Check with a clock %s ahead logged %q, want nothing", tt.ahead, log.String())
			}
			if !strings.Contains(log.String(), tt.warning) {
				t.Errorf("Check with a clock %s ahead logged %q, want %q", tt.ahead, log.String(), tt.warning)
			}

			err = c.CheckTolerance(t.Context())
			if !hasText(err, tt.unready) {
				t.Errorf("CheckTolerance with a clock %s ahead = %v, want %q", tt.ahead, err, tt.unready)
			}
		}
	})
}

// hasText reports whether err contains text. No text stands for no error.
func hasText(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}
