package store

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/revocation"
)

// TestCounts shows that committed events are counted by day, and that counts are deleted with their
// project. A subscriber is counted as active at most once a day and once a month, even after logins on
// several nodes.
func TestCounts(t *testing.T) { EachDatabase(t, testCounts) }

func testCounts(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	other := opened(t, c)
	ctx := t.Context()
	today := time.Unix(dayOf(s.now())*secondsPerDay, 0).UTC()
	signIn(t, s, g) // commits an event of a login
	for range 3 {
		s.CountToken("p")
	}

	at := func(month time.Month, day int) time.Time { return time.Date(2030, month, day, 12, 0, 0, 0, time.UTC) }
	event := func(action, subscriber string) audit.Event {
		return audit.Event{ProjectID: "p", Action: action, Outcome: audit.Done, Target: audit.Target{ID: subscriber}}
	}

	s.tally.note(event("login", "s"), at(time.March, 1))
	other.tally.note(event("login", "s"), at(time.March, 1))
	other.tally.note(event("login", "s"), at(time.March, 2))
	other.tally.note(event("login", "gone"), at(time.March, 2))
	s.tally.note(event("login", "s"), at(time.April, 2))
	s.tally.note(event("call.ended", "x"), at(time.April, 2))
	refused := event("login", "s")
	refused.Outcome = audit.Refused
	s.tally.note(refused, at(time.April, 3))
	s.tally.note(audit.Event{Action: "login", Outcome: audit.Done}, at(time.April, 3)) // a login of an operator

	var flushes sync.WaitGroup
	for _, node := range []*Store{s, other} {
		flushes.Go(func() {
			if err := node.FlushCounts(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	flushes.Wait()
	if err := s.FlushCounts(ctx); err != nil { // a second flush has nothing to write
		t.Error(err)
	}

	type key struct {
		day string
		of  fabric.Counted
	}
	read := func() map[key]int64 {
		t.Helper()
		counts, err := s.ListCounts(ctx, "p", today)
		if err != nil {
			t.Fatal(err)
		}
		found := make(map[key]int64)
		for _, count := range counts {
			found[key{count.Day.Format(time.DateOnly), count.Of}] = count.N
		}
		return found
	}

	now := today.Format(time.DateOnly)
	want := map[key]int64{
		{now, fabric.CountedSignIns}:          1,
		{now, fabric.CountedTokens}:           3,
		{"2030-03-01", fabric.CountedSignIns}: 2,
		{"2030-03-02", fabric.CountedSignIns}: 2,
		{"2030-04-02", fabric.CountedSignIns}: 1,
		{"2030-04-02", fabric.CountedCalls}:   1,
	}
	got := read()
	// Two nodes that write concurrently may count a later day before an earlier day, but never count
	// a day twice.
	for _, day := range []string{now, "2030-03-01", "2030-03-02", "2030-04-02"} {
		for _, of := range []fabric.Counted{fabric.CountedActive, fabric.CountedMonthly} {
			if n := got[key{day, of}]; n > 1 {
				t.Errorf("%s on %s: %d, want nobody counted twice", of, day, n)
			}
			delete(got, key{day, of})
		}
	}

	if !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}

	if err := s.DeleteProject(ctx, revocation.Revocation{Kind: revocation.Project, ID: "p"}); err != nil {
		t.Fatal(err)
	}
	if left := read(); len(left) > 0 {
		t.Errorf("counts of a deleted project: %v, want none", left)
	}
}

// TestCountsActive shows that a subscriber is counted once on each active day, and once in each active
// month.
func TestCountsActive(t *testing.T) { EachDatabase(t, testCountsActive) }

func testCountsActive(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	first := time.Date(2030, time.March, 30, 12, 0, 0, 0, time.UTC)
	for _, days := range []int{0, 0, 1, 2, 2, 3, 0} { // the last flush comes from a late node
		login := audit.Event{
			ProjectID: "p",
			Action:    "login",
			Outcome:   audit.Done,
			Target:    audit.Target{ID: "s"},
		}
		s.tally.note(login, first.AddDate(0, 0, days))
		if err := s.FlushCounts(ctx); err != nil {
			t.Fatal(err)
		}
	}

	counts, err := s.ListCounts(ctx, "p", first)
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[fabric.Counted]int64)
	for _, count := range counts {
		sums[count.Of] += count.N
	}
	want := map[fabric.Counted]int64{fabric.CountedSignIns: 7, fabric.CountedActive: 4, fabric.CountedMonthly: 2}
	if !maps.Equal(sums, want) {
		t.Errorf("counted %v, want %v", sums, want)
	}
}

// TestCountsOfSeveralDays shows that a subscriber is counted on each of several days that are written
// together, such as after a long outage of the database.
func TestCountsOfSeveralDays(t *testing.T) { EachDatabase(t, testCountsOfSeveralDays) }

func testCountsOfSeveralDays(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	first := time.Date(2030, time.March, 30, 12, 0, 0, 0, time.UTC)
	for day := range 10 {
		login := audit.Event{
			ProjectID: "p",
			Action:    "login",
			Outcome:   audit.Done,
			Target:    audit.Target{ID: "s"},
		}
		s.tally.note(login, first.AddDate(0, 0, day))
	}
	if err := s.FlushCounts(t.Context()); err != nil {
		t.Fatal(err)
	}

	counts, err := s.ListCounts(t.Context(), "p", first)
	if err != nil {
		t.Fatal(err)
	}
	var active int64
	for _, count := range counts {
		if count.Of == fabric.CountedActive {
			active += count.N
		}
	}
	if active != 10 {
		t.Errorf("the subscriber was active on %d days, want 10", active)
	}
}
