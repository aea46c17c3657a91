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

// revocationBound is how long a revocation may take to hold everywhere.
const revocationBound = time.Second

// WithinASecond calls refused until it gives no error, and marks the test as
// failed if that took longer than a revocation may: one second, counted to the
// start of the first call that succeeded.
func WithinASecond(t T, what string, refused func() error) {
	t.Helper()
	began := time.Now()
	var asked time.Time
	Eventually(t, 10*time.Second, what, func() error {
		asked = time.Now()
		return refused()
	})
	if took := asked.Sub(began) - pollEvery; took > revocationBound {
		t.Errorf("%s: refused only after %v, want %v", what, took, revocationBound)
	}
}
