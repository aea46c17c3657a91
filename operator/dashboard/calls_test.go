package dashboard_test

import (
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
	r := calls.Record{
		Key:       uuid.Must(uuid.NewV7()).String(),
		ID:        uuid.NewString(),
		ProjectID: w.one.ID,
		Node:      "n",
		State:     calls.Created,
		Created:   time.Now().Add(-time.Minute),
		Dialed:    "/private/bob",
		From:      calls.Party{Name: "Alice <b>", Address: "/private/alice", SubscriberID: uuid.NewString()},
		To:        calls.Party{Name: "Bob", Address: "/private/bob", SubscriberID: uuid.NewString()},
	}
	if change != nil {
		change(&r)
	}
	must(w, w.rows.SaveCall(w.Context(), r))
	return r
}

// talking marks a call as answered and still running.
func talking(r *calls.Record) { r.State, r.Answered = calls.InCall, r.Created.Add(time.Second) }

// over returns a function that marks a call as ended.
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
			r.RoomSession = session
			r.From.Name = name
			r.To = calls.Party{Name: "Lobby", Address: "/public/lobby"}
		}))
	}
	elsewhere := w.addCall(talking)

	page := b.get("/dashboard/projects/" + w.one.ID + "/calls/" + members[0].ID)
	page.wantText(t, "Members of the room", "Alice", "Bob", "/calls/"+members[1].ID)
	page.wantNoText(t, "/calls/"+elsewhere.ID)
}

// TestCalls shows that running calls are listed before past ones, and that each call links to its
// page and its parties.
func TestCalls(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	past := w.addCall(over(calls.NormalClearing, true))
	missed := w.addCall(over(calls.UserNotRegistered, false))
	running := w.addCall(talking)

	page := b.get(base + "/calls")
	inOrder := []string{
		"<h2>Live</h2>", base + "/calls/" + running.ID + `"`, "In call", "Hang up",
		"<h2>History</h2>", base + "/calls/" + missed.ID,
	}
	var at []int
	for _, text := range inOrder {
		at = append(at, strings.Index(page.body, text))
	}
	if !slices.IsSorted(at) {
		t.Errorf("the list has %q at %v, want live calls before past ones", inOrder, at)
	}
	page.wantText(t, inOrder...)
	page.wantText(t, "Missed", "The callee was offline",
		base+"/calls/"+past.ID, "Answered", "0:30", "Hung up", "Good",
		base+"/subscribers/"+past.From.SubscriberID, "Alice &lt;b&gt;", "/private/bob")

	for query, want := range map[string]calls.Record{
		"result=missed":                      missed,
		"result=connected":                   past,
		"subscriber=" + past.To.SubscriberID: past,
	} {
		filtered := b.get(base + "/calls?" + query)
		for _, r := range []calls.Record{past, missed} {
			link := "/calls/" + r.ID + `"`
			if r.ID == want.ID {
				filtered.wantText(t, link)
			} else {
				filtered.wantNoText(t, link)
			}
		}
	}

	// The search box also works within the calls of a subscriber.
	both := "/calls?subscriber=" + past.To.SubscriberID + "&q="
	b.get(base+both+"bob").wantText(t, "/calls/"+past.ID+`"`)
	b.get(base+both+"carol").wantNoText(t, "/calls/"+past.ID+`"`)

	for list, label := range map[string]string{"/calls": "Began on or after", "/recordings": "Stored on or after"} {
		b.get(base+list+"?after=tomorrow").wantRefused(t, `id="f-after-fault"`,
			`<a href="#f-after">`+label+" must be a day, such as 2030-01-31.</a>")
	}
}

// TestCallPage shows that the page of a call describes the call and links to related pages.
func TestCallPage(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	past := w.addCall(over(calls.NormalClearing, true))

	page := b.get(base + "/calls/" + past.ID)
	page.wantText(t, "Answered", "Hung up", "NORMAL_CLEARING", "Good (MOS 4.", "UDP",
		"The call was not recorded.", "Call ended",
		base+"/subscribers/"+past.To.SubscriberID, base+"/audit?target="+past.ID, "selvage call show "+past.ID)
	page.wantNoText(t, `id="hang-up"`) // the call has ended

	for _, path := range []string{
		base + "/calls/" + uuid.NewString(),
		base + "/calls/x",
		"/dashboard/projects/" + w.two.ID + "/calls/" + past.ID,
	} {
		b.get(path).wantStatus(t, http.StatusNotFound)
	}
}

// TestHangUp shows that operators with write permission can end calls and viewers cannot.
func TestHangUp(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	running, past := w.addCall(talking), w.addCall(over(calls.UserBusy, false))
	list := "/dashboard/projects/" + w.one.ID + "/calls"
	hangUp := list + "/" + running.ID + "/hangup"

	for _, path := range []string{list, list + "/" + running.ID} {
		shown := viewer.get(path)
		shown.wantStatus(t, http.StatusOK)
		shown.wantNoText(t, "/hangup")
	}
	viewer.post(list, hangUp, nil).wantStatus(t, http.StatusForbidden)
	withoutToken := b.send(b.request("POST", hangUp, url.Values{}))
	withoutToken.wantStatus(t, http.StatusForbidden)
	requests, err := w.rows.TakeRequests(t.Context(), "n")
	must(t, err)
	if len(requests) != 0 {
		t.Fatalf("the refused forms end the calls %v, want none", requests)
	}

	for id, done := range map[string]string{running.ID: "hungup", past.ID: "callover"} {
		a := b.post(list, list+"/"+id+"/hangup", nil)
		a.wantStatus(t, http.StatusSeeOther)
		if at := a.Header.Get("Location"); !strings.HasSuffix(at, "?done="+done) {
			t.Errorf("%s leads to %s, want done=%s", a, at, done)
		}
	}
	for _, path := range []string{list, list + "/" + running.ID} {
		shown := b.get(path)
		shown.wantText(t, "Ending")
		shown.wantNoText(t, "In call", "/hangup")
	}

	requests, err = w.rows.TakeRequests(t.Context(), "n")
	must(t, err)
	want := []calls.Request{{ProjectID: running.ProjectID, CallID: running.ID, HangUp: true}}
	if !slices.Equal(requests, want) {
		t.Errorf("the requests for calls are %v, want %v", requests, want)
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
	room := w.room("lobby")
	app, err := w.fabric.Resources.Create(t.Context(), w.one.ID,
		w.fabric.Resources.Kinds().ByPath("relay_applications"),
		kinds.Values{"name": []byte(`"app"`), "topic": []byte(`"office"`)})
	must(t, err)

	const dials = "client.dial("
	for _, path := range []string{"/subscribers/" + alice.ID, "/resources/" + room.ID} {
		page := b.get(base + path)
		page.wantText(t, dials)
		page.wantNoText(t, calls.NotImplemented.Text)
	}
	page := b.get(base + "/resources/" + app.ID) // nothing answers its calls
	page.wantText(t, calls.NotImplemented.Text)
	page.wantNoText(t, dials)
}

// TestNoCalls shows that if the server serves no calls, a subscriber's page says so.
func TestNoCalls(t *testing.T) {
	for _, noCalls := range []bool{true, false} {
		w := newWorldOf(&world{TB: t, noCalls: noCalls})
		_, b := w.operator("ann@example.com", ofAll)
		email := "alice@example.com"
		alice, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		body := b.get("/dashboard/projects/" + w.one.ID + "/subscribers/" + alice.ID).body
		if got := strings.Contains(body, "listen_media"); got != noCalls {
			t.Errorf("with noCalls = %t, the page says that no calls are served: %t", noCalls, got)
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
		r.ID = call
		r.RecordingSid = rec.Sid
		r.From.SubscriberID = alice.ID
	})

	for path, link := range map[string]string{
		"/calls/" + call:           base + "/recordings/" + rec.Sid,
		"/calls":                   base + "/recordings?call=" + call,
		"/recordings/" + rec.Sid:   base + "/calls/" + call,
		"/subscribers/" + alice.ID: base + "/calls?subscriber=" + alice.ID,
	} {
		b.get(base+path).wantText(t, `href="`+link+`"`)
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
	b.get(list).wantNoText(t, more)

	w.addCall(talking)
	page := b.get(list)
	page.wantText(t, more)
	if rows := strings.Count(page.body, "/hangup"); rows != shown {
		t.Errorf("the list of %d live calls shows %d, want %d", shown+1, rows, shown)
	}
}

// TestFollowCalls shows that the list of calls and the page of a running call are notified when the
// call ends.
func TestFollowCalls(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	running := w.addCall(talking)
	list := "/dashboard/projects/" + w.one.ID + "/calls"
	var streams []follower
	for _, path := range []string{list, list + "/" + running.ID} {
		stream := b.follow(b.get(path).find(t, `data-live="([^"]*)"`))
		if stream.StatusCode != http.StatusOK {
			t.Fatalf("the events of %s: %s, want 200", path, stream.Status)
		}
		streams = append(streams, stream)
	}

	over(calls.NormalClearing, true)(&running)
	must(t, w.rows.SaveCall(t.Context(), running))
	for _, stream := range streams {
		if got := stream.next(); got != "new" {
			t.Errorf("after the end of a call the event is %q, want new", got)
		}
	}
	b.get(list+"/"+running.ID).wantNoText(t, "data-live")
}
