package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// callAt returns a call from alice to bob that began at the given time.
func callAt(project string, at time.Time) calls.Record {
	key := calls.FirstKey(at)
	return calls.Record{
		Key: key[:len(key)-12] + newID()[24:], ID: newID(), ProjectID: project, Node: "n", State: calls.Created,
		Created: at,
		From:    calls.Party{Name: "Alice", Address: "/private/alice", SubscriberID: "alice"},
		To:      calls.Party{Name: "Bob", Address: "/private/bob", SubscriberID: "bob"},
		Dialed:  "/private/bob?channel=audio", Lines: 1,
	}
}

// ended returns r as a call that ended with the given cause. If it was answered, it ended a minute
// later.
func ended(r calls.Record, cause calls.Cause, answered bool) calls.Record {
	r.State, r.Cause, r.Ended = calls.Completed, cause, r.Created.Add(10*time.Second)
	if answered {
		r.Answered = r.Created.Add(5 * time.Second)
		r.Ended = r.Answered.Add(time.Minute)
	}
	return r
}

func saveCalls(t testing.TB, s *Store, all ...calls.Record) {
	t.Helper()
	for _, r := range all {
		if err := s.SaveCall(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

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
	busy.From.Name, gone.To = "Ada King, 100%", calls.Party{Address: "+14155550134"}
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
		var got, want []string
		found, err := page.Every(t.Context(), func(ctx context.Context, q page.Query) (page.Page[calls.Record], error) {
			q.Size = 2
			return s.ListCalls(ctx, "p", tt.filter, q)
		})
		for _, r := range found {
			got = append(got, r.ID)
		}
		for _, r := range tt.want {
			want = append(want, r.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: ListCalls = %q, %v, want %q", tt.name, got, err, want)
		}
	}
}

// TestCallsChecked shows that a page of a search reads at most maxCallsChecked calls, even if
// subscribers have many calls with each other. The pages together have all matches.
func TestCallsChecked(t *testing.T) { EachDatabase(t, testCallsChecked) }

func testCallsChecked(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	const all = 2 * maxCallsChecked
	manyCalls(t, c, s, all, "'a'", "'b'")
	for _, subscribers := range [][]string{{"a"}, {"b"}, {"a", "b"}} {
		f := calls.Filter{Subscribers: subscribers, From: "a-0"}
		share := maxCallsChecked / (2 * len(subscribers))
		p, err := s.ListCalls(t.Context(), "p", f, page.Query{Size: 50})
		if want := idAt(all - 1 - share); err != nil || len(p.Items) > 0 || p.Next != want {
			t.Errorf("the first page of %q has %d calls, %v, and ends before %q, want none, and %s", subscribers,
				len(p.Items), err, p.Next, want)
		}

		last, err := s.ListCalls(t.Context(), "p", f, page.Query{Size: 50, From: idAt(share - 1)})
		if err != nil || len(last.Items) != 1 || last.Next != "" || last.Prev != idAt(2*share) {
			t.Errorf("the last page of %q has %d calls, %v, between %q and %q, want one after %s", subscribers,
				len(last.Items), err, last.Prev, last.Next, idAt(2*share))
		}

		found, err := page.Every(t.Context(), func(ctx context.Context, q page.Query) (page.Page[calls.Record], error) {
			return s.ListCalls(ctx, "p", f, q)
		})
		if err != nil || len(found) != 1 || found[0].ID != "call-0" {
			t.Errorf("all pages of %q have %d calls, %v, want one", subscribers, len(found), err)
		}
	}
}

// manyCalls adds n calls to project p. from and to are the SQL expressions of the subscribers of the
// call i. The address of its caller is a-i.
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
	explain := "EXPLAIN QUERY PLAN "
	if c.URL != "" {
		explain = "EXPLAIN "
	}

	for name, f := range map[string]calls.Filter{
		"all": {}, "running": {Running: true}, "ringing": {State: calls.Ringing}, "busy": {Result: calls.Busy},
		"of a time":       {CreatedFrom: time.UnixMilli(0x019000000000)},
		"of a subscriber": {Subscribers: []string{"a7"}}, "of two subscribers": {Subscribers: []string{"a7", "b8"}},
		"of a subscriber, busy": {Subscribers: []string{"a7"}, Result: calls.Busy}, "of a number": {Party: "555"},
	} {
		l := callListing("p", f, "01900000-0000-7000-8000-100000005001")
		q := l.query(51, forward)
		plan := pageOfWay.ReplaceAllString(strings.Join(explained(t, s, explain+q.sql, q.args), "\n"), "")
		few := c.URL != "" && (len(f.Subscribers) > 0 || f.Running || f.State != "") &&
			!strings.Contains(plan, "Seq Scan")
		if regexp.MustCompile(`SCAN|TEMP B-TREE|Seq Scan|Sort`).MatchString(plan) && !few {
			t.Errorf("%s: the plan scans or sorts:\n%s", name, plan)
		}
	}
}

func TestPruneCalls(t *testing.T) { EachDatabase(t, testPruneCalls) }

func testPruneCalls(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	now := time.Now().Truncate(time.Microsecond)
	old := now.Add(-48 * time.Hour)
	runs, recent := callAt("p", old), ended(callAt("p", now.Add(-time.Hour)), calls.NormalClearing, true)
	saveCalls(t, s, runs, recent)
	for i := range sweepBatch + 1 {
		saveCalls(t, s, ended(callAt("p", old.Add(time.Duration(i)*time.Second)), calls.UserBusy, false))
	}

	if err := s.PruneCalls(t.Context(), now.Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	left, err := s.ListCalls(t.Context(), "p", calls.Filter{}, page.Query{Size: 10})
	if err != nil || len(left.Items) != 2 || left.Items[0].ID != recent.ID || left.Items[1].ID != runs.ID {
		t.Errorf("after PruneCalls %+v, %v remain, want the recent and the running call", left.Items, err)
	}
}

func TestAskCalls(t *testing.T) { EachDatabase(t, testAskCalls) }

func testAskCalls(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	runs, over := callAt("p", time.Now()), ended(callAt("p", time.Now()), calls.UserBusy, false)
	saveCalls(t, s, runs, over)
	for _, tt := range []struct {
		project, id string
		ok          bool
	}{{"p", over.ID, false}, {"q", runs.ID, false}, {"p", newID(), false}, {"p", runs.ID, true}} {
		if err := s.AskHangUp(t.Context(), tt.project, tt.id); tt.ok != (err == nil) ||
			!tt.ok && !errors.Is(err, problem.NotFound) {
			t.Errorf("AskHangUp(%s, %s) = %v, want ok %v", tt.project, tt.id, err, tt.ok)
		}
	}

	if err := errors.Join(s.AskRecord(t.Context(), "p", runs.ID), s.AskRecord(t.Context(), "p", runs.ID)); err != nil {
		t.Fatal(err)
	}
	if err := s.AskRecord(t.Context(), "p", over.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("AskRecord of a past call = %v, want not found", err)
	}

	for _, want := range []calls.Request{
		{ProjectID: runs.ProjectID, CallID: runs.ID, HangUp: true, Record: true},
		{ProjectID: runs.ProjectID, CallID: runs.ID, HangUp: true},
	} {
		if got, err := s.TakeRequests(t.Context(), "n"); err != nil || !slices.Equal(got, []calls.Request{want}) {
			t.Errorf("TakeRequests = %v, %v, want %v", got, err, want)
		}
	}
	askMutes(t, s, runs)
	if got, err := s.TakeRequests(t.Context(), "another"); err != nil || len(got) != 0 {
		t.Errorf("TakeRequests of another node = %v, %v, want none", got, err)
	}
}

// askMutes shows that only members of rooms can be muted, and that the last of several requests
// counts.
func askMutes(t *testing.T, s *Store, outside calls.Record) {
	t.Helper()
	if err := s.AskMute(t.Context(), "p", outside.ID, true); !errors.Is(err, problem.NotFound) {
		t.Errorf("AskMute outside a room = %v, want not found", err)
	}

	member := callAt("p", time.Now())
	member.Node, member.RoomSession = "room", newID()
	member.State, member.Answered = calls.InCall, member.Created
	saveCalls(t, s, member)
	for _, muted := range []bool{true, false} {
		if err := s.AskMute(t.Context(), "p", member.ID, muted); err != nil {
			t.Fatal(err)
		}
	}

	want := []calls.Request{{ProjectID: "p", CallID: member.ID, Unmute: true}}
	if got, err := s.TakeRequests(t.Context(), "room"); err != nil || !slices.Equal(got, want) {
		t.Errorf("TakeRequests = %v, %v, want %v", got, err, want)
	}

	if got, err := s.TakeRequests(t.Context(), "room"); err != nil || len(got) != 0 {
		t.Errorf("a second TakeRequests = %v, %v, want none", got, err)
	}
}

// TestDeleteProjectWithCalls shows that deleting a project deletes the records of its calls.
func TestDeleteProjectWithCalls(t *testing.T) { EachDatabase(t, testDeleteProjectWithCalls) }

func testDeleteProjectWithCalls(t *testing.T, c Config) {
	s := opened(t, c)
	p := fabric.Project{ID: newID(), Name: "gone", MediaAuth: "public", Created: time.Now(), Updated: time.Now()}
	if err := s.CreateProject(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r := callAt(p.ID, time.Now())
	saveCalls(t, s, r)
	filled(t, c, s, fmt.Sprintf(`DELETE FROM projects WHERE id = '%s'`, p.ID))
	if _, err := s.FindCall(t.Context(), p.ID, r.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindCall of a deleted project = %v, want not found", err)
	}
}

// TestRecordedCallEvents shows that no event is repeated if a recording begins or ends during a
// call.
func TestRecordedCallEvents(t *testing.T) { EachDatabase(t, testRecordedCallEvents) }

func testRecordedCallEvents(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	now := time.Now().UTC().Truncate(time.Second)
	w := fabric.Webhook{ID: newID(), ProjectID: "p", URL: "https://example.com/", Enabled: true,
		Events: []fabric.EventName{fabric.AnyEvent}, Created: now, Updated: now}
	if err := s.CreateWebhook(t.Context(), w, 50); err != nil {
		t.Fatal(err)
	}

	r := callAt("p", now)
	r.State, r.Answered = calls.InCall, now.Add(time.Second)
	saveCalls(t, s, r)
	for _, r.Recorded = range []bool{true, false} {
		r.RecordingSid = newID()
		if err := s.SaveRecorded(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	saveCalls(t, s, ended(r, calls.NormalClearing, true))
	if err := s.SaveRecorded(t.Context(), r); err != nil {
		t.Errorf("SaveRecorded of a call that has ended = %v, want nil", err)
	}

	sent, err := s.ListDeliveries(t.Context(), w.ID, "", page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	var names []fabric.EventName
	for _, d := range slices.Backward(sent.Items) {
		names = append(names, d.Event)
	}
	if want := []fabric.EventName{fabric.CallAnswered, fabric.CallEnded}; !slices.Equal(names, want) {
		t.Errorf("the events are %v, want %v", names, want)
	}
}

func TestTakeCall(t *testing.T) { EachDatabase(t, testTakeCall) }

func testTakeCall(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	r := callAt("p", time.Now().UTC().Truncate(time.Second))
	r.State, r.Answered, r.CalleeLeg = calls.InCall, r.Created.Add(time.Second), newID()
	saveCalls(t, s, r)
	r.Recorded = true
	if err := s.SaveRecorded(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, leg := range []string{r.ID, r.CalleeLeg} {
		if found, err := s.FindLeg(t.Context(), "p", leg); err != nil || found.ID != r.ID {
			t.Errorf("FindLeg = %v, %v, want the call", found.ID, err)
		}
	}

	r.CallerControls, r.CalleeControls = calls.AudioMuted, calls.OnHold|calls.Deafened
	if err := s.SaveControls(t.Context(), r); err != nil {
		t.Fatal(err)
	}

	if err := s.TakeCall(t.Context(), r, "m"); err != nil {
		t.Fatal(err)
	}
	taken, err := s.FindLeg(t.Context(), "p", r.ID)
	if !taken.Recorded {
		t.Error("the taken call is not shown as recorded")
	}
	if err != nil || taken.CallerControls != r.CallerControls || taken.CalleeControls != r.CalleeControls {
		t.Errorf("the controls of the taken call are %d and %d, %v, want %d and %d",
			taken.CallerControls, taken.CalleeControls, err, r.CallerControls, r.CalleeControls)
	}

	if err := s.SaveControls(t.Context(), r); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("the former node's SaveControls = %v, want ErrTaken", err)
	}
	if err := s.TakeCall(t.Context(), r, "o"); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("taking a call that was taken = %v, want ErrTaken", err)
	}

	if err := s.SaveCall(t.Context(), ended(r, calls.NodeLost, true)); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("the former node's SaveCall = %v, want ErrTaken", err)
	}

	r.Node = "m"
	saveCalls(t, s, ended(r, calls.NormalClearing, true))
	if err := s.TakeCall(t.Context(), r, "o"); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("taking a call that has ended = %v, want ErrTaken", err)
	}
	if _, err := s.FindLeg(t.Context(), "p", r.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindLeg of a call that has ended = %v, want NotFound", err)
	}
}
