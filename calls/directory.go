package calls

import (
	"context"
	"errors"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// A directory finds the parties of calls.
type directory struct{ *Calls }

func (c *Calls) directory() directory { return directory{c} }

// destination returns the party at an address. If the call cannot be made, cause is set, and the
// party has only the fields that are known.
func (c directory) destination(ctx context.Context, client Client, dialed string) (to Party, cause Cause, err error) {
	path, _, _ := strings.Cut(dialed, "?")
	t, member := client.Token, client.isMember()
	to = Party{Address: path, Name: path}
	if number, ok := fabric.ParseNumber(path); ok && member {
		return Party{Address: number, Name: number}, Cause{}, nil
	}
	if path == EchoAddress && member {
		to.Name = "Echo"
		return to, Cause{}, nil
	}

	a, err := c.fabric.Addresses.FindAt(ctx, t.ProjectID, path)
	switch {
	case errors.Is(err, problem.NotFound) && member:
		return to, UnallocatedNumber, nil
	case errors.Is(err, problem.NotFound):
		return to, CallRejected, nil // a guest must not learn whether an unreachable address exists
	case err != nil:
		return to, Cause{}, err
	}
	if _, err := c.fabric.Addresses.Find(ctx, t, a.ID); err != nil && !member {
		return to, CallRejected, nil
	}

	return c.partyAt(ctx, a)
}

// partyAt returns the party at an address of a project. If the address takes no calls, cause is
// set.
func (c directory) partyAt(ctx context.Context, a fabric.Address) (to Party, cause Cause, err error) {
	to = Party{Name: a.DisplayName, Address: a.Path(), AddressID: a.ID}
	if a.Type == fabric.TypeSubscriber {
		to.SubscriberID = a.ResourceID
		return to, Cause{}, nil
	}

	thing, err := c.fabric.Resources.FindThing(ctx, a.ProjectID, a.ResourceID)
	switch {
	case errors.Is(err, problem.NotFound):
		return to, UnallocatedNumber, nil // the destination was deleted after its address was found
	case err != nil:
		return to, Cause{}, err
	case thing.Resource.Type == roomKind:
		to.RoomID = a.ResourceID
	case thing.Resource.Type == fabric.GatewayKind:
		to.GatewayID = a.ResourceID
	case thing.Resource.Type == fabric.EndpointKind:
		to.EndpointID = a.ResourceID
	case thing.Resource.Type == fabric.RingGroupKind:
		to.GroupID = a.ResourceID
	case c.scripts != nil:
		to.ScriptID = a.ResourceID
	default:
		cause = NotImplemented
	}
	return to, cause, nil
}

// owner returns the id of the subscriber or SIP endpoint whose clients ring for the party, or "".
func (p Party) owner() string {
	if p.EndpointID != "" {
		return p.EndpointID
	}
	return p.SubscriberID
}

// isOutside reports whether calls to the party leave through a SIP gateway.
func (p Party) isOutside() bool { return p.GatewayID != "" || strings.HasPrefix(p.Address, "+") }

// CanReach reports whether a browser may show a button for calling an address. Only subscribers and
// rooms get a button, because people answer there.
func CanReach(a fabric.Address) bool {
	return a.Type == fabric.TypeSubscriber || a.Type == fabric.TypeRoom
}

// partyOf returns a client as the other parties see it. wish is the id of the address that the
// client wants to show. If the client does not have this address, partyOf ignores wish.
func (c directory) partyOf(ctx context.Context, client Client, wish string) (Party, error) {
	t := client.Token
	if client.Party != nil {
		return *client.Party, nil
	}
	if t.Kind != fabric.SAT {
		return Party{Name: "Guest"}, nil
	}
	s, err := c.fabric.Subscribers.Find(ctx, t.ProjectID, t.SubscriberID)
	if err != nil {
		return Party{}, err
	}
	p := Party{Name: s.Title(), SubscriberID: s.ID}
	addresses, err := c.fabric.Subscribers.ListAddresses(ctx, t.ProjectID, s.ID, firstAddresses)
	if err != nil {
		return Party{}, err
	}
	for i, a := range addresses.Items {
		if i == 0 || a.ID == wish {
			p.Address = a.Path()
			p.AddressID = a.ID
		}
	}
	return p, nil
}
