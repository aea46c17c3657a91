package laml_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
)

// addCall saves a call from the subscriber to /private/bob that began at the given time.
func (s *server) addCall(t *testing.T, at time.Time, change func(*calls.Record)) calls.Record {
	t.Helper()
	key := calls.FirstKey(at)
	r := calls.Record{
		Key:       key[:24] + uuid.NewString()[24:],
		ID:        uuid.NewString(),
		ProjectID: s.project,
		Node:      "n",
		State:     calls.Created,
		Created:   at,
		Dialed:    "/private/bob",
		From:      calls.Party{Name: "Alice", Address: "/private/alice", SubscriberID: s.subscriber},
		To:        calls.Party{Name: "Bob", Address: "/private/bob", SubscriberID: uuid.NewString()},
	}
	if change != nil {
		change(&r)
	}

	if err := s.store.SaveCall(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// ended returns a change that ends a call. The call ends ten seconds after it began, or one minute
// after it was answered.
func ended(cause calls.Cause, answered bool) func(*calls.Record) {
	return func(r *calls.Record) {
		r.State = calls.Completed
		r.Cause = cause
		r.Ended = r.Created.Add(10 * time.Second)
		if answered {
			r.Answered = r.Created.Add(5 * time.Second)
			r.Ended = r.Answered.Add(time.Minute)
		}
	}
}

func ringing(r *calls.Record) { r.State = calls.Ringing }

func inCall(r *calls.Record) {
	r.State = calls.InCall
	r.Answered = r.Created
}

func TestCallDocument(t *testing.T) {
	s := newServer(t)
	r := s.addCall(t, s.clock.now(), func(r *calls.Record) {
		ended(calls.NormalClearing, true)(r)
		r.Received = 3000
		r.Jitter = 2 * time.Millisecond
		r.Transport = "udp"
	})
	want := map[string]any{
		"sid":             r.ID,
		"account_sid":     s.project,
		"status":          "completed",
		"duration":        60.0,
		"direction":       "inbound",
		"from":            "/private/alice",
		"to":              "/private/bob",
		"caller_name":     "Alice",
		"price":           nil,
		"parent_call_sid": nil,
		"start_time":      "Sat, 21 Nov 2026 10:00:00 +0000",
		"end_time":        "Sat, 21 Nov 2026 10:01:05 +0000",
		"uri":             s.path("/Calls/" + r.ID + ".json"),
	}
	for _, path := range []string{"/Calls/" + r.ID, "/Calls/" + r.ID + ".json"} {
		a := s.do(t, "GET", s.path(path), s.basic)
		got := read[map[string]any](t, a)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s of %s = %v, want %v", name, path, got[name], value)
			}
		}

		doc := read[struct {
			Details struct{ Quality *struct{ Transport string } }
		}](t, a)
		if doc.Details.Quality == nil {
			t.Fatalf("the details of %s = %v, want the quality", path, got["details"])
		}
		if transport := doc.Details.Quality.Transport; transport != "udp" {
			t.Errorf("the transport of %s is %q, want udp", path, transport)
		}
	}
}

// A callList is the document of a page of calls.
type callList struct {
	NextPageURI *string `json:"next_page_uri"`
	Calls       []struct{ Sid, Status string }
}

func (l callList) sids() []string {
	var sids []string
	for _, c := range l.Calls {
		sids = append(sids, c.Sid)
	}
	return sids
}

func TestListCalls(t *testing.T) {
	s := newServer(t)
	addCall := func(hour int, change func(*calls.Record)) (sid string) {
		began := time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC)
		return s.addCall(t, began, change).ID
	}
	byStatus := map[string]string{
		"queued":      addCall(1, nil),
		"ringing":     addCall(2, ringing),
		"in-progress": addCall(3, inCall),
		"completed":   addCall(4, ended(calls.NodeLost, true)),
		"busy":        addCall(5, ended(calls.UserBusy, false)),
		"no-answer":   addCall(6, ended(calls.UserNotRegistered, false)),
		"canceled":    addCall(7, ended(calls.OriginatorCancel, false)),
		"failed":      addCall(8, ended(calls.UnallocatedNumber, false)),
	}
	for status, sid := range byStatus {
		got := read[callList](t, s.do(t, "GET", s.path("/Calls?Status="+status), s.basic))
		if !slices.Equal(got.sids(), []string{sid}) {
			t.Errorf("the calls with Status=%s are %+v, want %s", status, got.Calls, sid)
			continue
		}
		if got.Calls[0].Status != status {
			t.Errorf("the status of a call with Status=%s is %s", status, got.Calls[0].Status)
		}
	}

	newest := []string{byStatus["failed"], byStatus["canceled"], byStatus["no-answer"]}
	for query, want := range map[string][]string{
		"From=" + url.QueryEscape("/private/alice") + "&StartTime%3E=2026-11-20T06:00:00Z": newest,
		"To=nobody":                             nil,
		"ParentCallSid=x":                       nil,
		"StartTime=2026-11-20T08:00:00Z":        newest[:1],
		"StartTime%3C=2026-11-20T01:30:00Z":     {byStatus["queued"]},
		"StartTime=2026-11-19":                  nil,
		"EndTime%3E=2026-11-20T08:00:00Z":       newest[:1],
		"EndTime%3C=2026-11-20T05:00:00Z":       {byStatus["completed"]},
		"StartTime=2026-11-20&Status=completed": {byStatus["completed"]},
	} {
		got := read[callList](t, s.do(t, "GET", s.path("/Calls.json?"+query), s.basic)).sids()
		if !slices.Equal(got, want) {
			t.Errorf("the calls with %s are %q, want %q", query, got, want)
		}
	}

	var paged []string
	firstPage := s.path("/Calls.json?PageSize=3")
	for next := &firstPage; next != nil; {
		p := read[callList](t, s.do(t, "GET", *next, s.basic))
		paged = append(paged, p.sids()...)
		next = p.NextPageURI
	}
	if len(paged) != 8 {
		t.Fatalf("the pages contain %d calls, want 8", len(paged))
	}
	if !slices.Equal(paged[:3], newest) {
		t.Errorf("the first calls are %q, want the newest, %q", paged[:3], newest)
	}
	for _, query := range []string{"Status=over", "StartTime=x", "EndTime%3C=x", "Page=1", "From=a&From=b"} {
		wantError(t, query, s.do(t, "GET", s.path("/Calls?"+query), s.basic), 400, 10000)
	}
}

func TestEndCall(t *testing.T) {
	s := newServer(t)
	answered := s.addCall(t, s.clock.now(), inCall).ID
	unanswered := s.addCall(t, s.clock.now(), ringing).ID
	past := s.addCall(t, s.clock.now(), ended(calls.NormalClearing, true)).ID
	end := func(sid, fields string, as option) answer {
		return s.do(t, "POST", s.path("/Calls/"+sid+".json"), as, body(formType, []byte(fields)))
	}

	wantError(t, "canceling an answered call", end(answered, "Status=canceled", s.basic), 400, 21220)
	wantError(t, "ending a past call", end(past, "Status=completed", s.basic), 400, 21220)
	wantError(t, "a different status", end(answered, "Status=busy", s.basic), 400, 10000)
	wantError(t, "no status", end(answered, "", s.basic), 400, 10000)
	wantError(t, "a Url", end(answered, "Status=completed&Url=https://a.example", s.basic), 400, 10000)
	wantError(t, "an unknown call", end(uuid.NewString(), "Status=completed", s.basic), 404, 20404)
	wantError(t, "an id that is not a UUID", end("x", "Status=completed", s.basic), 404, 20404)
	wantError(t, "a subscriber", end(answered, "Status=completed", asSubscriber), 403, 20403)
	if requests, err := s.store.TakeRequests(t.Context(), "n"); err != nil || len(requests) != 0 {
		t.Fatalf("after refused requests, the calls to end are %v, %v, want none", requests, err)
	}

	wantStatus(t, "ending a call", end(answered, "Status=completed", s.basic), 200)
	wantStatus(t, "canceling a call", end(unanswered, "Status=canceled", s.basic), 200)
	if requests, err := s.store.TakeRequests(t.Context(), "n"); err != nil || len(requests) != 2 {
		t.Errorf("the calls to end are %v, %v, want both", requests, err)
	}
}

func TestCallAccess(t *testing.T) {
	s := newServer(t)
	own := s.addCall(t, s.clock.now(), nil)
	others := s.addCall(t, s.clock.now(), func(r *calls.Record) { r.From.SubscriberID = uuid.NewString() })
	wantError(t, "a list without credentials", s.do(t, "GET", s.path("/Calls")), 401, 20003)
	wantError(t, "a call without credentials", s.do(t, "GET", s.path("/Calls/"+own.ID)), 401, 20003)

	other := s.addProject(t)
	otherCalls := "/2010-04-01/Accounts/" + other + "/Calls"
	asOther := func(r *http.Request) { r.SetBasicAuth(other, key) }
	wantError(t, "another project's call", s.do(t, "GET", otherCalls+"/"+own.ID, asOther), 404, 20404)
	wantError(t, "another account", s.do(t, "GET", otherCalls, s.basic), 404, 20404)
	wantError(t, "another subscriber's call", s.do(t, "GET", s.path("/Calls/"+others.ID), asSubscriber), 404, 20404)
	wantError(t, "a different extension", s.do(t, "GET", s.path("/Calls/"+own.ID+".wav"), s.basic), 404, 20404)
	wantError(t, "a different method", s.do(t, "DELETE", s.path("/Calls/"+own.ID), s.basic), 405, 20405)

	got := read[callList](t, s.do(t, "GET", s.path("/Calls"), asSubscriber)).sids()
	if !slices.Equal(got, []string{own.ID}) {
		t.Errorf("a subscriber's calls are %q, want %q", got, own.ID)
	}
	wantStatus(t, "a subscriber's own call", s.do(t, "GET", s.path("/Calls/"+own.ID), asSubscriber), 200)
}
