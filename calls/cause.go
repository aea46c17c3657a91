package calls

// A Cause is the reason why a call or a leg ended. Text is what SDKs know it by; Code is its
// number (ITU-T Q.850, or FreeSWITCH's own above 127).
type Cause struct {
	Text string
	Code int
}

// The causes. A leg that hangs up may also give one of its own.
var (
	NormalClearing    = Cause{"NORMAL_CLEARING", 16}
	UserBusy          = Cause{"USER_BUSY", 17}
	NoAnswer          = Cause{"NO_ANSWER", 19}
	UserNotRegistered = Cause{"USER_NOT_REGISTERED", 20} // the callee is not online
	CallRejected      = Cause{"CALL_REJECTED", 21}       // the caller may not do this
	UnallocatedNumber = Cause{"UNALLOCATED_NUMBER", 1}   // there is no such address
	NotImplemented    = Cause{"FACILITY_NOT_IMPLEMENTED", 69}
	Congestion        = Cause{"NORMAL_CIRCUIT_CONGESTION", 34} // a limit is reached
	RecoveryTimeout   = Cause{"RECOVERY_ON_TIMER_EXPIRE", 102} // the client has gone
	OriginatorCancel  = Cause{"ORIGINATOR_CANCEL", 487}        // the caller gave up
	LoseRace          = Cause{"LOSE_RACE", 502}                // another device answered
	MediaTimeout      = Cause{"MEDIA_TIMEOUT", 604}            // no media from the client
	NodeLost          = Cause{"NODE_LOST", 41}                 // the node that held the call is gone
	TemporaryFailure  = Cause{"NORMAL_TEMPORARY_FAILURE", 41}  // a fault of the server
	TokenRevoked      = Cause{"TOKEN_REVOKED", 21}             // the login or the token ended
	managerRequest    = Cause{"MANAGER_REQUEST", 503}          // a backend or operator hung up
)

// causes are those that a client may give as its own, by text.
var causes = map[string]Cause{
	NormalClearing.Text: NormalClearing, UserBusy.Text: UserBusy, CallRejected.Text: CallRejected,
	"REJECT_ALL": {"REJECT_ALL", 825},
}

// causeOf returns the cause that a client gave. Any text but those that it may give is a
// normal clearing, so that clients cannot write what they like into each other's logs.
func causeOf(text string) Cause {
	if c, ok := causes[text]; ok {
		return c
	}
	return NormalClearing
}
