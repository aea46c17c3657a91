package fabric

import (
	"context"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/revocation"
)

// A Store keeps the rows of the fabric. Every method is one transaction, and all
// may be called at once. Find, Update and Delete give problem.NotFound for what
// is absent or belongs to another project. Lists are in the order of creation.
// Where a method takes a [revocation.Revocation], it is written in the same
// transaction. So is the [Event] of every change of a subscriber or resource, for
// each webhook that wants it; of subscribers the store makes it by [SubscriberEvent],
// of resources by a [Teller], and where there are no webhooks not at all.
type Store interface {
	// Record writes the audit event of a decision that changes no row. Every other method
	// that changes something writes its own, in the same transaction.
	Record(ctx context.Context, e audit.Event) error
	// ListAudit returns a page of the audit trail, the newest first.
	ListAudit(ctx context.Context, f audit.Filter, q page.Query) (page.Page[audit.Event], error)

	CreateProject(ctx context.Context, p Project) error
	FindProject(ctx context.Context, id string) (Project, error)
	ListProjects(ctx context.Context, q page.Query) (page.Page[Project], error)
	// AnyRegistration reports whether a project has RegistrationOpen.
	AnyRegistration(ctx context.Context) (bool, error)
	UpdateProject(ctx context.Context, id string, c ProjectChange, at time.Time) (Project, error)
	// SetProjectLogo replaces the picture of a project; the zero value is none.
	SetProjectLogo(ctx context.Context, id string, l logo.Logo, at time.Time) (Project, error)
	// FindLogo returns the PNG of a name, be it of a project or of a client.
	FindLogo(ctx context.Context, name string) ([]byte, error)
	// DeleteProject deletes all that belongs to the project too.
	DeleteProject(ctx context.Context, r revocation.Revocation) error

	// CreateAPIKey returns problem.NotFound if there is no such project.
	CreateAPIKey(ctx context.Context, k APIKey) error
	FindAPIKey(ctx context.Context, projectID, id string) (APIKey, error)
	// FindAPIKeyByHash finds the key that has a secret, or had it before.
	FindAPIKeyByHash(ctx context.Context, hash string) (APIKey, error)
	ListAPIKeys(ctx context.Context, projectID string, q page.Query) (page.Page[APIKey], error)
	// RevokeAPIKey ends a key; one that was revoked before stays as it is.
	RevokeAPIKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error
	// UpdateAPIKey writes the fields that are not nil and gives the new row. A key
	// that was revoked is problem.Conflict.
	UpdateAPIKey(ctx context.Context, projectID, id string, c APIKeyInput, r revocation.Revocation) (APIKey, error)
	// RotateAPIKey writes the secrets of a key whose hash is still old; else, or if it
	// was revoked, it is problem.Conflict.
	RotateAPIKey(ctx context.Context, k APIKey, old string, r revocation.Revocation) error
	// TouchAPIKey notes that a key was used, by the secret of a hash.
	TouchAPIKey(ctx context.Context, id, hash string, at time.Time) error

	// CreateSubscriber writes a subscriber with its first address. A reference or
	// e-mail in use in the project gives problem.Conflict on the parameter
	// "email", and of many callers one succeeds; an address name in use gives
	// problem.Conflict on "address". An unknown project is problem.NotFound.
	CreateSubscriber(ctx context.Context, s Subscriber, a Address, by ...Proof) error
	FindSubscriber(ctx context.Context, projectID, id string) (Subscriber, error)
	// FindSubscriberByEmail looks for what [NormalizeEmail] gave.
	FindSubscriberByEmail(ctx context.Context, projectID, email string) (Subscriber, error)
	FindSubscriberByReference(ctx context.Context, projectID, reference string) (Subscriber, error)
	ListSubscribers(ctx context.Context, projectID string, q page.Query) (page.Page[Subscriber], error)
	// SearchSubscribers lists those of whom an e-mail, a reference or a name begins with a
	// text, or each of its words does. A page that begins in the middle is named by more
	// than an id, and one that took long to fill is given as it is.
	SearchSubscribers(ctx context.Context, projectID, text string, q page.Query) (page.Page[Subscriber], error)
	// UpdateSubscriber writes the fields that are not nil, renames the
	// subscriber's addresses, and gives the new row. With a revocation it ends
	// the subscriber's logins and grants too. An e-mail in use gives
	// problem.Conflict.
	UpdateSubscriber(ctx context.Context, projectID, id string, c SubscriberChange, at time.Time,
		r *revocation.Revocation) (Subscriber, error)
	// QueueLetter writes a letter that is to be sent.
	QueueLetter(ctx context.Context, l mail.Letter) error
	// DeleteSubscriber deletes its addresses, logins and grants too.
	DeleteSubscriber(ctx context.Context, projectID string, r revocation.Revocation) error
	// EraseSubscriber deletes a subscriber, and everything else that says who it was. One
	// that is not there is no error: what was left of it is deleted.
	EraseSubscriber(ctx context.Context, projectID string, by Eraser, now time.Time) (Erasure, error)
	// SubscriberWithAddresses reads both at once.
	SubscriberWithAddresses(ctx context.Context, projectID, id string) (Subscriber, []Address, error)

	// CreateResource writes a resource with its first address. The digest of a name
	// that another of its type has gives problem.Conflict on "name", an address name in
	// use on "address".
	CreateResource(ctx context.Context, r Resource, a Address, tell Teller) error
	FindResource(ctx context.Context, projectID, typ, id string) (Resource, error)
	ListResources(ctx context.Context, projectID, typ string, q page.Query) (page.Page[Resource], error)
	// UpdateResource writes a resource that was last changed at a moment, and
	// renames its addresses; problem.Conflict if it was changed or deleted since, and
	// on "name" as CreateResource.
	UpdateResource(ctx context.Context, r Resource, old time.Time, tell Teller) error
	// DeleteResource deletes its addresses too. One that takes calls of something
	// is problem.Conflict. tell is given what was deleted.
	DeleteResource(ctx context.Context, projectID, typ, id string, tell Teller) error
	// FindThings returns those of the ids that are there, in their order.
	FindThings(ctx context.Context, projectID string, ids []string) ([]Thing, error)
	ListThings(ctx context.Context, projectID string, q page.Query) (page.Page[Thing], error)

	// CreateVersion returns the version with its number, the next of the resource.
	CreateVersion(ctx context.Context, v Version) (Version, error)
	FindVersion(ctx context.Context, resourceID, id string) (Version, error)
	ListVersions(ctx context.Context, resourceID string, q page.Query) (page.Page[Version], error)

	// CreateSIPAddress returns problem.Conflict on "name" where it is in use.
	CreateSIPAddress(ctx context.Context, a SIPAddress) error
	FindSIPAddress(ctx context.Context, projectID, id string) (SIPAddress, error)
	ListSIPAddresses(ctx context.Context, projectID string, q page.Query) (page.Page[SIPAddress], error)
	// UpdateSIPAddress writes one that was last changed at a moment, else it is
	// problem.Conflict; on "name" where that is in use.
	UpdateSIPAddress(ctx context.Context, a SIPAddress, old time.Time) error
	DeleteSIPAddress(ctx context.Context, projectID, id string) error

	// CreateSIPCredential returns problem.Conflict on "username" where it is in use.
	CreateSIPCredential(ctx context.Context, c SIPCredential) error
	FindSIPCredential(ctx context.Context, projectID, subscriberID, id string) (SIPCredential, error)
	ListSIPCredentials(ctx context.Context, subscriberID string, q page.Query) (page.Page[SIPCredential], error)
	// UpdateSIPCredential does as UpdateSIPAddress, on "username".
	UpdateSIPCredential(ctx context.Context, c SIPCredential, old time.Time) error
	DeleteSIPCredential(ctx context.Context, subscriberID, id string) error

	// PutPhoneRoute writes a route in the place of the number's for that handler.
	PutPhoneRoute(ctx context.Context, r PhoneRoute) error

	// CreateEmbedKey returns problem.NotFound if there is no such address.
	CreateEmbedKey(ctx context.Context, k EmbedKey) error
	FindEmbedKeyByHash(ctx context.Context, hash string) (EmbedKey, error)
	ListEmbedKeys(ctx context.Context, projectID string, q page.Query) (page.Page[EmbedKey], error)
	// RevokeEmbedKey ends a key; one that was revoked before stays as it is.
	RevokeEmbedKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error

	// PutDevice writes a device, or renames the one of that token, which keeps its
	// id, key and beginning. Of a subscriber there are at most so many, else it is
	// problem.Invalid.
	PutDevice(ctx context.Context, d Device, most int) (Device, error)
	DeleteDevice(ctx context.Context, subscriberID, id string) error

	// ListAddresses leaves out those of disabled subscribers. A From which the
	// sorting needs and which is gone gives problem.Invalid on "page_token".
	ListAddresses(ctx context.Context, projectID string, f AddressFilter, q page.Query) (page.Page[Address], error)
	// FindAddress does not find those of disabled subscribers either.
	FindAddress(ctx context.Context, projectID, id string) (Address, error)
	FindAddressByName(ctx context.Context, projectID, context, name string) (Address, error)
	// CountAddresses tells how many of the ids are addresses of the project.
	CountAddresses(ctx context.Context, projectID string, ids []string) (int, error)

	// FindApplication finds an OAuth client of the project.
	FindApplication(ctx context.Context, projectID, id string) (Application, error)

	// CreateWebhook returns problem.Invalid where the project has so many.
	CreateWebhook(ctx context.Context, w Webhook, most int) error
	FindWebhook(ctx context.Context, projectID, id string) (Webhook, error)
	ListWebhooks(ctx context.Context, projectID string, q page.Query) (page.Page[Webhook], error)
	// UpdateWebhook writes one that was last changed at a moment, else it is
	// problem.Conflict.
	UpdateWebhook(ctx context.Context, w Webhook, old time.Time) error
	// DeleteWebhook deletes its deliveries too.
	DeleteWebhook(ctx context.Context, projectID, id string) error

	FindDelivery(ctx context.Context, webhookID, id string) (Delivery, error)
	// QueueDelivery queues an event for one webhook alone.
	QueueDelivery(ctx context.Context, webhookID string, e Event) (Delivery, error)
	// ListDeliveries returns the newest first; a state of "" is any.
	ListDeliveries(ctx context.Context, webhookID string, state DeliveryState, q page.Query) (
		page.Page[Delivery], error)
	// Redeliver makes a delivery wait again, from now on, and its webhook rest no more.
	Redeliver(ctx context.Context, webhookID, id string, now time.Time) (Delivery, error)
	// RedeliverDead does so with all that are dead, and gives how many.
	RedeliverDead(ctx context.Context, webhookID string, now time.Time) (int, error)
	// ExpireDeliveries returns up those that wait since before a moment.
	ExpireDeliveries(ctx context.Context, before, now time.Time) error
	// ForgetDeliveries deletes those that were delivered or given up before these
	// moments, and those of no webhook.
	ForgetDeliveries(ctx context.Context, delivered, dead time.Time) error

	// ListLogouts returns what an OAuth client is told of logouts, those of the newest
	// logins first; a state of "" is any.
	ListLogouts(ctx context.Context, clientID string, state DeliveryState, q page.Query) (page.Page[Logout], error)
	// RedeliverLogout makes a logout wait again, from now on, and its client rest no more.
	RedeliverLogout(ctx context.Context, clientID, loginID string, now time.Time) (Logout, error)
	// RedeliverDeadLogouts does so with all that are dead, and gives how many.
	RedeliverDeadLogouts(ctx context.Context, clientID string, now time.Time) (int, error)
	// ExpireLogouts returns up those that wait since before a moment.
	ExpireLogouts(ctx context.Context, before, now time.Time) error
	// ForgetLogouts deletes those that were delivered or given up before these moments,
	// and those of no client that is told.
	ForgetLogouts(ctx context.Context, delivered, dead time.Time) error

	// CreateSigningKey returns problem.Conflict where the project has one that starts
	// when this one does, and of many callers one succeeds.
	CreateSigningKey(ctx context.Context, k SigningKey) error
	// ListSigningKeys returns all of a project, in the order of their beginning.
	ListSigningKeys(ctx context.Context, projectID string) ([]SigningKey, error)
	// RotateSigningKey adds a key and deletes those that began before current. Where
	// alone is set, it deletes all others.
	RotateSigningKey(ctx context.Context, k SigningKey, current time.Time, alone bool) error

	// WantsPresence reports whether a webhook of the project wants to know who is online.
	WantsPresence(ctx context.Context, projectID string) (bool, error)
	// FindTold returns what was told of a subscriber; a Version of 0 where nothing was.
	FindTold(ctx context.Context, subscriberID string) (Told, error)
	// TellPresence writes what is told from now on, in the place of the version before,
	// and an event if there is one. Another version there is problem.Conflict; a
	// subscriber that is gone is problem.NotFound.
	TellPresence(ctx context.Context, t Told, due time.Time, e *Event) error
	// DuePresences returns some that were told to be online and are due to be looked at,
	// and puts off their next look.
	DuePresences(ctx context.Context, now, next time.Time, most int) ([]Told, error)
	// ForgetPresences deletes what was told of a project's subscribers.
	ForgetPresences(ctx context.Context, projectID string) error

	// RotateFamily marks the refresh token of a generation as used: of many
	// callers one gets used = false. Any other use revokes the family, which
	// holds although it is no error.
	RotateFamily(ctx context.Context, u FamilyUse) (used bool, err error)

	// ListLogins returns a subscriber's logins with their grants, newest first.
	ListLogins(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[Login], error)
	// ListConsents returns what a subscriber has agreed to, by client.
	ListConsents(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[Consent], error)
	// ListFamilies returns the refresh tokens of a subscriber that were used, newest
	// first.
	ListFamilies(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[Family], error)
	// RevokeFamily ends a family of a subscriber; one that was revoked before stays as
	// it is.
	RevokeFamily(ctx context.Context, projectID, subscriberID string, r revocation.Revocation) error
	ListDevices(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[Device], error)
}

// A FamilyUse is one use of a refresh token.
type FamilyUse struct {
	ID           string
	ProjectID    string
	SubscriberID string // "" for guests
	ClientID     string
	Generation   int64
	Created      time.Time             // when the token was made
	Used         time.Time             // now
	Expires      time.Time             // when both it and its successor have expired
	Revocation   revocation.Revocation // written if the token was used before
}
