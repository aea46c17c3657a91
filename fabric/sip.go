package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A SIPAddress is where SIP systems reach a resource or subscriber.
type SIPAddress struct {
	ID         string
	ProjectID  string
	ResourceID string // what takes the calls
	Fields     kinds.Values
	Secrets    string // sealed; "" where no password is asked for
	Created    time.Time
	Updated    time.Time
}

// A SIPCredential is by what a phone of a subscriber registers.
type SIPCredential struct {
	ID           string
	ProjectID    string
	SubscriberID string
	Fields       kinds.Values
	Secrets      string // sealed
	Created      time.Time
	Updated      time.Time
}

// Name returns the name in the address's host.
func (a SIPAddress) Name() string { return a.Fields.Text("name") }

// User returns the user of the address; * is any.
func (a SIPAddress) User() string { return a.Fields.Text("user") }

// Username returns the name by which the phone registers.
func (c SIPCredential) Username() string { return c.Fields.Text("username") }

// SIPURI returns the URI of an address: its name below the domain of the fabric.
func (f *Fabric) SIPURI(a SIPAddress) string {
	domain, _, err := net.SplitHostPort(f.c.Host)
	if err != nil {
		domain = f.c.Host
	}
	if _, rest, ok := strings.Cut(domain, "."); ok {
		domain = rest
	}
	return "sip:" + a.User() + "@" + a.Name() + "." + domain
}

// handlerField names the resource that takes the calls.
const handlerField = "calling_handler_resource_id"

// CreateSIPAddress makes a SIP address of a resource of the project.
func (f *Fabric) CreateSIPAddress(ctx context.Context, projectID string, sent map[string]json.RawMessage) (a SIPAddress, err error) {
	a = SIPAddress{ID: newID(), ProjectID: projectID, Created: f.now()}
	a.Updated = a.Created
	a.Fields, err = f.c.Kinds.Part("sip_address").New(sent)
	if err := errors.Join(err, checkName("user", a.User()), checkNetworks(a.Fields)); err != nil {
		return a, err
	}
	if err := f.checkHandler(ctx, projectID, &a); err != nil {
		return a, err
	}
	if a.Secrets, err = f.sealSecrets(f.c.Kinds.Part("sip_address"), a.Fields, a.ID, ""); err != nil {
		return a, err
	}
	return a, noHandler(f.c.Store.CreateSIPAddress(ctx, a))
}

// checkNetworks reports what of ip_auth is no address and no network.
func checkNetworks(v kinds.Values) error {
	var all []string
	if json.Unmarshal(v["ip_auth"], &all) != nil {
		return nil // told by the schema
	}
	for _, text := range all {
		_, err := netip.ParsePrefix(text)
		if _, aerr := netip.ParseAddr(text); err != nil && aerr != nil {
			return problem.BadParam("ip_auth",
				"ip_auth must hold addresses and networks, such as 192.0.2.1 and 192.0.2.0/24")
		}
	}
	return nil
}

// checkHandler reports a handler that the project does not have.
func (f *Fabric) checkHandler(ctx context.Context, projectID string, a *SIPAddress) error {
	t, err := f.FindThing(ctx, projectID, a.Fields.Text(handlerField))
	if err == nil {
		a.ResourceID = t.ID()
	}
	return noHandler(err)
}

func noHandler(err error) error {
	if errors.Is(err, problem.NotFound) {
		return &problem.Error{Kind: problem.Invalid, Code: "does_not_exist", Param: handlerField,
			Message: handlerField + " does not exist in the project"}
	}
	return err
}

// FindSIPAddress returns a SIP address of a project.
func (f *Fabric) FindSIPAddress(ctx context.Context, projectID, id string) (SIPAddress, error) {
	id, ok := canonical(id)
	if !ok {
		return SIPAddress{}, problem.NoSuch("SIP address")
	}
	return f.c.Store.FindSIPAddress(ctx, projectID, id)
}

// ListSIPAddresses returns a page of a project's SIP addresses.
func (f *Fabric) ListSIPAddresses(ctx context.Context, projectID string, q page.Query) (page.Page[SIPAddress], error) {
	return f.c.Store.ListSIPAddresses(ctx, projectID, q)
}

// UpdateSIPAddress changes the members that were sent.
func (f *Fabric) UpdateSIPAddress(ctx context.Context, projectID, id string, sent map[string]json.RawMessage) (a SIPAddress, err error) {
	err = again(func() error {
		if a, err = f.FindSIPAddress(ctx, projectID, id); err != nil {
			return err
		}
		old, user := a.Updated, a.User()
		a.Fields, err = f.c.Kinds.Part("sip_address").Change(a.Fields, sent)
		if a.User() != user {
			err = errors.Join(err, checkName("user", a.User()))
		}
		if err := errors.Join(err, checkNetworks(a.Fields)); err != nil {
			return err
		}
		if err := f.checkHandler(ctx, projectID, &a); err != nil {
			return err
		}
		if a.Secrets, err = f.sealSecrets(f.c.Kinds.Part("sip_address"), a.Fields, a.ID, a.Secrets); err != nil {
			return err
		}
		a.Updated = later(f.now(), old.Add(time.Microsecond))
		return noHandler(f.c.Store.UpdateSIPAddress(ctx, a, old))
	})
	return a, err
}

// DeleteSIPAddress deletes a SIP address.
func (f *Fabric) DeleteSIPAddress(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("SIP address")
	}
	return f.c.Store.DeleteSIPAddress(ctx, projectID, id)
}

// CreateSIPCredential makes credentials of a subscriber's phone.
func (f *Fabric) CreateSIPCredential(ctx context.Context, projectID, subscriberID string, sent map[string]json.RawMessage) (c SIPCredential, err error) {
	s, err := f.FindSubscriber(ctx, projectID, subscriberID)
	if err != nil {
		return c, err
	}
	c = SIPCredential{ID: newID(), ProjectID: projectID, SubscriberID: s.ID, Created: f.now()}
	c.Updated = c.Created
	c.Fields, err = f.c.Kinds.Part("sip_credential").New(sent)
	if err := errors.Join(err, checkName("username", c.Username())); err != nil {
		return c, err
	}
	if c.Secrets, err = f.sealSecrets(f.c.Kinds.Part("sip_credential"), c.Fields, c.ID, ""); err != nil {
		return c, err
	}
	return c, f.c.Store.CreateSIPCredential(ctx, c)
}

// FindSIPCredential returns credentials of a subscriber of a project.
func (f *Fabric) FindSIPCredential(ctx context.Context, projectID, subscriberID, id string) (SIPCredential, error) {
	subscriberID, ok := canonical(subscriberID)
	id, ok2 := canonical(id)
	if !ok || !ok2 {
		return SIPCredential{}, problem.NoSuch("SIP credentials")
	}
	return f.c.Store.FindSIPCredential(ctx, projectID, subscriberID, id)
}

// ListSIPCredentials returns a page of a subscriber's credentials.
func (f *Fabric) ListSIPCredentials(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[SIPCredential], error) {
	s, err := f.FindSubscriber(ctx, projectID, subscriberID)
	if err != nil {
		return page.Page[SIPCredential]{}, err
	}
	return f.c.Store.ListSIPCredentials(ctx, s.ID, q)
}

// UpdateSIPCredential changes the members that were sent.
func (f *Fabric) UpdateSIPCredential(ctx context.Context, projectID, subscriberID, id string, sent map[string]json.RawMessage) (c SIPCredential, err error) {
	err = again(func() error {
		if c, err = f.FindSIPCredential(ctx, projectID, subscriberID, id); err != nil {
			return err
		}
		old, username := c.Updated, c.Username()
		c.Fields, err = f.c.Kinds.Part("sip_credential").Change(c.Fields, sent)
		if c.Username() != username {
			err = errors.Join(err, checkName("username", c.Username()))
		}
		if err != nil {
			return err
		}
		if c.Secrets, err = f.sealSecrets(f.c.Kinds.Part("sip_credential"), c.Fields, c.ID, c.Secrets); err != nil {
			return err
		}
		c.Updated = later(f.now(), old.Add(time.Microsecond))
		return f.c.Store.UpdateSIPCredential(ctx, c, old)
	})
	return c, err
}

// DeleteSIPCredential deletes credentials of a subscriber.
func (f *Fabric) DeleteSIPCredential(ctx context.Context, projectID, subscriberID, id string) error {
	c, err := f.FindSIPCredential(ctx, projectID, subscriberID, id)
	if err != nil {
		return err
	}
	return f.c.Store.DeleteSIPCredential(ctx, c.SubscriberID, c.ID)
}
