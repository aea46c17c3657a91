// Package fabric manages what calls need. It manages projects and their API keys, subscribers and
// other resources, and the addresses at which they are reached. It also manages the tokens that
// apps and web pages present, and the webhooks that receive events about these objects.
//
// Tokens are sealed and not stored. Issuing a token for a known subscriber writes nothing. Opening
// a token reads the key ring and the list of revocations, which are both in memory, and asks
// [Config].Live whether the token's login has ended. The [Stores] ensure that certain changes
// happen only once, such as creating a subscriber for a reference or using a refresh token.
//
// The package contains no HTTP and no SQL. Package fabric/rest serves the API, and package store
// stores the rows.
package fabric

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/keys"
)

// Config holds the dependencies and settings of a Fabric.
type Config struct {
	Stores      Stores
	Ring        *keys.Ring
	Kinds       *kinds.Catalog   // kinds of resources; nil means kinds.Builtin
	Passwords   *password.Hasher // nil means a new one
	Revocations *revocation.List
	Sessions    session.Store    // holds presence; nil disables presence
	Node        string           // name of this node, for sockets; "" if it carries no calls
	Host        string           // the "ch" member of every token, such as puc.localhost:8443
	Issuer      string           // the issuer in every token; other issuers' tokens are rejected
	Now         func() time.Time // nil means time.Now
	EmbedLimits EmbedLimits      // counts are kept in Sessions

	// Live returns problem.Unauthenticated once the login with this sid has ended. If Live is nil,
	// every login counts as active.
	Live func(ctx context.Context, sid string) error

	// Issued is called with the project of each sealed token, except refresh tokens. It may be nil.
	Issued func(projectID string)

	// EndLogin ends the login with this sid and everything that was issued for it. EndLogin is nil
	// if the server has no logins.
	EndLogin func(ctx context.Context, sid string) error

	// RevokeConsent revokes a subscriber's consent to an OAuth client, and ends everything that the
	// client got through it. RevokeConsent is nil if the server has no OAuth clients.
	RevokeConsent func(ctx context.Context, subscriberID, clientID string) error

	// Weak returns an error on param if a new password is too easy to guess. known lists what an
	// attacker may know about the subscriber. If Weak is nil, only the length is checked.
	Weak func(ctx context.Context, param, password string, known ...string) error

	// MinPassword is the minimum length of a password that Weak accepts. Pages and errors show this
	// length.
	MinPassword int

	// Export adds data from other services to a subscriber's export. Erased makes other services
	// delete their data about an erased subscriber, such as media and entries of the session store.
	// Both may be nil.
	Export func(ctx context.Context, e *Export) error
	Erased func(ctx context.Context, e Erasure) error

	// Factors manages the subscribers' second factors. If Factors is nil, subscribers have no
	// second factors.
	Factors *factor.Factors

	// CheckURL returns an error on param if the server must not send requests to url. If CheckURL
	// is nil, every URL is allowed.
	CheckURL func(param, url string) error
}

// A Fabric enforces the rules of this package. Each of its parts is responsible for one kind of
// object. All methods may be called concurrently.
type Fabric struct {
	Projects           *Projects
	APIKeys            *APIKeys
	Audit              *Audit
	Subscribers        *Subscribers
	Logins             *Logins
	Tokens             *Tokens
	EmbedKeys          *EmbedKeys
	IngestKeys         *IngestKeys
	RegistrationTokens *RegistrationTokens
	Resources          *Resources
	Routes             *Routes
	Addresses          *Addresses
	SIP                *SIP
	Endpoints          *Endpoints
	Gateways           *Gateways
	PhoneNumbers       *PhoneNumbers
	Webhooks           *Webhooks
	Deliveries         *Deliveries
	Presence           *Presences
	Devices            *Devices

	core *core
}

// core holds what all parts share.
type core struct {
	c      Config
	caches caches
}

// New returns a Fabric with the dependencies and settings in c.
func New(c Config) *Fabric {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Passwords == nil {
		c.Passwords = password.New(0)
	}
	if c.Kinds == nil {
		c.Kinds = kinds.Builtin()
	}
	if c.Live == nil {
		c.Live = func(context.Context, string) error { return nil }
	}
	if c.CheckURL == nil {
		c.CheckURL = func(string, string) error { return nil }
	}

	return wire(&core{c, newCaches(c.Now)})
}

// wire creates the parts of a Fabric. Each part is created after the parts that it uses.
func wire(c *core) *Fabric {
	s := c.c.Stores
	f := &Fabric{core: c}
	apps := &applications{c, s.Applications}
	f.Projects = &Projects{c, s.Projects}
	f.APIKeys = &APIKeys{core: c, store: s.APIKeys}
	f.Audit = &Audit{c, s.Audit}
	f.Addresses = &Addresses{c, s.Addresses}
	f.Subscribers = &Subscribers{
		core:         c,
		store:        s.Subscribers,
		projects:     f.Projects,
		addresses:    f.Addresses,
		applications: apps,
	}
	f.Logins = &Logins{core: c, store: s.Logins, subscribers: f.Subscribers}
	f.Devices = &Devices{core: c, store: s.Devices, subscribers: f.Subscribers}
	f.Presence = &Presences{core: c, store: s.Presence, subscribers: f.Subscribers}

	f.IngestKeys = &IngestKeys{c, s.IngestKeys}
	f.RegistrationTokens = &RegistrationTokens{c, s.RegistrationTokens}
	f.EmbedKeys = &EmbedKeys{core: c, store: s.EmbedKeys, addresses: f.Addresses}
	f.Tokens = &Tokens{
		core:         c,
		store:        s.Tokens,
		sealers:      newSealers(c.c.Ring, c.c.Host),
		subscribers:  f.Subscribers,
		addresses:    f.Addresses,
		embedKeys:    f.EmbedKeys,
		applications: apps,
	}

	f.Resources = &Resources{
		core:        c,
		store:       s.Resources,
		subscribers: f.Subscribers,
		addresses:   f.Addresses,
	}
	f.Endpoints = &Endpoints{c, s.Endpoints}
	f.SIP = &SIP{
		core:        c,
		store:       s.SIP,
		resources:   f.Resources,
		subscribers: f.Subscribers,
		endpoints:   f.Endpoints,
	}
	f.Routes = &Routes{core: c, store: s.Routes, resources: f.Resources, addresses: f.Addresses, sip: f.SIP}
	f.Gateways = &Gateways{c, s.Gateways}
	f.PhoneNumbers = &PhoneNumbers{core: c, store: s.PhoneNumbers, addresses: f.Addresses}
	f.Webhooks = &Webhooks{c, s.Webhooks}
	f.Deliveries = &Deliveries{core: c, store: s.Deliveries, webhooks: f.Webhooks, applications: apps}
	return f
}

// now returns the time to the microsecond, the precision of rows and tokens.
func (c *core) now() time.Time { return c.c.Now().UTC().Truncate(time.Microsecond) }

// newID returns a new id. Ids sort by their time of creation.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// canonical returns a UUID in lower case and reports whether id is a UUID. An id that is not a UUID
// must not be passed to a store.
func canonical(id string) (string, bool) {
	if len(id) != 36 {
		return "", false
	}
	u, err := uuid.Parse(id)
	return u.String(), err == nil
}

// keepRevocations is how long revocations are kept. It is longer than the lifetime of any token, so
// a revocation outlives every token to which it applies.
const keepRevocations = 31 * 24 * time.Hour

// revocationUntil returns a revocation of all tokens that were issued for the given row until the
// time at.
func revocationUntil(kind, id string, at time.Time) revocation.Revocation {
	return revocation.Revocation{Kind: kind, ID: id, Until: at, Expires: at.Add(keepRevocations)}
}

// permanentRevocation returns the revocation for a row that was permanently deleted or revoked. It
// also applies to tokens that are being issued at the same time.
func permanentRevocation(kind, id string, at time.Time) revocation.Revocation {
	return revocationUntil(kind, id, at.Add(keepRevocations))
}

// Stores are the stores that a fabric needs. One value may implement several of them.
//
// Each method is one transaction, and all methods may be called concurrently. Find, Update and
// Delete return problem.NotFound if a row is missing or belongs to another project. Lists are in
// order of creation. Some methods differ, and say so.
//
// A method with a [revocation.Revocation] parameter writes the revocation in the same transaction.
// Likewise, each change of a subscriber or resource writes its [Event] for each webhook that
// receives this event. The store builds the event only if the project has an enabled webhook. It
// uses [SubscriberEvent] for subscribers, and a [Teller] for resources.
type Stores struct {
	Projects           ProjectStore
	APIKeys            APIKeyStore
	Audit              AuditStore
	Subscribers        SubscriberStore
	Logins             LoginStore
	Tokens             TokenStore
	EmbedKeys          EmbedKeyStore
	IngestKeys         IngestKeyStore
	RegistrationTokens RegistrationTokenStore
	Applications       ApplicationStore
	Resources          ResourceStore
	Routes             RouteStore
	Addresses          AddressStore
	SIP                SIPStore
	Endpoints          EndpointStore
	Gateways           GatewayStore
	PhoneNumbers       NumberStore
	Webhooks           WebhookStore
	Deliveries         DeliveryStore
	Presence           PresenceStore
	Devices            DeviceStore
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// caches hold rows for up to 300 ms after this node has read them. Issuing and using tokens
// therefore reads a row only a few times per second. Revocations take effect regardless of these
// caches.
type caches struct {
	references   *cache.Cache[Subscriber]
	subscribers  *cache.Cache[reachable]
	addresses    *cache.Cache[int]
	applications *cache.Cache[Application]
	embeds       *cache.Cache[EmbedKey]
	signing      *cache.Cache[string]
	wants        *cache.Cache[bool]
	logos        *cache.Cache[[]byte]
}

// keptLogos is the maximum number of cached logos. Each has at most 12 KiB.
const keptLogos = 256

func newCaches(now func() time.Time) caches {
	return caches{
		references:   cache.New[Subscriber](now),
		subscribers:  cache.New[reachable](now),
		addresses:    cache.New[int](now),
		applications: cache.New[Application](now),
		embeds:       cache.New[EmbedKey](now),
		signing:      cache.New[string](now),
		wants:        cache.New[bool](now),
		logos:        cache.NewSize[[]byte](now, keptLogos),
	}
}

// forget clears the caches of subscribers and addresses, after this node has changed a subscriber
// or a resource.
func (l caches) forget() {
	l.references.Clear()
	l.subscribers.Clear()
	l.addresses.Clear()
}
