package rest_test

import (
	"net/http"
	"testing"
)

// TestForwarding shows which destinations the calls of a subscriber can be forwarded to. Numbers are
// stored in E.164 format. Members that are not sent remain unchanged.
func TestForwarding(t *testing.T) {
	w := newWorld(t)
	bob := w.create(`{"email":"bob@example.com","forward_busy":"/private/alice","ring_seconds":15}`)
	path := subscribers + "/" + bob.ID
	type forwarding struct {
		Busy     string  `json:"forward_busy"`
		NoAnswer string  `json:"forward_no_answer"`
		Seconds  float64 `json:"ring_seconds"`
	}
	wantForwarding := func(when string, want forwarding) {
		t.Helper()
		got := as[struct{ Subscriber forwarding }](t, w.call(w.basic(), "GET", path, "")).Subscriber
		if got != want {
			t.Errorf("%s, the forwarding is %+v, want %+v", when, got, want)
		}
	}

	w.call(w.basic(), "PUT", path, `{"forward_no_answer":"0049 (30) 123456","display_name":"Bob"}`)
	set := forwarding{Busy: "/private/alice", NoAnswer: "+4930123456", Seconds: 15}
	wantForwarding("after an update", set)
	for _, body := range []string{
		`{"forward_busy":"alice"}`,
		`{"forward_busy":"/private"}`,
		`{"forward_busy":"/private/alice?channel=video"}`,
		`{"forward_busy":"030123456"}`,
		`{"forward_no_answer":"+49"}`,
		`{"forward_no_answer":"sip:a@b.example"}`,
		`{"forward_no_answer":"/private/a\u0000b"}`,
		`{"ring_seconds":4}`,
		`{"ring_seconds":61}`,
		`{"ring_seconds":-1}`,
	} {
		r := w.call(w.basic(), "PUT", path, body)
		r.wantStatus(t, "PUT "+body, http.StatusUnprocessableEntity)
	}
	const wrong = `{"forward_no_answer":"+49","forward_busy":"alice"}`
	const want = "forward_busy:invalid_parameter forward_no_answer:invalid_parameter"
	if got := w.call(w.basic(), "PUT", path, wrong).faults(t); got != want {
		t.Errorf("PUT %s: got %s, want %s", wrong, got, want)
	}
	wantForwarding("after refusals", set)

	w.call(w.basic(), "PUT", path, `{"forward_busy":"","forward_no_answer":"","ring_seconds":0}`)
	wantForwarding("after its removal", forwarding{})
}

// TestRingGroupMembers shows which members a ring group may have.
func TestRingGroupMembers(t *testing.T) {
	w := newWorld(t)
	const path = resources + "/ring_groups"
	r := w.call(w.basic(), "POST", path, `{"name":"a","members":["/private/alice","+4930123456"]}`)
	r.wantStatus(t, "POST", http.StatusCreated)

	for body, member := range map[string]string{
		`{"name":"e","members":[]}`:                                         "members",
		`{"name":"b","members":["alice"]}`:                                  "members",
		`{"name":"c","members":["/private/alice"," "]}`:                     "members",
		`{"name":"d","members":["/private/alice"],"forward_busy":"nobody"}`: "forward_busy",
	} {
		r := w.call(w.basic(), "POST", path, body)
		r.wantStatus(t, "POST "+body, http.StatusUnprocessableEntity)
		r.wantText(t, "POST "+body, `"`+member+`"`)
	}
}
