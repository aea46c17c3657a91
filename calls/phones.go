package calls

import (
	"context"
	"slices"
	"time"

	"github.com/selvage/selvage/fabric"
)

// A Phone is a registered phone.
type Phone struct {
	Socket Socket
	Codecs []string // the codecs that it supports, by their names in SDP
}

// phonesOf returns the phones that ring for a party.
func (c *Calls) phonesOf(ctx context.Context, projectID string, to Party) ([]Phone, error) {
	if c.phones == nil || to.owner() == "" {
		return nil, nil
	}
	return c.phones(ctx, projectID, to.owner())
}

// phoneCodecs lists the codecs for calls to phones, in order of preference. It is unknown which
// codecs a phone supports before it answers, but nearly every phone supports PCMU. The caller's SDK
// needs its answer earlier, and cannot change the codec later.
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

// ringing returns the connections of the callee's clients: first the newest sockets, then the
// phones.
func (k *call) ringing(ctx context.Context) ([]Socket, error) {
	var all []Socket
	if id := k.record.To.SubscriberID; id != "" {
		online, err := k.calls.fabric.Presence.Sockets(ctx, k.project, id)
		if err != nil {
			return nil, err
		}
		for _, s := range online[:min(len(online), mostRung)] {
			all = append(all, Socket{Node: s.Node, ID: s.ID})
		}
	}
	for _, p := range k.phones[:min(len(k.phones), mostRung)] {
		all = append(all, p.Socket)
	}
	return all, nil
}

// ringSocket rings one client of the callee.
func (k *call) ringSocket(s Socket) {
	// This token stands for the client's real one, which is unknown until the client answers.
	// Revocations before IssuedAt do not end the leg.
	token := fabric.Token{Kind: fabric.SAT, ProjectID: k.project, SubscriberID: k.record.To.SubscriberID,
		IssuedAt: time.Now()}
	switch {
	case s.Gateway:
		token.Kind, token.ID = fabric.Guest, k.record.Gateway
	case s.Endpoint:
		token.Kind, token.ID = fabric.Guest, k.record.To.EndpointID
	}
	l := k.newLeg(newID(), Client{Token: token, Socket: s}, k.record.To, true)
	media, offer, err := k.calls.engine.Offer(watcher{l}, k.caller().media, termsFor(s))
	if err != nil {
		k.calls.log.Error("opening media to ring a subscriber", "call_id", k.id, "error", err)
		return
	}
	l.media, l.callers = media, k.caller().counted
	k.add(l)
	l.tell(Event{Kind: Invited, SDP: offer, From: k.record.From, To: k.record.To})
}
