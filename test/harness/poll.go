package harness

import "time"

// Eventually calls ready until it gives no error, and ends the test if that has
// not happened within d.
func Eventually(t T, d time.Duration, what string, ready func() error) {
	t.Helper()
	deadline := time.Now().Add(d)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ready()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s: %v", d, what, err)
		}
		<-tick.C
	}
}
