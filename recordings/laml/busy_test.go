package laml

import (
	"testing"
	"testing/synctest"
	"time"
)

// DoNotWait lets sources repeat requests immediately while a service is busy, until the test ends.
func DoNotWait(t *testing.T) {
	old := busyWaits
	t.Cleanup(func() { busyWaits = old })
	busyWaits = make([]time.Duration, len(old))
}

// TestBusyWait shows that a busy service can ask for a longer wait than usual, but not for a shorter
// one.
func TestBusyWait(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"":                              5 * time.Second,
		"soon":                          5 * time.Second,
		"0":                             5 * time.Second,
		"-1":                            5 * time.Second,
		"30":                            30 * time.Second,
		"86400":                         longestBusyWait,
		"18446744073709551615":          longestBusyWait,
		"Fri, 31 Dec 1999 23:59:00 GMT": 5 * time.Second,
		"Sat, 01 Jan 2000 00:00:20 GMT": 20 * time.Second,
		"Sun, 02 Jan 2000 00:00:00 GMT": longestBusyWait,
	} {
		synctest.Test(t, func(t *testing.T) { // its clock begins on January 1st, 2000
			r := &refusal{retryAfter: header}
			if got := r.wait(5 * time.Second); got != want {
				t.Errorf("the wait for the header %q is %v, want %v", header, got, want)
			}
		})
	}
}
