package calls

import (
	"net/netip"
	"time"
)

// A Socket identifies the connection through which a client receives events, and its node. If the
// client is a phone, Phone is the address that it has proved, as in Terms.
type Socket struct {
	Node  string     `json:"n"`
	ID    string     `json:"id"`
	Phone netip.Addr `json:"p,omitzero"`

	Gateway  bool `json:"g,omitempty"` // the phone is a SIP gateway
	Claimed  bool `json:"c,omitempty"` // the phone's address may be forged; see Terms
	Endpoint bool `json:"e,omitempty"` // the phone registers as a SIP endpoint

	SRTP SRTP `json:"s,omitzero"` // of the phone; see Terms

	Credential string `json:"k,omitempty"` // id of the phone's SIP credentials; "" for gateways and outside callers
}

// An EventKind names what happened.
type EventKind string

// The kinds of events. The comment of each names the fields of Event that it sets in addition to
// Leg and Room.
const (
	Invited       EventKind = "invited"        // Leg rings: SDP, From, To
	EarlyMedia    EventKind = "early_media"    // media may flow before the answer: SDP
	Answered      EventKind = "answered"       // Leg is connected
	StateChanged  EventKind = "state_changed"  // State, From, To
	Joined        EventKind = "joined"         // Leg is now a member: Room, Capabilities
	MemberJoined  EventKind = "member_joined"  // Member
	MemberUpdated EventKind = "member_updated" // Member, Updated
	MemberTalking EventKind = "member_talking" // Member
	MemberLeft    EventKind = "member_left"    // Member, Cause
	RoomUpdated   EventKind = "room_updated"   // Room
	Left          EventKind = "left"           // Leg is no longer a member: Cause
	HungUp        EventKind = "hung_up"        // Leg has ended: Cause
	LayoutChanged EventKind = "layout_changed" // Seen
	Transferring  EventKind = "transferring"   // the client's transfer: State, and Cause if nobody took the call
	Lost          EventKind = "lost"           // the node of Leg was lost; the client may attach again
)

// An Event is sent to the client of a leg.
type Event struct {
	Kind         EventKind
	Project      string
	Leg          string // the call's id as the client knows it
	MemberID     string // of the receiving client
	RoomSession  string
	RoomID       string
	Node         string // the node that carries the call; clients return it in each command
	At           time.Time
	SDP          string    `json:",omitempty"`
	State        State     `json:",omitempty"`
	From, To     Party     `json:",omitzero"`
	Member       *Member   `json:",omitempty"`
	Updated      []string  `json:",omitempty"` // names of the members of Member that changed
	Room         *Room     `json:",omitempty"`
	Capabilities []string  `json:",omitempty"`
	Seen         string    `json:",omitempty"` // the member that the client sees; "" if it sees nobody
	Cause        Cause     `json:",omitzero"`
	Inbound      bool      `json:",omitempty"` // the client is the callee
	Created      time.Time `json:",omitzero"`
}

// A Party is one side of a call. The server fills it in and ignores what clients claim about
// themselves.
type Party struct {
	Name         string // to be shown
	Address      string // /<context>/<name>, or a phone number; "" for guests
	AddressID    string
	SubscriberID string // "" for guests and for addresses that are not a subscriber's
	RoomID       string `json:",omitempty"` // of the conference room at the address; not stored
	GatewayID    string `json:",omitempty"` // of the SIP gateway at the address; not stored
	EndpointID   string `json:",omitempty"` // of the SIP endpoint at the address; not stored
	GroupID      string `json:",omitempty"` // of the ring group at the address; not stored
}

// A Room is a call as its members see it. A call between two parties is a room, too.
type Room struct {
	ID, Name, DisplayName string
	Session               string
	Locked                bool
	Recording             bool
	Members               []Member
}

// A MemberType is the type of a member.
type MemberType string

// The types of members.
const (
	Person MemberType = "member"
	Screen MemberType = "screen" // a screen that a member shares, with its own media
	Device MemberType = "device" // a further microphone or camera of a member
)

// A Member is a leg as the other members see it.
type Member struct {
	ID, Leg                      string
	Type                         MemberType
	Parent                       string // the member that a screen or device belongs to
	Name                         string
	SubscriberID, AddressID      string
	AudioMuted, VideoMuted, Deaf bool
	HandRaised, Talking          bool
	InputVolume, OutputVolume    int // -50 to 50; see Mixer
}
