package relay

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/selvage/selvage/calls"
)

// memberParams are the parameters of the call.* methods. They name the member that sends the
// command, and the member that the command applies to.
type memberParams struct {
	Channels []calls.Kind `json:"channels"`
	Volume   float64      `json:"volume"`
	MemberID string       `json:"member_id"` // used by older SDKs instead of target
	Self     memberRef    `json:"self"`
	Target   memberRef    `json:"target"`
}

// media returns the kinds of media that the command applies to, without duplicates.
func (p memberParams) media() (kinds []calls.Kind) {
	for _, kind := range []calls.Kind{calls.Audio, calls.Video} {
		if slices.Contains(p.Channels, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

type memberRef struct {
	MemberID string `json:"member_id"`
	CallID   string `json:"call_id"`
	NodeID   string `json:"node_id"`
}

// memberMethods maps the call.* methods to their operations. SDKs also have methods that would
// require processing audio or composing video. The capabilities of a call exclude these methods, so
// SDKs do not send them.
var memberMethods = map[string]calls.Op{
	"call.mute": calls.Mute, "call.unmute": calls.Unmute, "call.deaf": calls.Deaf, "call.undeaf": calls.Undeaf,
	"call.raisehand": calls.RaiseHand, "call.lowerhand": calls.LowerHand,
	"call.member.list": calls.List, "call.end": calls.End,
	"call.lock": calls.Lock, "call.unlock": calls.Unlock, "call.member.remove": calls.Remove,
	"call.microphone.volume.set": calls.SetMicrophone, "call.speaker.volume.set": calls.SetSpeaker,
}

// listLayouts serves call.layout.list, which needs no capability. The only layout is the same for rooms
// and for calls between two parties.
func listLayouts(context.Context, *socket, json.RawMessage) (any, error) {
	return struct {
		Code    string   `json:"code"`
		Message string   `json:"message"`
		Layouts []string `json:"layouts"`
	}{Code: "200", Message: "OK", Layouts: []string{layoutName}}, nil
}

// memberMethod serves a call.* method.
func memberMethod(op calls.Op) method {
	return func(ctx context.Context, s *socket, raw json.RawMessage) (any, error) {
		if s.relay.calls == nil {
			return nil, &fault{methodNotFound, "this server does not carry calls"}
		}
		var in memberParams
		if err := decodeParams(raw, &in); err != nil {
			return nil, err
		}
		if in.Self.CallID == "" {
			in.Self = in.Target
		}
		if in.Target.MemberID == "" {
			in.Target.MemberID = in.MemberID
		}

		reply, err := s.relay.calls.Do(ctx, s.client(), calls.Command{
			Op:     op,
			Leg:    in.Self.CallID,
			Node:   in.Self.NodeID,
			Target: in.Target.MemberID,
			Media:  in.media(),
			Volume: int(in.Volume),
		})
		if err != nil || reply.Room == nil {
			return done, err
		}

		return struct {
			Code    string        `json:"code"`
			Message string        `json:"message"`
			Members []*memberJSON `json:"members"`
		}{
			Code:    "200",
			Message: "OK",
			Members: showMembers(reply.Room.Members, roomRef{reply.Room.ID, reply.Room.Session}, reply.Node),
		}, nil
	}
}
