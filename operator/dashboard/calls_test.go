package dashboard_test

import (
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/operator"
)

// addCall saves a call between two subscribers of project one.
func (w *world) addCall(change func(*calls.Record)) calls.Record {
	w.Helper()
	began := time.Now().Add(-time.Minute)
	r := calls.Record{
		Key: uuid.Must(uuid.NewV7()).String(), ID: uuid.NewString(), ProjectID: w.one.ID, Node: "n",
		State: calls.Created, Created: began, Dialed: "/private/bob",
		From: calls.Party{Name: "Alice <b>", Address: "/private/alice", SubscriberID: uuid.NewString()},
		To:   calls.Party{Name: "Bob", Address: "/private/bob", SubscriberID: uuid.NewString()},
	}
	if change != nil {
		change(&r)
	}
	must(w, w.rows.SaveCall(w.Context(), r))
	return r
}

func talking(r *calls.Record) { r.State, r.Answered = calls.InCall, r.Created.Add(time.Second) }

func over(cause calls.Cause, answered bool) func(*calls.Record) {
	return func(r *calls.Record) {
		if answered {
			talking(r)
			r.Received, r.Jitter, r.Transport = 3000, time.Millisecond, "udp"
		}
		r.State, r.Cause, r.Ended = calls.Completed, cause, r.Created.Add(31*time.Second)
	}
}

// TestCallMembers shows that the page of a call to a room lists the members of the room session.
func TestCallMembers(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	session := uuid.NewString()
	var members []calls.Record
	for _, name := range []string{"Alice", "Bob"} {
		members = append(members, w.addCall(func(r *calls.Record) {
			talking(r)
			r.RoomSession, r.From.Name, r.To = session, name, calls.Party{Name: "Lobby", Address: "/public/lobby"}
		}))
	}
	elsewhere := w.addCall(talking)

	body := b.get("/dashboard/projects/" + w.one.ID + "/calls/" + members[0].ID).body
	for _, text := range []string{"Members of the room", "Alice", "Bob", "/calls/" + members[1].ID} {
		if !strings.Contains(body, text) {
			t.Errorf("the page of a member does not have %q", text)
		}
	}
	if strings.Contains(body, "/calls/"+elsewhere.ID) {
		t.Errorf("the page of a member links to a call outside the room")
	}
}

// TestCalls shows that running calls are listed before past ones, and that each call links to its
// page and its parties.
func TestCalls(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	past, missed := w.addCall(over(calls.NormalClearing, true)), w.addCall(over(calls.UserNotRegistered, false))
	runs := w.addCall(talking)

	body := b.get(base + "/calls").body
	var at []int
	for _, text := range []string{"<h2>Live</h2>", base + "/calls/" + runs.ID + `"`, "In call", "Hang up",
		"<h2>History</h2>", base + "/calls/" + missed.ID, "Missed", "The callee was offline",
		base + "/calls/" + past.ID, "Answered", "0:30", "Hung up", "Good"} {
		at = append(at, strings.Index(body, text))
		if at[len(at)-1] < 0 {
			t.Errorf("the list of calls lacks %q", text)
		}
	}

	if !slices.IsSorted(at[:6]) {
		t.Errorf("the parts of the list are at %v, want live calls before past ones", at)
	}
	for _, text := range []string{base + "/subscribers/" + past.From.SubscriberID, "Alice &lt;b&gt;", "/private/bob"} {
		if !strings.Contains(body, text) {
			t.Errorf("the list of calls lacks %q", text)
		}
	}

	for query, want := range map[string]calls.Record{"result=missed": missed, "result=connected": past,
		"subscriber=" + past.To.SubscriberID: past} {
		body := b.get(base + "/calls?" + query).body
		for _, r := range []calls.Record{past, missed} {
			if shown := strings.Contains(body, "/calls/"+r.ID+`"`); shown != (r.ID == want.ID) {
				t.Errorf("calls?%s shows %s: %v", query, r.ID, shown)
			}
		}
	}

	for list, label := range map[string]string{"/calls": "Began from", "/recordings": "Stored from"} {
		a := b.get(base + list + "?after=tomorrow")
		want := `<a href="#f-after">` + label + " must be a day, such as 2030-01-31.</a>"
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, want) ||
			!strings.Contains(a.body, `id="f-after-fault"`) {
			t.Errorf("%s with an invalid day: %s, want %q", list, a.Status, want)
		}
	}
}

func TestCallPage(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	past := w.addCall(over(calls.NormalClearing, true))

	body := b.get(base + "/calls/" + past.ID).body
	for _, text := range []string{"Answered", "Hung up", "NORMAL_CLEARING", "Good (MOS 4.", "UDP",
		"The call was not recorded.", "Call ended", base + "/subscribers/" + past.To.SubscriberID,
		base + "/audit?target=" + past.ID, "selvage call show " + past.ID} {
		if !strings.Contains(body, text) {
			t.Errorf("the page of a call lacks %q", text)
		}
	}

	if strings.Contains(body, `id="hang-up"`) {
		t.Error("a call that has ended can be hung up")
	}
	for _, path := range []string{"/calls/" + uuid.NewString(), "/calls/x"} {
		if a := b.get(base + path); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s = %s, want 404", path, a.Status)
		}
	}

	if a := b.get("/dashboard/projects/" + w.two.ID + "/calls/" + past.ID); a.StatusCode != http.StatusNotFound {
		t.Errorf("the call in another project = %s, want 404", a.Status)
	}
}

// TestHangUp shows that operators with write permission can end calls and viewers cannot.
func TestHangUp(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	runs, past := w.addCall(talking), w.addCall(over(calls.UserBusy, false))
	list := "/dashboard/projects/" + w.one.ID + "/calls"

	for _, path := range []string{list, list + "/" + runs.ID} {
		if a := viewer.get(path); a.StatusCode != 200 || strings.Contains(a.body, "/hangup") {
			t.Errorf("a viewer's %s = %s %s, want no button to hang up", path, a.Status, a.body)
		}
	}
	if a := viewer.post(list, list+"/"+runs.ID+"/hangup", nil); a.StatusCode != http.StatusForbidden {
		t.Errorf("hanging up by a viewer = %s, want 403", a.Status)
	}
	if a := b.send(b.request("POST", list+"/"+runs.ID+"/hangup", url.Values{})); a.StatusCode != http.StatusForbidden {
		t.Errorf("hanging up without a form token = %s, want 403", a.Status)
	}
	if asked, err := w.rows.TakeRequests(t.Context(), "n"); err != nil || len(asked) != 0 {
		t.Fatalf("refused requests end the calls %v, %v, want none", asked, err)
	}

	for id, done := range map[string]string{runs.ID: "hungup", past.ID: "callover"} {
		a := b.post(list, list+"/"+id+"/hangup", nil)
		if a.StatusCode != http.StatusSeeOther || !strings.HasSuffix(a.Header.Get("Location"), "?done="+done) {
			t.Errorf("hanging up = %s %s, want 303 to done=%s", a.Status, a.Header.Get("Location"), done)
		}
	}

	for _, path := range []string{list, list + "/" + runs.ID} {
		body := b.get(path).body
		if strings.Contains(body, "In call") || !strings.Contains(body, "Ending") || strings.Contains(body, "/hangup") {
			t.Errorf("%s shows a call that is about to end as running", path)
		}
	}

	if asked, err := w.rows.TakeRequests(t.Context(), "n"); err != nil ||
		!slices.Equal(asked, []calls.Request{{ProjectID: runs.ProjectID, CallID: runs.ID, HangUp: true}}) {
		t.Errorf("the calls to end are %v, %v, want %s", asked, err, runs.ID)
	}
}

// TestCallSnippets shows that code for calling an address appears only on pages of resources that
// answer calls.
func TestCallSnippets(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base, email := "/dashboard/projects/"+w.one.ID, "alice@example.com"
	alice, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	room, err := w.fabric.Resources.Create(t.Context(), w.one.ID,
		w.fabric.Resources.Kinds().ByPath("conference_rooms"), kinds.Values{"name": []byte(`"lobby"`)})
	must(t, err)
	app, err := w.fabric.Resources.Create(t.Context(), w.one.ID,
		w.fabric.Resources.Kinds().ByPath("relay_applications"),
		kinds.Values{"name": []byte(`"app"`), "topic": []byte(`"office"`)})
	must(t, err)

	for path, answers := range map[string]bool{"/subscribers/" + alice.ID: true, "/resources/" + room.ID: true,
		"/resources/" + app.ID: false} {
		body := b.get(base + path).body
		if dials := strings.Contains(body, "client.dial("); dials != answers {
			t.Errorf("%s has code to call it: %v, want %v", path, dials, answers)
		}
		if warns := strings.Contains(body, calls.NotImplemented.Text); warns == answers {
			t.Errorf("%s says that nothing answers: %v, want %v", path, warns, !answers)
		}
	}
}

// TestNoCalls shows that if the server serves no calls, the page says so instead of showing code
// for calling an address.
func TestNoCalls(t *testing.T) {
	for _, none := range []bool{true, false} {
		w := newWorldOf(&world{TB: t, noCalls: none})
		_, b := w.operator("ann@example.com", ofAll)
		email := "alice@example.com"
		alice, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		body := b.get("/dashboard/projects/" + w.one.ID + "/subscribers/" + alice.ID).body
		if warns := strings.Contains(body, "listen_media"); warns != none {
			t.Errorf("with noCalls = %v, the page says so: %v", none, warns)
		}
	}
}

// TestCallLinks shows that recordings and their calls link to each other, and so do subscribers and
// their calls.
func TestCallLinks(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base, email := "/dashboard/projects/"+w.one.ID, "alice@example.com"
	call := uuid.NewString()
	rec := w.record(w.one.ID, call)
	alice, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	w.addCall(func(r *calls.Record) {
		over(calls.NormalClearing, true)(r)
		r.ID, r.RecordingSid, r.From.SubscriberID = call, rec.Sid, alice.ID
	})

	for path, link := range map[string]string{
		"/calls/" + call:           base + "/recordings/" + rec.Sid,
		"/calls":                   base + "/recordings?call=" + call,
		"/recordings/" + rec.Sid:   base + "/calls/" + call,
		"/subscribers/" + alice.ID: base + "/calls?subscriber=" + alice.ID,
	} {
		if !strings.Contains(b.get(base+path).body, `href="`+link+`"`) {
			t.Errorf("%s does not link to %s", path, link)
		}
	}
}

// TestManyLiveCalls shows that the list of running calls is limited and says that it is incomplete.
func TestManyLiveCalls(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	list := "/dashboard/projects/" + w.one.ID + "/calls"
	const shown, more = 100, "More calls are live"
	for range shown {
		w.addCall(talking)
	}
	if strings.Contains(b.get(list).body, more) {
		t.Errorf("the list of %d live calls shows %q", shown, more)
	}

	w.addCall(talking)
	body := b.get(list).body
	if rows := strings.Count(body, "/hangup"); rows != shown || !strings.Contains(body, more) {
		t.Errorf("the list of %d live calls shows %d, want %d and %q", shown+1, rows, shown, more)
	}
}

// TestFollowCalls shows that the list of calls and the page of a running call are notified when the
// call ends.
func TestFollowCalls(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	runs := w.addCall(talking)
	list := "/dashboard/projects/" + w.one.ID + "/calls"
	var streams []follower
	for _, path := range []string{list, list + "/" + runs.ID} {
		from := html.UnescapeString(between(b.get(path).body, `data-live="`, `"`))
		f := b.follow(from)
		if f.StatusCode != http.StatusOK {
			t.Fatalf("%s = %s, want 200", from, f.Status)
		}
		streams = append(streams, f)
	}

	over(calls.NormalClearing, true)(&runs)
	must(t, w.rows.SaveCall(t.Context(), runs))
	for _, f := range streams {
		if got := f.next(); got != "new" {
			t.Errorf("after the end of a call the event is %q, want new", got)
		}
	}
	if body := b.get(list + "/" + runs.ID).body; strings.Contains(body, "data-live") {
		t.Error("the page of a call that has ended waits for changes")
	}
}
