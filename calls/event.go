package calls

import (
	"net/netip"
	"time"
)

// A Socket identifies the connection through which a client receives events, and the node with the
// connection. If the client is a phone, Phone is its address. Unless Claimed is set, the phone has
// proved that it receives packets there; see Terms.
type Socket struct {
	Node  string     `json:"n"`
	ID    string     `json:"id"`
	Phone netip.Addr `json:"p,omitzero"`

	Gateway  bool `json:"g,omitempty"` // the phone is a SIP gateway
	Claimed  bool `json:"c,omitempty"` // the phone's address may be forged; see Terms
	Endpoint bool `json:"e,omitempty"` // the phone registers as a SIP endpoint

	SRTP SRTP `json:"s,omitzero"` // the rules for the phone's media; see Terms

	Credential string `json:"k,omitempty"` // the id of the SIP credentials; "" for other phones
}

// An EventKind names what happened.
type EventKind string

// The kinds of events. Each comment ends with the fields of Event that are specific to the kind.
// Kind, Project, Leg, Node and At are always set. The ids of the member and the room, Inbound and
// Created are set unless the leg is unknown to the node that sends the event.
const (
	Invited       EventKind = "invited"        // the leg rings: SDP, From, To
	EarlyMedia    EventKind = "early_media"    // media may flow before the answer: SDP
	Answered      EventKind = "answered"       // the leg is connected
	StateChanged  EventKind = "state_changed"  // the call's state changed: State, From, To
	Joined        EventKind = "joined"         // the leg is now a member: Room, Capabilities
	MemberJoined  EventKind = "member_joined"  // another leg is now a member: Member
	MemberUpdated EventKind = "member_updated" // fields of a member changed: Member, Updated
	MemberTalking EventKind = "member_talking" // a member began or stopped talking: Member
	MemberLeft    EventKind = "member_left"    // another leg is no longer a member: Member, Cause
	RoomUpdated   EventKind = "room_updated"   // the room changed: Room
	Left          EventKind = "left"           // the leg is no longer a member: Cause
	HungUp        EventKind = "hung_up"        // the leg has ended: Cause
	LayoutChanged EventKind = "layout_changed" // the client sees a different member, or none: Seen
	Transferring  EventKind = "transferring"   // progress of the client's transfer: State, Cause
	Lost          EventKind = "lost"           // the leg's node was lost; clients may attach again
)

// An Event is sent to the client of a leg.
type Event struct {
	Kind         EventKind
	Project      string
	Leg          string // the call's id as the client knows it
	MemberID     string // the member id of the receiving client
	RoomSession  string
	RoomID       string
	Node         string // the node that carries the call; clients return it in each command
	At           time.Time
	SDP          string    `json:",omitempty"`
	State        State     `json:",omitempty"`
	From, To     Party     `json:",omitzero"`
	Member       *Member   `json:",omitempty"`
	Updated      []string  `json:",omitempty"` // the names of Member's fields that changed
	Room         *Room     `json:",omitempty"`
	Capabilities []string  `json:",omitempty"`
	Seen         string    `json:",omitempty"` // the member that the client sees, or ""
	Cause        Cause     `json:",omitzero"`
	Inbound      bool      `json:",omitempty"` // the client is the callee
	Created      time.Time `json:",omitzero"`
}

// A Party is one side of a call. The server fills it in and ignores what clients claim about
// themselves.
type Party struct {
	Name         string // the name to show
	Address      string // /<context>/<name>, or a phone number; "" for guests
	AddressID    string
	SubscriberID string // "" for guests, and if the address does not belong to a subscriber

	// The id of what the address belongs to, if it is not a subscriber. These fields are not stored.
	RoomID     string `json:",omitempty"` // a conference room
	GatewayID  string `json:",omitempty"` // a SIP gateway
	EndpointID string `json:",omitempty"` // a SIP endpoint
	GroupID    string `json:",omitempty"` // a ring group
	ScriptID   string `json:",omitempty"` // a script
}

// Anonymous is the address of a caller who hides from the called party, or whose number is unknown. The
// party of a subscriber who hides has a SubscriberID, which only the project may see.
const Anonymous = "anonymous"

// A Room is a call as its members see it. A call between two parties is a room, too.
type Room struct {
	ID, Name, DisplayName string
	Session               string
	Locked                bool
	Recording             bool
	Members               []Member
}

// A MemberType is what a member is: a person, a screen or a device.
type MemberType string

// The types of members.
const (
	Person MemberType = "member"
	Screen MemberType = "screen" // a screen that a member shares, with its own media
	Device MemberType = "device" // an additional microphone or camera of a member
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
