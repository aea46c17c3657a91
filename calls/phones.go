package calls

import (
	"context"
	"slices"
)

// A Phone is a registered phone, or a connection to a gateway.
type Phone struct {
	Socket Socket
	Codecs []string // the codecs that it supports, by their names in SDP
}

// phonesOf returns the phones that have registered for a party.
func (c directory) phonesOf(ctx context.Context, projectID string, to Party) ([]Phone, error) {
	if c.phones == nil || to.owner() == "" {
		return nil, nil
	}
	return c.phones(ctx, projectID, to.owner())
}

// phoneCodecs lists the codecs for calls to phones, in order of preference. Until a phone answers,
// the server does not know which codecs it supports, but nearly every phone supports PCMU. The
// caller's SDK needs the server's answer earlier, and cannot change the codec later.
var phoneCodecs = []string{"PCMU", "PCMA", "G722", "opus"}

// commonCodecs returns the codecs that all phones support, or nil if there are no phones.
func commonCodecs(phones []Phone) (common []string) {
	if len(phones) == 0 {
		return nil
	}
	for _, codec := range phoneCodecs {
		if !slices.ContainsFunc(phones, func(p Phone) bool { return !slices.Contains(p.Codecs, codec) }) {
			common = append(common, codec)
		}
	}
	return common
}
