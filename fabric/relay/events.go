package relay

import (
	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
)

// An eventParams is the content of signalwire.event, which carries all events of the server. It has
// no event_channel, because SDK 4.0 ignores events whose channel does not contain the SDK's protocol.
type eventParams struct {
	Type      string  `json:"event_type"`
	Timestamp float64 `json:"timestamp"`
	ProjectID string  `json:"project_id"`
	NodeID    string  `json:"node_id"`
	Params    any     `json:"params"`
}

// Tell implements [calls.Clients].
func (r *Relay) Tell(to calls.Socket, e calls.Event) {
	r.mu.Lock()
	s := r.named[to.ID]
	r.mu.Unlock()
	if s == nil {
		return
	}

	kind, content := show(e)
	if kind == "" {
		return
	}

	s.tell(request(uuid.NewString(), "signalwire.event", eventParams{
		Type:      kind,
		Timestamp: float64(e.At.UnixMilli()) / 1000,
		ProjectID: e.Project,
		NodeID:    e.Node,
		Params:    content,
	}))
}

// show converts an event to the form that SDKs expect. kind is "" if the event's kind is unknown.
func show(e calls.Event) (kind string, content any) {
	switch e.Kind {
	case calls.Invited:
		return vertoRequest("verto.invite", inviteJSON{
			CallID:       e.Leg,
			SDP:          e.SDP,
			CallerName:   e.From.Name,
			CallerNumber: e.From.Address,
			CalleeName:   e.To.Name,
			CalleeNumber: e.To.Address,
			Direction:    "inbound",
		})
	case calls.EarlyMedia:
		return vertoRequest("verto.media", mediaJSON{e.Leg, e.SDP})
	case calls.Answered:
		return vertoRequest("verto.answer", mediaJSON{CallID: e.Leg})
	case calls.HungUp:
		return vertoRequest("verto.bye", byeJSON{CallID: e.Leg, Cause: e.Cause.Text, Code: e.Cause.Code})
	case calls.StateChanged:
		return "call.state", showState(e)
	case calls.Lost:
		e.State = "lost" // SDKs pass unknown states to their apps
		return "call.state", showState(e)
	case calls.Joined:
		return "call.joined", showJoined(e)
	case calls.Left:
		return "call.left", showLeft(e)
	case calls.RoomUpdated:
		return "call.updated", inRoom{roomRef: refOf(e), Session: showRoom(e)}
	case calls.LayoutChanged:
		return "layout.changed", showLayout(e)
	}

	if e.Member == nil {
		return "", nil // only later versions know this kind of event
	}
	member := showMember(*e.Member, e.Updated, refOf(e), e.Node)
	return memberEvents[e.Kind], inRoom{roomRef: refOf(e), Member: member}
}

// memberEvents are the names of events about one member.
var memberEvents = map[calls.EventKind]string{
	calls.MemberJoined:  "member.joined",
	calls.MemberUpdated: "member.updated",
	calls.MemberTalking: "member.talking",
	calls.MemberLeft:    "member.left",
}

// vertoRequest returns a message of the verto protocol in the form for events.
func vertoRequest(method string, params any) (kind string, content any) {
	return "webrtc.message", struct {
		Version string `json:"jsonrpc"`
		ID      string `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{Version: "2.0", ID: uuid.NewString(), Method: method, Params: params}
}

type inviteJSON struct {
	CallID       string `json:"callID"`
	SDP          string `json:"sdp"`
	CallerName   string `json:"caller_id_name"`
	CallerNumber string `json:"caller_id_number"`
	CalleeName   string `json:"callee_id_name"`
	CalleeNumber string `json:"callee_id_number"`
	Direction    string `json:"display_direction"`
}

type mediaJSON struct {
	CallID string `json:"callID"`
	SDP    string `json:"sdp,omitempty"` // never in an answer, which SDKs would apply twice
}

type byeJSON struct {
	CallID string `json:"callID"`
	Cause  string `json:"cause"`
	Code   int    `json:"causeCode"`
}

// A roomRef identifies a room. SDKs accept an event if one of the ids identifies their room.
type roomRef struct {
	RoomID      string `json:"room_id"`
	RoomSession string `json:"room_session_id"`
}

func refOf(e calls.Event) roomRef { return roomRef{e.RoomID, e.RoomSession} }

type inRoom struct {
	roomRef
	Member  *memberJSON `json:"member,omitempty"`
	Session *roomJSON   `json:"room_session,omitempty"`
}

type stateJSON struct {
	roomRef
	CallID    string `json:"call_id"`
	NodeID    string `json:"node_id"`
	SegmentID string `json:"segment_id"`
	State     string `json:"call_state"`
	Direction string `json:"direction"`
	Device    struct {
		Type   string `json:"type"`
		Params struct {
			From string `json:"from"`
			To   string `json:"to"`
		} `json:"params"`
	} `json:"device"`
	StartTime int64 `json:"start_time"` // Unix milliseconds
}

func showState(e calls.Event) stateJSON {
	s := stateJSON{
		roomRef:   refOf(e),
		CallID:    e.Leg,
		NodeID:    e.Node,
		SegmentID: e.Leg,
		State:     string(e.State),
		Direction: "outbound",
		StartTime: e.Created.UnixMilli(),
	}
	if e.Inbound {
		s.Direction = "inbound"
	}
	s.Device.Type = "webrtc"
	s.Device.Params.From = e.From.Address
	s.Device.Params.To = e.To.Address
	return s
}

type joinedJSON struct {
	roomRef
	CallID       string    `json:"call_id"`
	OriginCallID string    `json:"origin_call_id"`
	MemberID     string    `json:"member_id"`
	NodeID       string    `json:"node_id"`
	Capabilities []string  `json:"capabilities"`
	Session      *roomJSON `json:"room_session"`
}

func showJoined(e calls.Event) joinedJSON {
	return joinedJSON{
		roomRef:      refOf(e),
		CallID:       e.Leg,
		OriginCallID: e.Leg,
		MemberID:     e.MemberID,
		NodeID:       e.Node,
		Capabilities: e.Capabilities,
		Session:      showRoom(e),
	}
}

type leftJSON struct {
	roomRef
	CallID       string   `json:"call_id"`
	OriginCallID string   `json:"origin_call_id"`
	MemberID     string   `json:"member_id"`
	Reason       string   `json:"reason"`
	Session      struct{} `json:"room_session"`
}

func showLeft(e calls.Event) leftJSON {
	return leftJSON{
		roomRef:      refOf(e),
		CallID:       e.Leg,
		OriginCallID: e.Leg,
		MemberID:     e.MemberID,
		Reason:       e.Cause.Text,
	}
}

type roomJSON struct {
	roomRef
	ID          string        `json:"id"`
	Name        string        `json:"name"`
	DisplayName string        `json:"display_name"`
	Channel     string        `json:"event_channel"`
	Recording   bool          `json:"recording"`
	Locked      bool          `json:"locked"`
	Members     []*memberJSON `json:"members"`
	Recordings  []struct{}    `json:"recordings"`
	Playbacks   []struct{}    `json:"playbacks"`
	Streams     []struct{}    `json:"streams"`
}

func showRoom(e calls.Event) *roomJSON {
	if e.Room == nil {
		return nil
	}
	return &roomJSON{
		roomRef:     refOf(e),
		ID:          e.RoomSession,
		Name:        e.Room.Name,
		DisplayName: e.Room.DisplayName,
		Channel:     e.RoomSession,
		Recording:   e.Room.Recording,
		Locked:      e.Room.Locked,
		Members:     showMembers(e.Room.Members, refOf(e), e.Node),
		Recordings:  []struct{}{},
		Playbacks:   []struct{}{},
		Streams:     []struct{}{},
	}
}

// layoutName is the only layout of a room. It shows one member at a time, who fills the picture.
const layoutName = "full-screen"

type layoutJSON struct {
	roomRef
	Layout struct {
		roomRef
		ID     string      `json:"id"`
		Name   string      `json:"name"`
		Layers []layerJSON `json:"layers"`
	} `json:"layout"`
}

// A layerJSON is the position of a member in the picture, in percent.
type layerJSON struct {
	MemberID    string  `json:"member_id"`
	Index       int     `json:"layer_index"`
	Z           int     `json:"z_index"`
	X           int     `json:"x"`
	Y           int     `json:"y"`
	Width       int     `json:"width"`
	Height      int     `json:"height"`
	Visible     bool    `json:"visible"`
	Position    string  `json:"position"`
	PlayingFile bool    `json:"playing_file"`
	Reservation *string `json:"reservation"`
}

func showLayout(e calls.Event) (shown layoutJSON) {
	shown.roomRef = refOf(e)
	shown.Layout.roomRef = refOf(e)
	shown.Layout.ID = layoutName
	shown.Layout.Name = layoutName
	shown.Layout.Layers = []layerJSON{}
	if e.Seen != "" {
		whole := layerJSON{MemberID: e.Seen, Width: 100, Height: 100, Visible: true, Position: "auto"}
		shown.Layout.Layers = append(shown.Layout.Layers, whole)
	}
	return shown
}

// A memberJSON is a member in the form that SDKs expect. The sensitivity is the default of SDKs.
type memberJSON struct {
	roomRef
	ID          string   `json:"member_id"`
	CallID      string   `json:"call_id"`
	NodeID      string   `json:"node_id"`
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	ParentID    string   `json:"parent_id,omitempty"`
	AudioMuted  bool     `json:"audio_muted"`
	VideoMuted  bool     `json:"video_muted"`
	Deaf        bool     `json:"deaf"`
	Visible     bool     `json:"visible"`
	HandRaised  bool     `json:"handraised"`
	Talking     bool     `json:"talking"`
	InVolume    int      `json:"input_volume"`
	OutVolume   int      `json:"output_volume"`
	Sensitivity float64  `json:"input_sensitivity"`
	Meta        struct{} `json:"meta"`
	Subscriber  string   `json:"subscriber_id,omitempty"`
	Address     string   `json:"address_id,omitempty"`
	Updated     []string `json:"updated,omitempty"`
}

// showMember returns the JSON of a member. If the event reports a change, updated names the changed
// fields. SDKs then stop or start the microphone.
func showMember(m calls.Member, updated []string, in roomRef, node string) *memberJSON {
	return &memberJSON{
		roomRef:     in,
		ID:          m.ID,
		CallID:      m.Leg,
		NodeID:      node,
		Name:        m.Name,
		Type:        string(m.Type),
		ParentID:    m.Parent,
		AudioMuted:  m.AudioMuted,
		VideoMuted:  m.VideoMuted,
		Deaf:        m.Deaf,
		Visible:     true,
		HandRaised:  m.HandRaised,
		Talking:     m.Talking,
		InVolume:    m.InputVolume,
		OutVolume:   m.OutputVolume,
		Sensitivity: 11.11,
		Subscriber:  m.SubscriberID,
		Address:     m.AddressID,
		Updated:     updated,
	}
}

func showMembers(members []calls.Member, in roomRef, node string) []*memberJSON {
	all := make([]*memberJSON, 0, len(members))
	for _, m := range members {
		all = append(all, showMember(m, nil, in, node))
	}
	return all
}
