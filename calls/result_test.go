package calls

import (
	"testing"
	"time"
)

// TestResult shows the result and the displayed reason for each cause.
func TestResult(t *testing.T) {
	at := time.Unix(1795255200, 0)
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
		{Cause{"NEW_CAUSE", 99}, false, Failed, "NEW_CAUSE"},
	}
	for _, tt := range tests {
		r := Record{Cause: tt.cause, Created: at, Ended: at.Add(time.Minute)}
		if tt.answered {
			r.Answered = at.Add(time.Second)
		}
		if result, reason := r.Result(), r.Reason(); result != tt.result || reason != tt.reason {
			t.Errorf("a call with %s, answered %v = %s, %q, want %s, %q",
				tt.cause.Text, tt.answered, result, reason, tt.result, tt.reason)
		}
	}

	runs := Record{Cause: NormalClearing, Created: at}
	if result, reason := runs.Result(), runs.Reason(); result != "" || reason != "" {
		t.Errorf("a running call = %s, %q, want neither", result, reason)
	}
}

// TestReasons shows that each cause that a client or the server can set has a description.
func TestReasons(t *testing.T) {
	for _, c := range causes {
		if reasons[c.Text] == "" {
			t.Errorf("the cause %s has no description", c.Text)
		}
	}
}
