package calls

import "github.com/selvage/selvage/fabric"

// A Client is the holder of a token, connected by a socket. It sends commands.
type Client struct {
	Token  fabric.Token
	Socket Socket

	// Party describes a caller that is a SIP endpoint or is outside the project. It is nil for
	// browsers and phones of subscribers. The names of outside callers come from the gateway or the
	// SIP message.
	Party *Party `json:",omitempty"`

	Inside bool `json:",omitempty"` // the client may not call phone numbers and SIP gateways
}

// isMember reports whether the client belongs to its project, and may call all of its addresses.
func (c Client) isMember() bool { return c.Token.Kind == fabric.SAT || c.Socket.Endpoint }

// holder returns the id of the holder of the client's token; see holderOf.
func (c Client) holder() string { return holderOf(c.Token) }

// holderOf returns an id of the holder of a token. The id stays the same when a guest refreshes its
// token during a call.
func holderOf(t fabric.Token) string {
	if t.Kind == fabric.Guest && t.FamilyID != "" {
		return t.FamilyID
	}
	return t.Caller()
}

// holds reports whether a token belongs to a holder, as returned by holderOf. Records from earlier
// versions of the server contain the id of a guest's token instead.
func holds(t fabric.Token, holder string) bool {
	return holderOf(t) == holder || t.Kind == fabric.Guest && t.ID == holder
}

// An Op is the operation that a command requests.
type Op string

// The operations. The comment of each names the fields of Command that it reads in addition to Leg.
const (
	Invite    Op = "invite"     // To, From, SDP, Attach, Parent, Type
	Answer    Op = "answer"     // SDP
	Hangup    Op = "hangup"     // Cause
	Fail      Op = "fail"       // Cause: this client cannot answer, but others may
	Hold      Op = "hold"       //
	Unhold    Op = "unhold"     //
	Update    Op = "update"     // SDP; the reply has the answer
	Digits    Op = "digits"     // Digits
	Mute      Op = "mute"       // Target, Media
	Unmute    Op = "unmute"     // Target, Media
	Deaf      Op = "deaf"       // Target
	Undeaf    Op = "undeaf"     // Target
	RaiseHand Op = "raise_hand" // Target
	LowerHand Op = "lower_hand" // Target
	List      Op = "list"       // the reply has the room
	End       Op = "end"        // ends the call for all members

	// These operations work only in rooms.
	SetMicrophone Op = "set_microphone" // Target, Volume: how loud the member is for the others
	SetSpeaker    Op = "set_speaker"    // Target, Volume: how loud the others are for the member
	Lock          Op = "lock"           // nobody else can join
	Unlock        Op = "unlock"         //
	Remove        Op = "remove"         // Target

	// Move moves an answered call between two parties into the room at To, with both sides. If To
	// is "", the call leaves the room that it was moved into.
	Move Op = "move" // To

	// TransferTo transfers an answered call between two parties: it connects the other side with
	// the party at To, and the client leaves.
	TransferTo Op = "transfer" // To

	Subscribe Op = "subscribe" // the client received the call's invitation over another channel
)

// A Command is a request from a client.
type Command struct {
	Op     Op
	Leg    string // the call's id as the client knows it
	Node   string // the node that carries the call, as named in events; may be ""
	To     string `json:",omitempty"` // the address as it was dialed
	SDP    string `json:",omitempty"`
	Attach bool   `json:",omitempty"` // the leg exists, and its client has reconnected

	From string `json:",omitempty"` // the id of the address that the caller wants to show to others

	Parent string     `json:",omitempty"` // the member that a screen or device belongs to
	Type   MemberType `json:",omitempty"`

	Cause  string `json:",omitempty"`
	Digits string `json:",omitempty"`
	Target string `json:",omitempty"` // the id of a member, or "all"; "" means the client's own member
	Media  []Kind `json:",omitempty"`
	Volume int    `json:",omitempty"`
}

// A Reply is the result of a command.
type Reply struct {
	Node string // the node that carries the call
	SDP  string `json:",omitempty"`
	Held bool   `json:",omitempty"`
	Room *Room  `json:",omitempty"`
}
