package calls

import "github.com/selvage/selvage/fabric"

// A Client sends commands. It holds a token and is connected through a socket.
type Client struct {
	Token  fabric.Token
	Socket Socket

	// Party describes a caller that is a SIP endpoint, is outside the project, or uses a phone that
	// hides the caller. It is nil for browsers and for other phones of subscribers. The names of
	// outside callers come from the gateway or the SIP message.
	Party *Party `json:",omitempty"`

	// InsideOnly keeps the client from calling phone numbers and SIP gateways.
	InsideOnly bool `json:"Inside,omitempty"`
}

// isMember reports whether the client belongs to its project. Members may call all addresses of the
// project and phone numbers, and may transfer calls. Other clients may call only the addresses that
// their tokens allow.
//
// The members are subscribers, who hold a SAT (subscriber access token), and SIP endpoints, which
// have no subscriber.
func (c Client) isMember() bool {
	isSubscriber := c.Token.Kind == fabric.SAT
	isEndpoint := c.Socket.Endpoint
	return isSubscriber || isEndpoint
}

// holder returns an id of the holder of the client's token. The id stays the same when a guest
// refreshes its token during a call.
func (c Client) holder() string { return tokenHolder(c.Token) }

// tokenHolder implements Client.holder for a token.
func tokenHolder(t fabric.Token) string {
	if t.Kind == fabric.Guest && t.FamilyID != "" {
		return t.FamilyID
	}
	return t.Caller()
}

// isHeldBy reports whether a token belongs to a holder, given as an id that Client.holder returned.
// Records from earlier versions of the server contain the id of a guest's token instead.
func isHeldBy(t fabric.Token, holder string) bool {
	if tokenHolder(t) == holder {
		return true
	}
	return t.Kind == fabric.Guest && t.ID == holder
}

// An Op is the operation that a command requests. The comment of each operation names all fields of
// Command that it uses, apart from Op, Leg and Node.
type Op string

// These operations begin and end a leg, which is a client's part in a call.
const (
	// Invite begins a call to the address To. SDP is the offer of the client's media; an event
	// contains the answer. From is the id of the client's address that the callee sees; if it is
	// "", the callee sees the first address.
	//
	// If Type is Screen or Device, Invite instead adds a leg to the call of the member Parent.
	//
	// If Attach is set, the leg exists, and its client has reconnected. Invite then uses only SDP
	// and replaces the leg's media.
	Invite Op = "invite"

	// Answer answers a leg that rings. SDP is the answer to the offer in the event Invited.
	Answer Op = "answer"

	// Hangup ends the leg for the reason Cause. If the leg rings, Hangup rejects the call, and all
	// devices of the callee stop ringing.
	Hangup Op = "hangup"

	// Fail ends a leg that cannot answer, for the reason Cause. Other devices of the callee continue
	// to ring.
	Fail Op = "fail"

	// End ends the call for all members. In a room, only moderators may use it.
	End Op = "end"

	// Subscribe does only what every command does: from then on, the client's socket receives the
	// leg's events. SDKs send it when the invitation has reached them over a different channel.
	Subscribe Op = "subscribe"
)

// These operations control the media of the client's own leg.
const (
	// Update changes the media of an answered leg, for example to add video. SDP is the new offer,
	// and the reply contains the answer.
	Update Op = "update"

	// Hold stops the media between the leg and the other members.
	Hold Op = "hold"

	// Unhold resumes the media after Hold.
	Unhold Op = "unhold"

	// Digits sends the keys in Digits (0-9, *, # and A-D) to the other side of the call, or to the
	// script that controls the call.
	Digits Op = "digits"
)

// These operations control the member Target. Only moderators of a room may control members other
// than their own.
const (
	// Mute stops the member's media of the kinds in Media, so that the others no longer receive it.
	Mute Op = "mute"

	// Unmute undoes Mute for the kinds in Media. A member that muted itself stays muted until it
	// unmutes itself.
	Unmute Op = "unmute"

	// Deaf stops the audio that the member hears.
	Deaf Op = "deaf"

	// Undeaf undoes Deaf.
	Undeaf Op = "undeaf"

	// RaiseHand marks the member as wanting to speak.
	RaiseHand Op = "raise_hand"

	// LowerHand undoes RaiseHand.
	LowerHand Op = "lower_hand"

	// SetMicrophone makes the others hear the member at the volume Volume. It works only in rooms.
	SetMicrophone Op = "set_microphone"

	// SetSpeaker makes the member hear the others at the volume Volume. It works only in rooms.
	SetSpeaker Op = "set_speaker"

	// Remove ends the leg of the member. It works only in rooms, and only for moderators.
	Remove Op = "remove"
)

// These operations concern a whole call or room.
const (
	// List returns the room and its members in the reply. It also works in a call between two
	// parties.
	List Op = "list"

	// Lock keeps everybody else from joining the room. Only moderators may use it.
	Lock Op = "lock"

	// Unlock undoes Lock.
	Unlock Op = "unlock"

	// Move moves an answered call between two parties into the room at To, with both sides. If To
	// is "", the call leaves the room that it was moved into.
	Move Op = "move"

	// TransferTo transfers an answered call between two parties: it connects the other side with
	// the party at To, and the client leaves.
	TransferTo Op = "transfer"
)

// A Command is a request from a client. Each operation uses only some of the fields; see Op.
type Command struct {
	Op   Op
	Leg  string // the call's id as the client knows it
	Node string // the node that carries the call, as named in events; may be ""

	To     string `json:",omitempty"` // an address, as the client dialed it
	SDP    string `json:",omitempty"` // an offer or an answer
	Attach bool   `json:",omitempty"` // the leg exists, and its client has reconnected

	From string `json:",omitempty"` // the id of one of the client's addresses

	Parent string     `json:",omitempty"` // the member that a screen or device belongs to
	Type   MemberType `json:",omitempty"` // Screen or Device; "" means Person

	Cause  string `json:",omitempty"` // the text of a Cause; unknown texts are replaced
	Digits string `json:",omitempty"`
	Target string `json:",omitempty"` // the id of a member, or "all"; "" means the client's own member
	Media  []Kind `json:",omitempty"`
	Volume int    `json:",omitempty"` // from -50 to 50
}

// A Reply is the result of a command.
type Reply struct {
	Node string // the node that carries the call
	SDP  string `json:",omitempty"` // the answer to Update
	Held bool   `json:",omitempty"` // after Hold, Unhold and Update: the leg is on hold
	Room *Room  `json:",omitempty"` // the result of List
}
