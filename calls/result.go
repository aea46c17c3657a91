package calls

import "slices"

// A Result is what became of a call that has ended.
type Result string

// The results.
const (
	Connected Result = "connected"
	Busy      Result = "busy"     // the callee rejected it, or was in too many calls
	Missed    Result = "missed"   // nobody answered, or the callee was offline
	Canceled  Result = "canceled" // it was ended before anybody answered
	Failed    Result = "failed"   // it could not or must not be made
)

// unanswered maps the causes of calls that nobody answered to their results. All other causes
// mean Failed.
var unanswered = map[string]Result{
	UserBusy.Text:          Busy,
	"REJECT_ALL":           Busy,
	NoAnswer.Text:          Missed,
	UserNotRegistered.Text: Missed,
	NormalClearing.Text:    Canceled,
	OriginatorCancel.Text:  Canceled,
	managerRequest.Text:    Canceled,
}

// Result returns what became of the call, or "" while it runs.
func (r Record) Result() Result {
	switch result, known := unanswered[r.Cause.Text]; {
	case r.Ended.IsZero():
		return ""
	case !r.Answered.IsZero():
		return Connected
	case known:
		return result
	}
	return Failed
}

// Causes returns the causes of unanswered calls with a result. If others is true, the result is
// that of all causes but these.
func (r Result) Causes() (causes []string, others bool) {
	for cause, result := range unanswered {
		if result == r || r == Failed {
			causes = append(causes, cause)
		}
	}
	slices.Sort(causes)
	return causes, r == Failed
}
