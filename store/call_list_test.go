package store

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
)

func TestListCalls(t *testing.T) { EachDatabase(t, testListCalls) }

func testListCalls(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	afterHours := func(n int) calls.Record { return callAt("p", at.Add(time.Duration(n)*time.Hour)) }
	const answered, unanswered = true, false

	talked := ended(afterHours(0), calls.NormalClearing, answered)
	busy := ended(afterHours(1), calls.UserBusy, unanswered)
	missed := ended(afterHours(2), calls.UserNotRegistered, unanswered)
	gone := ended(afterHours(3), calls.OriginatorCancel, unanswered)
	failed := ended(afterHours(4), calls.UnallocatedNumber, unanswered)

	rings := afterHours(5)
	rings.State = calls.Ringing
	runs := afterHours(6)
	runs.State = calls.InCall
	runs.Answered = runs.Created.Add(time.Second)
	runs.From = calls.Party{Name: "Carol", Address: "/private/carol", SubscriberID: "carol"}
	busy.From.Name = "Ada King, 100%"
	gone.To = calls.Party{Address: "+14155550134"}
	saveCalls(t, s, talked, busy, missed, gone, failed, rings, runs)

	tests := []struct {
		name   string
		filter calls.Filter
		want   []calls.Record
	}{
		{"all", calls.Filter{}, []calls.Record{runs, rings, failed, gone, missed, busy, talked}},
		{"running", calls.Filter{Running: true}, []calls.Record{runs, rings}},
		{"ringing", calls.Filter{State: calls.Ringing}, []calls.Record{rings}},
		{"ended", calls.Filter{State: calls.Completed}, []calls.Record{failed, gone, missed, busy, talked}},
		{"connected", calls.Filter{Result: calls.Connected}, []calls.Record{talked}},
		{"busy", calls.Filter{Result: calls.Busy}, []calls.Record{busy}},
		{"missed", calls.Filter{Result: calls.Missed}, []calls.Record{missed}},
		{"canceled", calls.Filter{Result: calls.Canceled}, []calls.Record{gone}},
		{"failed", calls.Filter{Result: calls.Failed}, []calls.Record{failed}},
		{"from", calls.Filter{From: "/private/carol"}, []calls.Record{runs}},
		{"to", calls.Filter{To: "/private/alice"}, nil},
		{"end of a number", calls.Filter{Party: "555-0134"}, []calls.Record{gone}},
		{"middle of a number", calls.Filter{Party: "555"}, []calls.Record{gone}},
		{"national number", calls.Filter{Party: "0 (415) 555-0134"}, []calls.Record{gone}},
		{"other number", calls.Filter{Party: "5550135"}, nil},
		{"part of a name", calls.Filter{Party: "aRO"}, []calls.Record{runs}},
		{"words in any order", calls.Filter{Party: "king ada"}, []calls.Record{busy}},
		{"part of an address", calls.Filter{Party: "/private/car"}, []calls.Record{runs}},
		{"percent sign", calls.Filter{Party: "%"}, []calls.Record{busy}},
		{"party and result", calls.Filter{Party: "bob", Result: calls.Busy}, []calls.Record{busy}},
		{"party of a subscriber", calls.Filter{Party: "car", Subscribers: []string{"bob"}}, []calls.Record{runs}},
		{"of the caller", calls.Filter{Subscribers: []string{"carol"}}, []calls.Record{runs}},
		{"of the callee", calls.Filter{Subscribers: []string{"bob"}, Result: calls.Busy}, []calls.Record{busy}},
		{"of both, once", calls.Filter{Subscribers: []string{"carol", "bob"}, Running: true},
			[]calls.Record{runs, rings}},
		{"of others", calls.Filter{Subscribers: []string{"dave"}}, nil},
		{"began", calls.Filter{CreatedFrom: busy.Created, CreatedBefore: gone.Created}, []calls.Record{missed, busy}},
		{"finished", calls.Filter{EndedFrom: gone.Ended, EndedBefore: failed.Ended}, []calls.Record{gone}},
		{"finished before", calls.Filter{EndedBefore: busy.Ended}, []calls.Record{talked}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := everyCall(t, s, tt.filter, 2)
			if got, want := callIDs(found), callIDs(tt.want); !slices.Equal(got, want) {
				t.Errorf("ListCalls = %q, want %q", got, want)
			}
		})
	}
}

// everyCall returns all calls that pass the filter, from pages of the given size.
func everyCall(t *testing.T, s *Store, f calls.Filter, size int) []calls.Record {
	t.Helper()
	found, err := page.Every(t.Context(), func(ctx context.Context, q page.Query) (page.Page[calls.Record], error) {
		q.Size = size
		return s.ListCalls(ctx, "p", f, q)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func callIDs(records []calls.Record) (ids []string) {
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids
}

// TestCallsChecked shows that a page of a search reads at most maxCallsChecked calls, even if
// subscribers have many calls with each other. The pages together have all matches.
func TestCallsChecked(t *testing.T) { EachDatabase(t, testCallsChecked) }

func testCallsChecked(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	const total = 2 * maxCallsChecked
	manyCalls(t, c, s, total, "'a'", "'b'")
	for _, subscribers := range [][]string{{"a"}, {"b"}, {"a", "b"}} {
		t.Run(strings.Join(subscribers, " and "), func(t *testing.T) {
			filter := calls.Filter{Subscribers: subscribers, From: "a-0"} // only the oldest call matches
			share := maxCallsChecked / (2 * len(subscribers))

			first, err := s.ListCalls(t.Context(), "p", filter, page.Query{Size: 50})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(first.Items); n > 0 {
				t.Errorf("the first page has %d calls, want none", n)
			}
			if want := idAt(total - 1 - share); first.Next != want {
				t.Errorf("the first page ends before %q, want %s", first.Next, want)
			}

			last, err := s.ListCalls(t.Context(), "p", filter, page.Query{Size: 50, From: idAt(share - 1)})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(last.Items); n != 1 {
				t.Errorf("the last page has %d calls, want 1", n)
			}
			if last.Next != "" {
				t.Errorf("the last page ends before %q, want no further page", last.Next)
			}
			if want := idAt(2 * share); last.Prev != want {
				t.Errorf("the page before the last one begins with %q, want %s", last.Prev, want)
			}

			found := everyCall(t, s, filter, page.MaxSize)
			if got, want := callIDs(found), []string{"call-0"}; !slices.Equal(got, want) {
				t.Errorf("all pages have the calls %q, want %q", got, want)
			}
		})
	}
}

// manyCalls adds n calls to project p. from and to are SQL expressions for the subscribers of call i.
// The address of the caller in call i is a-i.
func manyCalls(t testing.TB, c Config, s *Store, n int, from, to string) {
	t.Helper()
	filled(t, c, s, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO calls (id, project_id, call_id, state, cause, cause_code, node, from_name, from_address,
			from_address_id, from_subscriber, to_name, to_address, to_address_id, to_subscriber, dialed, video,
			recording_sid, received, lost, jitter, round_trip, transport, created, answered, ended)
		SELECT '01900000-0000-7000-8000-' || CAST(100000000000 + i AS TEXT), 'p', 'call-' || CAST(i AS TEXT),
			'ended', 'NORMAL_CLEARING', 16, 'n', '', 'a-' || CAST(i AS TEXT), '', %s, '', '', '',
			%s, '', 0, '', 0, 0, 0, 0, '', i, i, CASE WHEN i %% 1000 = 7 THEN 0 ELSE i + 1 END FROM n`,
		n-1, from, to), `ANALYZE`)
}

// TestCallPlans shows that lists of calls are read in the order of an index.
func TestCallPlans(t *testing.T) { EachDatabase(t, testCallPlans) }

func testCallPlans(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	manyCalls(t, c, s, 10_000, "'a' || CAST(i % 1000 AS TEXT)", "'b' || CAST(i % 1000 AS TEXT)")
	isServer := c.URL != ""
	scans := regexp.MustCompile(`Seq Scan`)
	scansOrSorts := regexp.MustCompile(`SCAN|TEMP B-TREE|Seq Scan|Sort`)
	tests := []struct {
		name   string
		filter calls.Filter
		few    bool // whether PostgreSQL may sort the few calls that an index finds
	}{
		{name: "all"},
		{name: "running", filter: calls.Filter{Running: true}, few: true},
		{name: "ringing", filter: calls.Filter{State: calls.Ringing}, few: true},
		{name: "busy", filter: calls.Filter{Result: calls.Busy}},
		{name: "of a time", filter: calls.Filter{CreatedFrom: time.UnixMilli(0x019000000000)}},
		{name: "of a number", filter: calls.Filter{Party: "555"}},
		{name: "of a subscriber", filter: calls.Filter{Subscribers: []string{"a7"}}, few: true},
		{name: "of two subscribers", filter: calls.Filter{Subscribers: []string{"a7", "b8"}}, few: true},
		{
			name:   "of a subscriber, busy",
			filter: calls.Filter{Subscribers: []string{"a7"}, Result: calls.Busy},
			few:    true,
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			listing := callListing("p", tt.filter, "01900000-0000-7000-8000-100000005001")
			q := listing.query(51, forward)
			plan := pageOfWay.ReplaceAllString(explain(t, s, q, isServer), "")
			bad := scansOrSorts
			if tt.few && isServer {
				bad = scans
			}
			if bad.MatchString(plan) {
				t.Errorf("the plan scans or sorts:\n%s", plan)
			}
		})
	}
}
