package calls

// A Cause is the reason for the end of a call or a leg. SDKs recognize it by Text. Code is its
// number (ITU-T Q.850, or FreeSWITCH's own numbers above 127).
type Cause struct {
	Text string
	Code int
}

// The causes with which calls and legs end. A client that hangs up may also send one of the texts
// in causes.
var (
	NormalClearing    = Cause{"NORMAL_CLEARING", 16}
	UserBusy          = Cause{"USER_BUSY", 17}
	NoAnswer          = Cause{"NO_ANSWER", 19}
	UserNotRegistered = Cause{"USER_NOT_REGISTERED", 20}      // the callee is not online
	CallRejected      = Cause{"CALL_REJECTED", 21}            // the caller lacks permission
	UnallocatedNumber = Cause{"UNALLOCATED_NUMBER", 1}        // unknown address
	NotOpen           = Cause{"SERVICE_UNAVAILABLE", 63}      // the room is not open now
	Removed           = Cause{"MEMBER_REMOVED", 16}           // a moderator or a setting removed the member
	Incompatible      = Cause{"INCOMPATIBLE_DESTINATION", 88} // no codec or encryption in common
	NotImplemented    = Cause{"FACILITY_NOT_IMPLEMENTED", 69}
	Congestion        = Cause{"NORMAL_CIRCUIT_CONGESTION", 34} // a limit is reached
	RecoveryTimeout   = Cause{"RECOVERY_ON_TIMER_EXPIRE", 102} // the client is gone
	OriginatorCancel  = Cause{"ORIGINATOR_CANCEL", 487}        // the caller gave up
	LoseRace          = Cause{"LOSE_RACE", 502}                // another device answered
	MediaTimeout      = Cause{"MEDIA_TIMEOUT", 604}            // no media from the client
	NodeLost          = Cause{"NODE_LOST", 41}                 // the call's node is gone
	TemporaryFailure  = Cause{"NORMAL_TEMPORARY_FAILURE", 41}  // an internal error of the server
	TokenRevoked      = Cause{"TOKEN_REVOKED", 21}             // the login or the token ended
	managerRequest    = Cause{"MANAGER_REQUEST", 503}          // a backend or operator hung up
)

// orBetter returns the more informative of the causes c and other, if a call had several callees.
// Busy is more informative than no answer, and no answer is more informative than offline. If both
// rank equally, orBetter returns other.
func (c Cause) orBetter(other Cause) Cause {
	rank := func(c Cause) int {
		switch c.Text {
		case "":
			return 0
		case UserNotRegistered.Text:
			return 1
		case UserBusy.Text, "REJECT_ALL":
			return 3
		}
		return 2
	}

	if rank(c) > rank(other) {
		return c
	}
	return other
}

// causes are the causes that a client may send, by text.
var causes = map[string]Cause{
	NormalClearing.Text: NormalClearing, UserBusy.Text: UserBusy, CallRejected.Text: CallRejected,
	"REJECT_ALL": {"REJECT_ALL", 825},
}

// failures maps texts to the causes that a client may send when it cannot answer.
var failures = map[string]Cause{
	UserBusy.Text: UserBusy, NoAnswer.Text: NoAnswer, UserNotRegistered.Text: UserNotRegistered,
	CallRejected.Text: CallRejected, Incompatible.Text: Incompatible, UnallocatedNumber.Text: UnallocatedNumber,
}

// failureOf returns the cause for a text that a client sent because it cannot answer. For an
// unknown text, it returns UserNotRegistered.
func failureOf(text string) Cause {
	if c, ok := failures[text]; ok {
		return c
	}
	return UserNotRegistered
}

// causeOf returns the cause for a text that a client sent. All texts except the allowed ones become
// NormalClearing, so that clients cannot write arbitrary text into each other's logs.
func causeOf(text string) Cause {
	if c, ok := causes[text]; ok {
		return c
	}
	return NormalClearing
}
