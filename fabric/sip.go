package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// SIP manages SIP addresses and the SIP credentials of subscribers' phones.
type SIP struct {
	*core
	store       SIPStore
	resources   *Resources
	subscribers *Subscribers
	endpoints   *Endpoints
}

// A SIPStore keeps SIP addresses and credentials; see [Stores].
type SIPStore interface {
	// CreateSIPAddress returns problem.Conflict on "name" if it is taken.
	CreateSIPAddress(ctx context.Context, a SIPAddress) error
	FindSIPAddress(ctx context.Context, projectID, id string) (SIPAddress, error)
	// FindSIPAddressByName finds an address of any project by its name and user.
	FindSIPAddressByName(ctx context.Context, name, user string) (SIPAddress, error)
	ListSIPAddresses(ctx context.Context, projectID string, q page.Query) (page.Page[SIPAddress], error)
	// UpdateSIPAddress writes an address. old is the time of the last change that the caller has
	// seen. If the address has changed since then, UpdateSIPAddress returns problem.Conflict. If
	// the name is taken, it returns problem.Conflict on "name".
	UpdateSIPAddress(ctx context.Context, a SIPAddress, old time.Time) error
	DeleteSIPAddress(ctx context.Context, projectID, id string) error

	// CreateSIPCredential returns problem.Conflict on "username" if it is taken.
	CreateSIPCredential(ctx context.Context, c SIPCredential) error
	FindSIPCredential(ctx context.Context, projectID, subscriberID, id string) (SIPCredential, error)
	ListSIPCredentials(ctx context.Context, subscriberID string, q page.Query) (page.Page[SIPCredential], error)
	// NamedSIPCredentials returns the credentials with the given username in any project, oldest
	// first. It returns at most limit credentials.
	NamedSIPCredentials(ctx context.Context, username string, limit int) ([]SIPCredential, error)
	// UpdateSIPCredential is like UpdateSIPAddress, with "username" instead of "name".
	UpdateSIPCredential(ctx context.Context, c SIPCredential, old time.Time, end revocation.Revocation) error
	DeleteSIPCredential(ctx context.Context, subscriberID string, end revocation.Revocation) error
}

// A SIPAddress is the address at which SIP systems reach a resource or subscriber.
type SIPAddress struct {
	ID         string
	ProjectID  string
	ResourceID string // the resource that receives the calls
	Fields     kinds.Values
	Secrets    string // the sealed password; "" if no password is required
	Created    time.Time
	Updated    time.Time
}

// A SIPCredential lets a phone register, either for a subscriber or as a SIP endpoint.
type SIPCredential struct {
	ID           string
	ProjectID    string
	SubscriberID string // "" for the credentials of a SIP endpoint
	EndpointID   string // "" for the credentials of a subscriber
	Fields       kinds.Values
	Secrets      string // the sealed password
	Created      time.Time
	Updated      time.Time
}

// Name returns the member "name", the first label of the address's host.
func (a SIPAddress) Name() string { return a.Fields.Text("name") }

// User returns the user of the address; "*" means any user.
func (a SIPAddress) User() string { return a.Fields.Text("user") }

// Encrypted reports whether the address accepts only calls with encrypted media.
func (a SIPAddress) Encrypted() bool { return a.Fields.Text("encryption") == "required" }

// Ciphers returns the SRTP ciphers of the address by their names in the API.
func (a SIPAddress) Ciphers() []string { return ciphersOf(a.Fields) }

func ciphersOf(v kinds.Values) (names []string) {
	_ = json.Unmarshal(v["ciphers"], &names) // the schema ensures a list of strings
	return names
}

// Owner returns the id of the subscriber or SIP endpoint to which a phone with the credentials
// belongs.
func (c SIPCredential) Owner() string {
	if c.EndpointID != "" {
		return c.EndpointID
	}
	return c.SubscriberID
}

// MustEncrypt reports whether the phone must use TLS and encrypt its media.
func (c SIPCredential) MustEncrypt() bool { return c.Fields.Text("encryption") == "required" }

// Username returns the name that the phone registers with.
func (c SIPCredential) Username() string { return c.Fields.Text("username") }

// URI returns the URI of an address. Its host is the address's name below the domain of the fabric.
func (sip *SIP) URI(a SIPAddress) string {
	return "sip:" + a.User() + "@" + a.Name() + "." + sip.Domain()
}

// Domain returns the parent domain of SIP addresses in lower case.
func (sip *SIP) Domain() string {
	domain, _, err := net.SplitHostPort(sip.c.Host)
	if err != nil {
		domain = sip.c.Host
	}
	if _, rest, ok := strings.Cut(domain, "."); ok {
		domain = rest
	}
	return strings.ToLower(domain)
}

// Limited reports whether only calls from the networks in ip_auth are accepted.
func (a SIPAddress) Limited() (limited bool) {
	_ = json.Unmarshal(a.Fields["ip_auth_enabled"], &limited) // the schema ensures a boolean
	return limited
}

// Accepts reports whether the address accepts calls from a network address.
func (a SIPAddress) Accepts(from netip.Addr) bool {
	return !a.Limited() ||
		slices.ContainsFunc(a.Networks(), func(n netip.Prefix) bool { return n.Contains(from) })
}

// Networks returns the networks in ip_auth.
func (a SIPAddress) Networks() []netip.Prefix { return networksOf(a.Fields) }

// handlerField is the member that holds the id of the resource that receives the calls.
const handlerField = "calling_handler_resource_id"

// CreateAddress creates a SIP address for a resource of the project.
func (sip *SIP) CreateAddress(
	ctx context.Context, projectID string, sent map[string]json.RawMessage,
) (a SIPAddress, err error) {
	a = SIPAddress{ID: newID(), ProjectID: projectID, Created: sip.now()}
	a.Updated = a.Created
	a.Fields, err = sip.c.Kinds.Part("sip_address").New(sent)
	if err := errors.Join(joinName(err, "user", a.User()), checkNetworks(a.Fields)); err != nil {
		return a, err
	}
	if err := sip.checkHandler(ctx, projectID, &a); err != nil {
		return a, err
	}
	if a.Secrets, err = sip.sealSecrets(sip.c.Kinds.Part("sip_address"), a.Fields, a.ID, ""); err != nil {
		return a, err
	}
	return a, noHandler(sip.store.CreateSIPAddress(ctx, a))
}

// checkNetworks returns an error for a member of ip_auth that is neither an address nor a
// network.
func checkNetworks(v kinds.Values) error {
	var all []string
	if json.Unmarshal(v["ip_auth"], &all) != nil {
		return nil // the schema reports it
	}
	for _, text := range all {
		_, err := netip.ParsePrefix(text)
		if _, addrErr := netip.ParseAddr(text); err != nil && addrErr != nil {
			return problem.BadParam("ip_auth",
				"ip_auth must contain IP addresses and networks, such as 192.0.2.1 and 192.0.2.0/24")
		}
	}
	return nil
}

// checkHandler sets a.ResourceID to the id of the handler that a.Fields names. It returns an error if
// the project does not have the handler.
func (sip *SIP) checkHandler(ctx context.Context, projectID string, a *SIPAddress) error {
	t, err := sip.resources.FindThing(ctx, projectID, a.Fields.Text(handlerField))
	if err == nil {
		a.ResourceID = t.ID()
	}
	return noHandler(err)
}

func noHandler(err error) error {
	if errors.Is(err, problem.NotFound) {
		return &problem.Error{
			Kind:    problem.Invalid,
			Code:    "does_not_exist",
			Param:   handlerField,
			Message: handlerField + " does not exist in the project",
		}
	}
	return err
}

// FindAddress returns a SIP address of a project.
func (sip *SIP) FindAddress(ctx context.Context, projectID, id string) (SIPAddress, error) {
	id, ok := canonical(id)
	if !ok {
		return SIPAddress{}, problem.NoSuch("SIP address")
	}
	return sip.store.FindSIPAddress(ctx, projectID, id)
}

// ListAddresses returns a page of a project's SIP addresses.
func (sip *SIP) ListAddresses(
	ctx context.Context, projectID string, q page.Query,
) (page.Page[SIPAddress], error) {
	return sip.store.ListSIPAddresses(ctx, projectID, q)
}

// UpdateAddress changes the members that were sent and leaves the others unchanged.
func (sip *SIP) UpdateAddress(
	ctx context.Context, projectID, id string, sent map[string]json.RawMessage,
) (a SIPAddress, err error) {
	err = again(func() error {
		if a, err = sip.FindAddress(ctx, projectID, id); err != nil {
			return err
		}
		old, user := a.Updated, a.User()
		a.Fields, err = sip.c.Kinds.Part("sip_address").Change(a.Fields, sent)
		if a.User() != user {
			err = joinName(err, "user", a.User())
		}

		if err := errors.Join(err, checkNetworks(a.Fields)); err != nil {
			return err
		}
		if err := sip.checkHandler(ctx, projectID, &a); err != nil {
			return err
		}

		if a.Secrets, err = sip.sealSecrets(sip.c.Kinds.Part("sip_address"), a.Fields, a.ID, a.Secrets); err != nil {
			return err
		}
		a.Updated = later(sip.now(), old.Add(time.Microsecond))
		return noHandler(sip.store.UpdateSIPAddress(ctx, a, old))
	})
	return a, err
}

// DeleteAddress deletes a SIP address.
func (sip *SIP) DeleteAddress(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("SIP address")
	}
	return sip.store.DeleteSIPAddress(ctx, projectID, id)
}

// CreateCredential creates credentials for a subscriber's phone.
func (sip *SIP) CreateCredential(
	ctx context.Context, projectID, subscriberID string, sent map[string]json.RawMessage,
) (c SIPCredential, err error) {
	s, err := sip.subscribers.Find(ctx, projectID, subscriberID)
	if err != nil {
		return c, err
	}
	c = SIPCredential{ID: newID(), ProjectID: projectID, SubscriberID: s.ID, Created: sip.now()}
	c.Updated = c.Created
	c.Fields, err = sip.c.Kinds.Part("sip_credential").New(sent)
	if err := joinName(err, "username", c.Username()); err != nil {
		return c, err
	}
	if c.Secrets, err = sip.sealSecrets(sip.c.Kinds.Part("sip_credential"), c.Fields, c.ID, ""); err != nil {
		return c, err
	}
	return c, sip.store.CreateSIPCredential(ctx, c)
}

// FindCredential returns credentials of a project's subscriber.
func (sip *SIP) FindCredential(
	ctx context.Context, projectID, subscriberID, id string,
) (SIPCredential, error) {
	subscriberID, ok := canonical(subscriberID)
	id, ok2 := canonical(id)
	if !ok || !ok2 {
		return SIPCredential{}, problem.NoSuch("SIP credentials")
	}
	return sip.store.FindSIPCredential(ctx, projectID, subscriberID, id)
}

// ListCredentials returns a page of a subscriber's credentials.
func (sip *SIP) ListCredentials(
	ctx context.Context, projectID, subscriberID string, q page.Query,
) (page.Page[SIPCredential], error) {
	s, err := sip.subscribers.Find(ctx, projectID, subscriberID)
	if err != nil {
		return page.Page[SIPCredential]{}, err
	}
	return sip.store.ListSIPCredentials(ctx, s.ID, q)
}

// UpdateCredential changes the members that were sent and leaves the others unchanged. A new
// password ends the calls of phones with the old password.
func (sip *SIP) UpdateCredential(
	ctx context.Context, projectID, subscriberID, id string, sent map[string]json.RawMessage,
) (c SIPCredential, err error) {
	err = again(func() error {
		if c, err = sip.FindCredential(ctx, projectID, subscriberID, id); err != nil {
			return err
		}
		old, username, secrets := c.Updated, c.Username(), c.Secrets
		c.Fields, err = sip.c.Kinds.Part("sip_credential").Change(c.Fields, sent)
		if c.Username() != username {
			err = joinName(err, "username", c.Username())
		}
		if err != nil {
			return err
		}

		if c.Secrets, err = sip.sealSecrets(sip.c.Kinds.Part("sip_credential"), c.Fields, c.ID, c.Secrets); err != nil {
			return err
		}
		c.Updated = later(sip.now(), old.Add(time.Microsecond))

		end := revocation.Revocation{}
		if c.Secrets != secrets {
			end = revocationUntil(revocation.Token, c.ID, c.Updated)
		}
		return sip.store.UpdateSIPCredential(ctx, c, old, end)
	})
	if err != nil {
		return c, err
	}
	return c, sip.c.Revocations.Sync(ctx)
}

// DeleteCredential deletes credentials of a subscriber, and ends the calls of phones that use them.
func (sip *SIP) DeleteCredential(ctx context.Context, projectID, subscriberID, id string) error {
	c, err := sip.FindCredential(ctx, projectID, subscriberID, id)
	if err != nil {
		return err
	}
	end := permanentRevocation(revocation.Token, c.ID, sip.now())
	if err := sip.store.DeleteSIPCredential(ctx, c.SubscriberID, end); err != nil {
		return err
	}
	return sip.c.Revocations.Sync(ctx)
}
