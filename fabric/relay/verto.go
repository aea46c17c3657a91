package relay

import (
	"context"
	"encoding/json"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
)

// vertoParams are the parameters of webrtc.verto, an envelope around a message of the verto
// protocol. The message is a request, or the client's response to one of our requests.
type vertoParams struct {
	CallID  string       `json:"callID"`
	NodeID  string       `json:"node_id"`
	Message vertoMessage `json:"message"`
}

type vertoMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"` // "" for a response
	Params struct {
		Dialog dialogParams `json:"dialogParams"`
		SDP    string       `json:"sdp"`
		Action string       `json:"action"` // the action of verto.modify
		DTMF   string       `json:"dtmf"`
		Cause  string       `json:"cause"`
	} `json:"params"`
}

// dialogParams describe the call. Claims about the caller are ignored.
type dialogParams struct {
	CallID       string `json:"callID"`
	To           string `json:"destination_number"`
	Attach       bool   `json:"attach"`
	Reattaching  bool   `json:"reattaching"`
	ScreenShare  bool   `json:"screenShare"`
	Device       bool   `json:"additionalDevice"`
	FromAddress  string `json:"from_fabric_address_id"`
	UserVariable struct {
		MemberID string `json:"memberId"` // the member that shares the screen or has the device
	} `json:"userVariables"`
}

// A vertoResult is the result of webrtc.verto. Result is the response to the message in the
// envelope.
type vertoResult struct {
	Code    string       `json:"code"`
	Message string       `json:"message"`
	NodeID  string       `json:"node_id"`
	Result  *vertoAnswer `json:"result,omitempty"`
}

type vertoAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Result  vertoOutcome    `json:"result"`
}

type vertoOutcome struct {
	CallID    string `json:"callID"`
	Message   string `json:"message"`
	Action    string `json:"action,omitempty"`
	HoldState string `json:"holdState,omitempty"` // held or active
	SDP       string `json:"sdp,omitempty"`
}

// verto serves webrtc.verto, with which clients dial, answer and hang up.
//
// Only the result of verto.invite can contain a refusal. SDKs repeat any other failed request ten
// times. For an unknown call, the client therefore gets an event instead.
func verto(ctx context.Context, s *socket, raw json.RawMessage) (any, error) {
	if s.relay.calls == nil {
		return nil, &fault{methodNotFound, "webrtc.verto: this server does not carry calls"}
	}
	var in vertoParams
	if err := decodeParams(raw, &in); err != nil {
		return nil, err
	}
	if in.CallID == "" {
		in.CallID = in.Message.Params.Dialog.CallID
	}

	cmd, confirmation, ok := in.command()
	if !ok { // a response, a pong, or a message of a later SDK
		return vertoReply(in, s.relay.node, vertoOutcome{CallID: in.CallID, Message: "OK"}), nil
	}
	reply, err := s.relay.calls.Do(ctx, s.client(), cmd)
	if p := problem.First(err); p != nil && cmd.Op == calls.Invite {
		return vertoResult{Code: refusalCode(p), Message: p.Message, NodeID: s.relay.node}, nil
	}
	if err != nil {
		return nil, err
	}

	outcome := vertoOutcome{CallID: in.CallID, Message: confirmation}
	if cmd.Op == calls.Update || cmd.Op == calls.Hold || cmd.Op == calls.Unhold {
		outcome.Action = in.Message.Params.Action
		outcome.SDP = reply.SDP
		outcome.HoldState = "active"
		if reply.Held {
			outcome.HoldState = "held"
		}
	}
	return vertoReply(in, reply.Node, outcome), nil
}

// vertoReply returns the result of webrtc.verto, with the outcome o. node is the node that has the
// call.
func vertoReply(in vertoParams, node string, o vertoOutcome) vertoResult {
	return vertoResult{
		Code:    "200",
		Message: "OK",
		NodeID:  node,
		Result:  &vertoAnswer{Version: "2.0", ID: in.Message.ID, Result: o},
	}
}

// refusalCode returns the code with which an SDK rejects the promise of start().
func refusalCode(p *problem.Error) string {
	switch p.Kind {
	case problem.RateLimited:
		return "429"
	case problem.Unavailable:
		return "503"
	case problem.Conflict:
		return "409"
	}
	return "400"
}

// command returns the command in the message, and the text with which its success is confirmed. ok
// is false if the message contains no command.
func (v vertoParams) command() (cmd calls.Command, confirmation string, ok bool) {
	params := v.Message.Params
	cmd = calls.Command{Leg: v.CallID, Node: v.NodeID, SDP: params.SDP}

	switch v.Message.Method {
	case "verto.invite":
		cmd.Op = calls.Invite
		v.readInvite(&cmd)
		return cmd, "CALL CREATED", true
	case "verto.answer":
		cmd.Op = calls.Answer
		return cmd, "CALL ANSWERED", true
	case "verto.bye":
		cmd.Op = calls.Hangup
		cmd.Cause = params.Cause
		return cmd, "CALL ENDED", true
	case "verto.info":
		cmd.Op = calls.Digits
		cmd.Digits = params.DTMF
		return cmd, "SENT", true
	case "verto.subscribe":
		cmd.Op = calls.Subscribe
		return cmd, "OK", true
	case "verto.modify":
		cmd.Op, ok = modifications[params.Action]
		return cmd, "OK", ok
	}
	return cmd, "", false
}

// readInvite copies the parameters of verto.invite to cmd.
func (v vertoParams) readInvite(cmd *calls.Command) {
	dialog := v.Message.Params.Dialog
	cmd.To = dialog.To
	cmd.From = dialog.FromAddress
	cmd.Attach = dialog.Attach || dialog.Reattaching
	cmd.Parent = dialog.UserVariable.MemberID
	switch {
	case dialog.ScreenShare:
		cmd.Type = calls.Screen
	case dialog.Device:
		cmd.Type = calls.Device
	}
}

// modifications contains the actions of verto.modify.
var modifications = map[string]calls.Op{
	"hold":        calls.Hold,
	"unhold":      calls.Unhold,
	"updateMedia": calls.Update,
}
