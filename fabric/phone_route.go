package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Routes assigns phone numbers, SIP addresses and SIP endpoints to the resources that
// take their calls.
type Routes struct {
	*core
	store     RouteStore
	resources *Resources
	addresses *Addresses
	sip       *SIP
}

// A RouteStore keeps phone routes; see [Stores].
type RouteStore interface {
	// PutPhoneRoute writes a route. It replaces the number's previous route for the same handler.
	PutPhoneRoute(ctx context.Context, r PhoneRoute) error
}

// A PhoneRoute assigns the calls or messages of a phone number to a resource. ID is the ID of the
// phone number, which the caller supplies.
type PhoneRoute struct {
	ID         string
	ProjectID  string
	Handler    string // calling or messaging
	ResourceID string
	Assigned   time.Time
}

// first returns the first address of a resource or subscriber.
func (as *Addresses) first(ctx context.Context, projectID, id string) (Address, error) {
	found, err := as.store.ListAddresses(ctx, projectID, AddressFilter{ResourceID: id}, page.Query{Size: 1})
	if err != nil {
		return Address{}, err
	}
	if len(found.Items) == 0 {
		return Address{}, problem.NoSuch("address")
	}
	return found.Items[0], nil
}

// AssignPhone assigns a number's calls or messages to a resource and returns the
// resource's address. It replaces the number's previous assignment.
func (rs *Routes) AssignPhone(ctx context.Context, projectID, id, routeID, handler string) (Address, error) {
	t, err := rs.resources.FindThing(ctx, projectID, id)
	if err != nil {
		return Address{}, err
	}

	route, ok := canonical(routeID)
	var errs []error
	switch {
	case routeID == "":
		errs = append(errs, problem.Missing("phone_route_id"))
	case !ok:
		errs = append(errs, problem.BadParam("phone_route_id", "phone_route_id must be a UUID"))
	}

	switch handler {
	case "calling", "messaging":
	case "":
		errs = append(errs, problem.Missing("handler"))
	default:
		errs = append(errs, problem.BadParam("handler", "handler must be calling or messaging"))
	}

	if err := errors.Join(errs...); err != nil {
		return Address{}, err
	}

	err = rs.store.PutPhoneRoute(ctx, PhoneRoute{
		ID:         route,
		ProjectID:  projectID,
		Handler:    handler,
		ResourceID: t.ID(),
		Assigned:   rs.now(),
	})
	if err != nil {
		return Address{}, err
	}
	return rs.addresses.first(ctx, projectID, t.ID())
}

// AssignSIPAddress assigns the calls of a SIP address to a resource.
func (rs *Routes) AssignSIPAddress(
	ctx context.Context, projectID, id, sipAddressID string,
) (SIPAddress, error) {
	const param = "domain_application_id"
	t, err := rs.resources.FindThing(ctx, projectID, id)
	if err != nil {
		return SIPAddress{}, err
	}
	change := map[string]json.RawMessage{handlerField: quoted(t.ID())}
	a, err := rs.sip.UpdateAddress(ctx, projectID, sipAddressID, change)
	if err := assignable(param, sipAddressID, err); err != nil {
		return SIPAddress{}, err
	}
	return a, nil
}

// AssignSIPEndpoint assigns the calls of a SIP endpoint to a resource, and returns the
// endpoint's address.
func (rs *Routes) AssignSIPEndpoint(ctx context.Context, projectID, id, endpointID string) (Address, error) {
	const param = "sip_endpoint_id"
	t, err := rs.resources.FindThing(ctx, projectID, id)
	if err != nil {
		return Address{}, err
	}

	kind := rs.c.Kinds.ByType("sip_endpoint")
	change := map[string]json.RawMessage{
		"call_handler": quoted("resource"),
		handlerField:   quoted(t.ID()),
	}
	endpoint, err := rs.resources.Update(ctx, projectID, kind, endpointID, change)
	if err := assignable(param, endpointID, err); err != nil {
		return Address{}, err
	}
	return rs.addresses.first(ctx, projectID, endpoint.ID)
}

// assignable converts the error from updating an object whose id was sent in a parameter. If the id
// is empty, assignable returns an error about the missing parameter. It converts problem.NotFound
// to an error on the parameter, and returns other errors unchanged.
func assignable(param, id string, err error) error {
	switch {
	case id == "":
		return problem.Missing(param)
	case errors.Is(err, problem.NotFound):
		return &problem.Error{
			Kind:    problem.Invalid,
			Code:    "does_not_exist",
			Param:   param,
			Message: param + " does not exist in the project",
		}
	}
	return err
}

// quoted returns text as JSON.
func quoted(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a string can always be encoded
	return raw
}

// errAssigned is the error for deleting a resource that is assigned as a handler.
func errAssigned() error {
	return &problem.Error{
		Kind: problem.Invalid,
		Code: "resource_assigned_as_handler",
		Message: "the resource handles the calls of a number, SIP address or SIP endpoint; " +
			"assign another resource first",
	}
}
