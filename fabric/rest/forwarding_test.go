package rest_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestForwarding sets the destinations to which the calls of a subscriber are forwarded. Numbers
// are stored in E.164 format. An update of other members keeps the forwarding.
func TestForwarding(t *testing.T) {
	w := newWorld(t)
	one := subscribers + "/" + as[envelope](t, w.call(w.basic(), "POST", subscribers,
		`{"email":"bob@example.com","forward_busy":"/private/alice","ring_seconds":15}`)).ID
	w.call(w.basic(), "PUT", one, `{"forward_no_answer":"0049 (30) 123456","display_name":"Bob"}`)
	want := func(when string, busy, noAnswer string, seconds float64) {
		t.Helper()
		got := as[envelope](t, w.call(w.basic(), "GET", one, "")).Subscriber
		if got["forward_busy"] != busy || got["forward_no_answer"] != noAnswer || got["ring_seconds"] != seconds {
			t.Errorf("%s, the subscriber is %v, want %q, %q and %v seconds", when, got, busy, noAnswer, seconds)
		}
	}
	want("after an update", "/private/alice", "+4930123456", 15)

	for _, body := range []string{
		`{"forward_busy":"alice"}`, `{"forward_busy":"/private"}`, `{"forward_busy":"/private/alice?channel=video"}`,
		`{"forward_busy":"030123456"}`, `{"forward_no_answer":"+49"}`, `{"forward_no_answer":"sip:a@b.example"}`,
		`{"forward_no_answer":"/private/a\u0000b"}`, `{"ring_seconds":4}`, `{"ring_seconds":61}`, `{"ring_seconds":-1}`,
	} {
		if r := w.call(w.basic(), "PUT", one, body); r.status != http.StatusUnprocessableEntity {
			t.Errorf("PUT %s returned %d, want 422", body, r.status)
		}
	}
	want("after refusals", "/private/alice", "+4930123456", 15)
	w.call(w.basic(), "PUT", one, `{"forward_busy":"","forward_no_answer":"","ring_seconds":0}`)
	want("after it was emptied", "", "", 0)
}

// TestRingGroupMembers shows which members a ring group may have.
func TestRingGroupMembers(t *testing.T) {
	w := newWorld(t)
	for body, want := range map[string]string{
		`{"name":"a","members":["/private/alice","+4930123456"]}`:           "",
		`{"name":"e","members":[]}`:                                         "members",
		`{"name":"b","members":["alice"]}`:                                  "members",
		`{"name":"c","members":["/private/alice"," "]}`:                     "members",
		`{"name":"d","members":["/private/alice"],"forward_busy":"nobody"}`: "forward_busy",
	} {
		r := w.call(w.basic(), "POST", resources+"/ring_groups", body)
		if want == "" && r.status != http.StatusCreated ||
			want != "" && (r.status != http.StatusUnprocessableEntity || !strings.Contains(r.text, `"`+want+`"`)) {
			t.Errorf("POST %s returned %d %s, want a refusal of %q", body, r.status, r.text, want)
		}
	}
}
