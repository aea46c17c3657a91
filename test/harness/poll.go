package harness

import "time"

// Eventually calls ready until it returns nil, and ends the test if it still fails after d.
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

// revocationBound is the time within which a revocation must take effect everywhere. A call and the
// pause before it count for at most callBound, because anything longer is due to a busy machine.
const (
	revocationBound = time.Second
	callBound       = 50 * time.Millisecond
)

// WithinASecond calls refused until it returns nil. It marks the test as failed if that took longer
// than one second. The time ends at the start of the first call that succeeded.
func WithinASecond(t T, what string, refused func() error) {
	t.Helper()
	var took time.Duration
	var asked time.Time
	Eventually(t, time.Minute, what, func() error {
		if !asked.IsZero() {
			took += min(time.Since(asked), callBound)
		}
		asked = time.Now()
		return refused()
	})

	took -= pollEvery
	if took > revocationBound {
		t.Errorf("%s: refused only after %v, want at most %v", what, took, revocationBound)
	}
}
