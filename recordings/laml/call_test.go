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
		Key: key[:24] + uuid.NewString()[24:], ID: uuid.NewString(), ProjectID: s.project, Node: "n",
		State: calls.Created, Created: at, Dialed: "/private/bob",
		From: calls.Party{Name: "Alice", Address: "/private/alice", SubscriberID: s.subscriber},
		To:   calls.Party{Name: "Bob", Address: "/private/bob", SubscriberID: uuid.NewString()},
	}
	if change != nil {
		change(&r)
	}

	if err := s.store.SaveCall(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// over returns a change that ends a call. The call ends ten seconds after it began, or one minute
// after it was answered.
func over(cause calls.Cause, answered bool) func(*calls.Record) {
	return func(r *calls.Record) {
		r.State, r.Cause, r.Ended = calls.Completed, cause, r.Created.Add(10*time.Second)
		if answered {
			r.Answered = r.Created.Add(5 * time.Second)
			r.Ended = r.Answered.Add(time.Minute)
		}
	}
}

func TestCallDocument(t *testing.T) {
	s := newServer(t)
	r := s.addCall(t, s.clock.now(), func(r *calls.Record) {
		over(calls.NormalClearing, true)(r)
		r.Received, r.Jitter, r.Transport = 3000, 2*time.Millisecond, "udp"
	})
	want := map[string]any{
		"sid": r.ID, "account_sid": s.project, "status": "completed", "duration": float64(60), "direction": "inbound",
		"from": "/private/alice", "to": "/private/bob", "caller_name": "Alice", "price": nil, "parent_call_sid": nil,
		"start_time": "Sat, 21 Nov 2026 10:00:00 +0000", "end_time": "Sat, 21 Nov 2026 10:01:05 +0000",
		"uri": s.path("/Calls/" + r.ID + ".json"),
	}
	for _, path := range []string{"/Calls/" + r.ID, "/Calls/" + r.ID + ".json"} {
		got := read[map[string]any](t, s.do(t, "GET", s.path(path), s.basic))
		for name, w := range want {
			if got[name] != w {
				t.Errorf("%s of %s = %v, want %v", name, path, got[name], w)
			}
		}
		if q, ok := got["details"].(map[string]any)["quality"].(map[string]any); !ok || q["transport"] != "udp" {
			t.Errorf("the details of %s = %v, want the quality over udp", path, got["details"])
		}
	}
}

// A callList is the document of a page of calls.
type callList struct {
	NextPageURI *string `json:"next_page_uri"`
	Calls       []struct{ Sid, Status string }
}

func (l callList) sids() []string {
	sids := []string{}
	for _, c := range l.Calls {
		sids = append(sids, c.Sid)
	}
	return sids
}

func TestListCalls(t *testing.T) {
	s := newServer(t)
	at := func(hour int) time.Time { return time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC) }
	states := map[calls.State]func(*calls.Record){
		calls.Created: nil, calls.Ringing: func(r *calls.Record) { r.State = calls.Ringing },
		calls.InCall: func(r *calls.Record) { r.State, r.Answered = calls.InCall, r.Created },
	}
	byStatus := map[string]string{
		"queued":      s.addCall(t, at(1), states[calls.Created]).ID,
		"ringing":     s.addCall(t, at(2), states[calls.Ringing]).ID,
		"in-progress": s.addCall(t, at(3), states[calls.InCall]).ID,
		"completed":   s.addCall(t, at(4), over(calls.NodeLost, true)).ID,
		"busy":        s.addCall(t, at(5), over(calls.UserBusy, false)).ID,
		"no-answer":   s.addCall(t, at(6), over(calls.UserNotRegistered, false)).ID,
		"canceled":    s.addCall(t, at(7), over(calls.OriginatorCancel, false)).ID,
		"failed":      s.addCall(t, at(8), over(calls.UnallocatedNumber, false)).ID,
	}
	for status, sid := range byStatus {
		got := read[callList](t, s.do(t, "GET", s.path("/Calls?Status="+status), s.basic))
		if !slices.Equal(got.sids(), []string{sid}) || got.Calls[0].Status != status {
			t.Errorf("the calls with Status=%s are %+v, want %s", status, got.Calls, sid)
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
		if !slices.Equal(got, append([]string{}, want...)) {
			t.Errorf("the calls with %s are %q, want %q", query, got, want)
		}
	}

	var paged []string
	for uri := s.path("/Calls.json?PageSize=3"); ; {
		p := read[callList](t, s.do(t, "GET", uri, s.basic))
		paged = append(paged, p.sids()...)
		if p.NextPageURI == nil {
			break
		}
		uri = *p.NextPageURI
	}

	if len(paged) != 8 || !slices.Equal(paged[:3], newest) {
		t.Errorf("the pages contain %q, want 8 calls, newest first", paged)
	}
	for _, query := range []string{"Status=over", "StartTime=x", "EndTime%3C=x", "Page=1", "From=a&From=b"} {
		wantError(t, query, s.do(t, "GET", s.path("/Calls?"+query), s.basic), 400, 10000)
	}
}

func TestEndCall(t *testing.T) {
	s := newServer(t)
	runs := s.addCall(t, s.clock.now(), func(r *calls.Record) { r.State, r.Answered = calls.InCall, r.Created })
	rings := s.addCall(t, s.clock.now(), func(r *calls.Record) { r.State = calls.Ringing })
	past := s.addCall(t, s.clock.now(), over(calls.NormalClearing, true))
	form := func(text string) option { return body("application/x-www-form-urlencoded", []byte(text)) }
	end := func(sid, text string, who option) answer {
		return s.do(t, "POST", s.path("/Calls/"+sid+".json"), who, form(text))
	}

	wantError(t, "canceling an answered call", end(runs.ID, "Status=canceled", s.basic), 400, 21220)
	wantError(t, "ending a past call", end(past.ID, "Status=completed", s.basic), 400, 21220)
	wantError(t, "a different status", end(runs.ID, "Status=busy", s.basic), 400, 10000)
	wantError(t, "no status", end(runs.ID, "", s.basic), 400, 10000)
	wantError(t, "a document", end(runs.ID, "Status=completed&Url=https://a.example", s.basic), 400, 10000)
	wantError(t, "an unknown call", end(uuid.NewString(), "Status=completed", s.basic), 404, 20404)
	wantError(t, "an id that is no UUID", end("x", "Status=completed", s.basic), 404, 20404)
	wantError(t, "a subscriber", end(runs.ID, "Status=completed", asSubscriber), 403, 20403)
	if asked, err := s.store.TakeRequests(t.Context(), "n"); err != nil || len(asked) != 0 {
		t.Fatalf("refused requests end %v, %v, want none", asked, err)
	}

	for sid, status := range map[string]string{runs.ID: "completed", rings.ID: "canceled"} {
		if a := end(sid, "Status="+status, s.basic); a.StatusCode != 200 {
			t.Errorf("Status=%s = %d %s, want 200", status, a.StatusCode, a.body)
		}
	}
	if asked, err := s.store.TakeRequests(t.Context(), "n"); err != nil || len(asked) != 2 {
		t.Errorf("the calls to end are %v, %v, want both", asked, err)
	}
}

func TestCallAccess(t *testing.T) {
	s := newServer(t)
	own := s.addCall(t, s.clock.now(), nil)
	others := s.addCall(t, s.clock.now(), func(r *calls.Record) { r.From.SubscriberID = uuid.NewString() })
	for name, a := range map[string]answer{
		"a list without credentials": s.do(t, "GET", s.path("/Calls")),
		"a call without credentials": s.do(t, "GET", s.path("/Calls/"+own.ID)),
	} {
		wantError(t, name, a, 401, 20003)
	}

	other := s.addProject(t)
	wantError(t, "another project's call", s.do(t, "GET", "/2010-04-01/Accounts/"+other+"/Calls/"+own.ID,
		func(r *http.Request) { r.SetBasicAuth(other, key) }), 404, 20404)
	wantError(t, "another account", s.do(t, "GET", "/2010-04-01/Accounts/"+other+"/Calls", s.basic), 404, 20404)
	wantError(t, "another subscriber's call", s.do(t, "GET", s.path("/Calls/"+others.ID), asSubscriber), 404, 20404)
	wantError(t, "a different extension", s.do(t, "GET", s.path("/Calls/"+own.ID+".wav"), s.basic), 404, 20404)
	wantError(t, "a different method", s.do(t, "DELETE", s.path("/Calls/"+own.ID), s.basic), 405, 20405)

	got := read[callList](t, s.do(t, "GET", s.path("/Calls"), asSubscriber)).sids()
	if !slices.Equal(got, []string{own.ID}) {
		t.Errorf("a subscriber's calls are %q, want %q", got, own.ID)
	}
	if a := s.do(t, "GET", s.path("/Calls/"+own.ID), asSubscriber); a.StatusCode != 200 {
		t.Errorf("a subscriber's own call = %d, want 200", a.StatusCode)
	}
}
