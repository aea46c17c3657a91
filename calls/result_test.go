package calls

import (
	"testing"
	"time"
)

// TestResult shows the result and the displayed reason for each cause.
func TestResult(t *testing.T) {
	created := time.Unix(1795255200, 0)
	tests := []struct {
		cause    Cause
		answered bool
		result   Result
		reason   string
	}{
		{NormalClearing, true, Connected, "Hung up"},
		{NormalClearing, false, Canceled, "The caller gave up"},
		{OriginatorCancel, false, Canceled, "The caller gave up"},
		{managerRequest, false, Canceled, "Ended by a backend or an operator"},
		{managerRequest, true, Connected, "Ended by a backend or an operator"},
		{UserBusy, false, Busy, "Busy or rejected"},
		{causes["REJECT_ALL"], false, Busy, "Rejected on all devices"},
		{NoAnswer, false, Missed, "Nobody answered"},
		{UserNotRegistered, false, Missed, "The callee was offline"},
		{CallRejected, false, Failed, "The caller may not call this address"},
		{UnallocatedNumber, false, Failed, "No such address"},
		{NotImplemented, false, Failed, "Nothing answers calls at this address"},
		{Congestion, false, Failed, "A limit was reached"},
		{NodeLost, true, Connected, "The server stopped"},
		{TokenRevoked, false, Failed, "The login or token was revoked"},
		{Cause{Text: "NEW_CAUSE", Code: 99}, false, Failed, "NEW_CAUSE"},
	}
	for _, tt := range tests {
		r := Record{Cause: tt.cause, Created: created, Ended: created.Add(time.Minute)}
		if tt.answered {
			r.Answered = created.Add(time.Second)
		}
		if got := r.Result(); got != tt.result {
			t.Errorf("%s, answered %v: the result is %s, want %s", tt.cause.Text, tt.answered, got, tt.result)
		}
		if got := r.Reason(); got != tt.reason {
			t.Errorf("%s, answered %v: the reason is %q, want %q", tt.cause.Text, tt.answered, got, tt.reason)
		}
	}

	running := Record{Cause: NormalClearing, Created: created}
	if got := running.Result(); got != "" {
		t.Errorf("the result of a running call is %s, want none", got)
	}
	if got := running.Reason(); got != "" {
		t.Errorf("the reason of a running call is %q, want none", got)
	}
}

// TestReasons shows that each cause that a client may send has a description.
func TestReasons(t *testing.T) {
	for _, c := range causes {
		if reasons[c.Text] == "" {
			t.Errorf("the cause %s has no description", c.Text)
		}
	}
}
