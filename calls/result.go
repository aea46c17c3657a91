package calls

import (
	"slices"

	"github.com/selvage/selvage/fabric"
)

// A Result is the outcome of a call that has ended.
type Result string

// The results of a call.
const (
	Connected Result = "connected"
	Busy      Result = "busy"     // the callee was busy, or rejected the call
	Missed    Result = "missed"   // nobody answered, or the callee was offline
	Canceled  Result = "canceled" // the call was ended before it was answered
	Failed    Result = "failed"   // the call could not be made, or was not allowed
)

// unanswered maps the causes of unanswered calls to their results. All other causes mean Failed.
var unanswered = map[string]Result{
	UserBusy.Text:          Busy,
	"REJECT_ALL":           Busy,
	NoAnswer.Text:          Missed,
	UserNotRegistered.Text: Missed,
	NormalClearing.Text:    Canceled,
	OriginatorCancel.Text:  Canceled,
	managerRequest.Text:    Canceled,
}

// Result returns the outcome of the call, or "" while it is running.
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

// Causes returns the causes of unanswered calls that lead to the result. If others is true, it
// returns the causes that lead to other results, and all remaining causes lead to this result.
func (r Result) Causes() (causes []string, others bool) {
	for cause, result := range unanswered {
		if result == r || r == Failed {
			causes = append(causes, cause)
		}
	}
	slices.Sort(causes)
	return causes, r == Failed
}

// reasons maps the causes to descriptions for display.
var reasons = map[string]string{
	NormalClearing.Text:    "Hung up",
	UserBusy.Text:          "Busy or rejected",
	"REJECT_ALL":           "Rejected on all devices",
	NoAnswer.Text:          "Nobody answered",
	UserNotRegistered.Text: "The callee was offline",
	CallRejected.Text:      "The caller may not call this address",
	UnallocatedNumber.Text: "No such address",
	NotOpen.Text:           "The room was not open",
	Removed.Text:           "Removed from the room",
	Incompatible.Text:      "No common codec or encryption",
	NotImplemented.Text:    "Nothing answers calls at this address",
	Congestion.Text:        "A limit was reached",
	RecoveryTimeout.Text:   "The connection was lost",
	OriginatorCancel.Text:  "The caller gave up",
	MediaTimeout.Text:      "No audio or video arrived",
	NodeLost.Text:          "The server stopped",
	TemporaryFailure.Text:  "Server error",
	TokenRevoked.Text:      "The login or token was revoked",
	managerRequest.Text:    "Ended by a backend or an operator",
}

// Reason describes, for display, why the call ended. It is "" while the call is running.
func (r Record) Reason() string {
	reason, known := reasons[r.Cause.Text]
	switch {
	case r.Ended.IsZero():
		return ""
	case r.Cause == NormalClearing && r.Answered.IsZero():
		return reasons[OriginatorCancel.Text]
	case refusals[r.Refusal] != "":
		return refusals[r.Refusal]
	case known:
		return reason
	}
	return r.Cause.Text
}

// refusals maps the values of Record.Refusal to descriptions for display.
var refusals = map[string]string{
	fabric.ReasonOff:       "Outbound calls are off",
	fabric.ReasonPrefix:    "The project may not call this prefix",
	fabric.ReasonExpensive: "The number is in an expensive range",
	fabric.ReasonNoGateway: "No SIP gateway serves this number",
	reasonCallerBusy:       "The caller made too many calls",
	reasonProjectBusy:      "The project made too many calls",
	reasonGatewayBusy:      "All lines of the SIP gateway were busy",
	reasonCallerDay:        "The caller has used up its minutes for the day",
	reasonProjectDay:       "The project has used up its minutes for the day",
	reasonUnreachable:      "The SIP gateway could not be reached",
	reasonNoSIP:            "SIP is off on this server",
	reasonOtherGateway:     "The call already used another SIP gateway, or another account's",
	reasonForwardGone:      "The call was to be forwarded to an address that does not exist",
	reasonForwardLoop:      "The call was forwarded in a circle, or too often",
	reasonSecondGateway:    "The members of a ring group need several SIP gateways",
	reasonScriptFailed:     "The script of the address failed",
	reasonScriptLoop:       "The script of the address took too many steps",
	reasonCannotBeRouted:   "The call was to be forwarded to something that does not ring",
}

// Results returns all results.
func Results() []Result { return []Result{Connected, Busy, Missed, Canceled, Failed} }
