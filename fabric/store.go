package fabric

import (
	"context"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/revocation"
)

// A Store keeps the rows of the fabric. Every method is one transaction, and all
// may be called at once. Find, Update and Delete give problem.NotFound for what
// is absent or belongs to another project. Lists are in the order of creation.
// Where a method takes a [revocation.Revocation], it is written in the same
// transaction.
type Store interface {
	CreateProject(ctx context.Context, p Project) error
	FindProject(ctx context.Context, id string) (Project, error)
	ListProjects(ctx context.Context, q page.Query) (page.Page[Project], error)
	UpdateProject(ctx context.Context, id string, c ProjectChange, at time.Time) (Project, error)
	// DeleteProject deletes all that belongs to the project too.
	DeleteProject(ctx context.Context, r revocation.Revocation) error

	// CreateAPIKey gives problem.NotFound if there is no such project.
	CreateAPIKey(ctx context.Context, k APIKey) error
	FindAPIKeyByHash(ctx context.Context, hash string) (APIKey, error)
	ListAPIKeys(ctx context.Context, projectID string, q page.Query) (page.Page[APIKey], error)
	// RevokeAPIKey ends a key; one that was revoked before stays as it is.
	RevokeAPIKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error
	TouchAPIKey(ctx context.Context, id string, at time.Time) error

	// CreateSubscriber writes a subscriber with its first address. A reference or
	// e-mail in use in the project gives problem.Conflict on the parameter
	// "email", and of many callers one succeeds; an address name in use gives
	// problem.Conflict on "name". An unknown project is problem.NotFound.
	CreateSubscriber(ctx context.Context, s Subscriber, a Address) error
	FindSubscriber(ctx context.Context, projectID, id string) (Subscriber, error)
	// FindSubscriberByEmail looks for what [NormalizeEmail] gave.
	FindSubscriberByEmail(ctx context.Context, projectID, email string) (Subscriber, error)
	FindSubscriberByReference(ctx context.Context, projectID, reference string) (Subscriber, error)
	ListSubscribers(ctx context.Context, projectID string, q page.Query) (page.Page[Subscriber], error)
	// UpdateSubscriber writes the fields that are not nil, renames the
	// subscriber's addresses, and gives the new row. With a revocation it ends
	// the subscriber's logins and grants too. An e-mail in use gives
	// problem.Conflict.
	UpdateSubscriber(ctx context.Context, projectID, id string, c SubscriberChange, at time.Time, r *revocation.Revocation) (Subscriber, error)
	// DeleteSubscriber deletes its addresses, logins and grants too.
	DeleteSubscriber(ctx context.Context, projectID string, r revocation.Revocation) error
	// SubscriberWithAddresses reads both at once.
	SubscriberWithAddresses(ctx context.Context, projectID, id string) (Subscriber, []Address, error)

	// CreateResource writes a resource with its first address. An address name in
	// use gives problem.Conflict on "name".
	CreateResource(ctx context.Context, r Resource, a Address) error
	FindResource(ctx context.Context, projectID, typ, id string) (Resource, error)
	ListResources(ctx context.Context, projectID, typ string, q page.Query) (page.Page[Resource], error)
	// UpdateResource writes a resource that was last changed at a moment, and
	// renames its addresses; problem.Conflict if it was changed or deleted since.
	UpdateResource(ctx context.Context, r Resource, old time.Time) error
	// DeleteResource deletes its addresses too. One that takes calls of something
	// is problem.Conflict.
	DeleteResource(ctx context.Context, projectID, typ, id string) error
	// FindThings gives those of the ids that are there, in their order.
	FindThings(ctx context.Context, projectID string, ids []string) ([]Thing, error)
	ListThings(ctx context.Context, projectID string, q page.Query) (page.Page[Thing], error)

	// CreateVersion gives the version with its number, the next of the resource.
	CreateVersion(ctx context.Context, v Version) (Version, error)
	FindVersion(ctx context.Context, resourceID, id string) (Version, error)
	ListVersions(ctx context.Context, resourceID string, q page.Query) (page.Page[Version], error)

	// CreateSIPAddress gives problem.Conflict on "name" where it is in use.
	CreateSIPAddress(ctx context.Context, a SIPAddress) error
	FindSIPAddress(ctx context.Context, projectID, id string) (SIPAddress, error)
	ListSIPAddresses(ctx context.Context, projectID string, q page.Query) (page.Page[SIPAddress], error)
	// UpdateSIPAddress writes one that was last changed at a moment, else it is
	// problem.Conflict; on "name" where that is in use.
	UpdateSIPAddress(ctx context.Context, a SIPAddress, old time.Time) error
	DeleteSIPAddress(ctx context.Context, projectID, id string) error

	// CreateSIPCredential gives problem.Conflict on "username" where it is in use.
	CreateSIPCredential(ctx context.Context, c SIPCredential) error
	FindSIPCredential(ctx context.Context, projectID, subscriberID, id string) (SIPCredential, error)
	ListSIPCredentials(ctx context.Context, subscriberID string, q page.Query) (page.Page[SIPCredential], error)
	// UpdateSIPCredential does as UpdateSIPAddress, on "username".
	UpdateSIPCredential(ctx context.Context, c SIPCredential, old time.Time) error
	DeleteSIPCredential(ctx context.Context, subscriberID, id string) error

	// PutPhoneRoute writes a route in the place of the number's for that handler.
	PutPhoneRoute(ctx context.Context, r PhoneRoute) error

	// CreateEmbedKey gives problem.NotFound if there is no such address.
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

	// RotateFamily marks the refresh token of a generation as used: of many
	// callers one gets used = false. Any other use revokes the family, which
	// holds although it is no error.
	RotateFamily(ctx context.Context, u FamilyUse) (used bool, err error)
}

// A FamilyUse is one use of a refresh token.
type FamilyUse struct {
	ID         string
	ProjectID  string
	Generation int64
	Expires    time.Time             // when both it and its successor have expired
	Revocation revocation.Revocation // written if the token was used before
}
