package attack

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// bystanderLimit is the longest time that 99 % of a bystander's token verifications may take during
// the attacks. It is enforced if SELVAGE_TEST_BYSTANDER is set. `make attack` sets the variable and
// runs one part of the tests at a time.
const bystanderLimit = 25 * time.Millisecond

// isBystanderLimited reports whether bystanderLimit is enforced.
func isBystanderLimited() bool { return os.Getenv("SELVAGE_TEST_BYSTANDER") != "" }

// A bystander is a project on the shared server that is not attacked. One of its tokens is verified
// fifty times a second during the attacks, or five times a second if no limit is enforced.
type bystander struct {
	start sync.Once
	end   chan struct{} // closed when the attacks have ended
	ended sync.WaitGroup
	took  []time.Duration // the duration of each verification; complete when ended is done
	wrong error           // the last verification that did not return 200
}

var sharedBystander = bystander{end: make(chan struct{})}

// watch starts the verifications when the first test needs the shared server.
func (b *bystander) watch(t *testing.T) {
	t.Helper()
	b.start.Do(func() {
		p := harness.Shared(t).NewProject(t)
		request, err := http.NewRequest("GET", p.HTTP+"/api/fabric/subscriber/info", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+p.NewSAT(t, "bystander").Token)
		b.ended.Go(func() { b.verify(request) })
	})
}

// verify repeats the request, which verifies the token, until the attacks have ended.
func (b *bystander) verify(request *http.Request) {
	every := 20 * time.Millisecond
	if !isBystanderLimited() {
		every = 200 * time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	client := &http.Client{Timeout: time.Minute}
	for {
		began := time.Now()
		if err := verifyOnce(client, request); err != nil {
			b.wrong = err
		}
		b.took = append(b.took, time.Since(began))

		select {
		case <-b.end:
			return
		case <-tick.C:
		}
	}
}

func verifyOnce(client *http.Client, request *http.Request) error {
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server returned %s", response.Status)
	}
	return nil
}

// report stops the verifications and prints how long they took. It returns an error if any of them
// failed or, if bystanderLimit is enforced, if more than 1 % took longer.
func (b *bystander) report() error {
	close(b.end)
	b.ended.Wait()
	if len(b.took) == 0 { // no test of this run needed the shared server
		return nil
	}

	slices.SortFunc(b.took, cmp.Compare)
	n := len(b.took)
	p50, p99 := b.took[n/2], b.took[n*99/100]
	fmt.Printf("bystander: %d verifications, median %v, p99 %v, longest %v\n", n,
		p50.Round(time.Microsecond), p99.Round(time.Microsecond), b.took[n-1].Round(time.Microsecond))

	switch {
	case b.wrong != nil:
		return fmt.Errorf("verifying the bystander's token: %w", b.wrong)
	case p99 > bystanderLimit && isBystanderLimited():
		return fmt.Errorf("99 %% of the bystander's verifications took at most %v, want at most %v", p99,
			bystanderLimit)
	}
	return nil
}

// watched runs the tests and then prints the bystander's report.
type watched struct{ *testing.M }

func (w watched) Run() int {
	code := w.M.Run()
	if err := sharedBystander.report(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
