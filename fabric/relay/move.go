package relay

import (
	"context"
	"encoding/json"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
)

// A moveResult is the result of call.move. The stock SDK repeats a failed request for several
// seconds. Therefore, a refusal is part of a successful result.
type moveResult struct {
	Code    string       `json:"code"`
	Message string       `json:"message"`
	Refusal *moveRefusal `json:"refusal,omitempty"`
}

type moveRefusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// moveCall serves call.move, a method that the stock SDK lacks. It moves a call between two parties
// into the conference room at an address, with both sides. If the address is "", the call leaves
// the room again.
func moveCall(ctx context.Context, s *socket, raw json.RawMessage) (any, error) {
	if s.relay.calls == nil {
		return nil, &fault{methodNotFound, "this server does not carry calls"}
	}
	var in struct {
		Self    memberRef `json:"self"`
		Address string    `json:"address"`
	}
	if err := decodeParams(raw, &in); err != nil {
		return nil, err
	}

	move := calls.Command{
		Op:   calls.Move,
		Leg:  in.Self.CallID,
		Node: in.Self.NodeID,
		To:   in.Address,
	}
	result := moveResult{Code: "200", Message: "OK"}
	_, err := s.relay.calls.Do(ctx, s.client(), move)
	if refusal := problem.First(err); refusal != nil {
		result.Refusal = &moveRefusal{refusal.Code, refusal.Message}
		return result, nil
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}
