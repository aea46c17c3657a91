package fabric

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Addresses returns the addresses at which resources and subscribers are reached.
type Addresses struct {
	*core
	store AddressStore
}

// An AddressStore reads addresses; see [Stores].
type AddressStore interface {
	// ListAddresses omits the addresses of disabled subscribers. If q.From names a row that no
	// longer exists and the sort order needs that row, ListAddresses returns problem.Invalid on
	// "page_token".
	ListAddresses(ctx context.Context, projectID string, f AddressFilter, q page.Query) (page.Page[Address], error)
	// FindAddress treats the addresses of disabled subscribers as missing.
	FindAddress(ctx context.Context, projectID, id string) (Address, error)
	FindAddressByName(ctx context.Context, projectID, context, name string) (Address, error)
	// CountAddresses returns how many of the ids are addresses of the project. It does not count the
	// addresses of disabled subscribers.
	CountAddresses(ctx context.Context, projectID string, ids []string) (int, error)
}

// The contexts of addresses.
const (
	Private = "private"
	Public  = "public"
)

// The types of addresses: what a caller reaches at the address.
const (
	TypeApp        = "app"
	TypeRoom       = "room"
	TypeCall       = "call"
	TypeSubscriber = "subscriber"
)

// allChannels are the channels of a subscriber's address.
var allChannels = []string{"audio", "messaging", "video"}

// An Address is where a resource or subscriber is reached: /<context>/<name>.
type Address struct {
	ID          string
	ProjectID   string
	ResourceID  string
	Type        string
	Context     string
	Name        string // unique within the project and context; see [slug]
	DisplayName string
	Channels    []string // audio, messaging, video
	Created     time.Time
}

// Path returns the address in the form that clients dial.
func (a Address) Path() string { return "/" + a.Context + "/" + a.Name }

// An AddressFilter selects the addresses to list. Empty fields select all.
type AddressFilter struct {
	Type        string
	Name        string
	DisplayName string   // substring, ignoring case
	ResourceID  string   // only this resource's addresses
	IDs         []string // nil means all; an empty list means none
	ByName      bool     // whether to sort by name instead of by creation
	Descending  bool
}

// Check reports everything that is wrong with the filter.
func (f AddressFilter) Check() error {
	var errs []error
	switch f.Type {
	case "", TypeApp, TypeRoom, TypeCall, TypeSubscriber:
	default:
		errs = append(errs, problem.BadParam("type", "type must be app, room, call or subscriber"))
	}
	errs = append(errs, checkText("name", f.Name), checkText("display_name", f.DisplayName))
	return errors.Join(errs...)
}

// List returns a page of the addresses that a token may reach. A SAT reaches all addresses of its
// project except those of disabled subscribers. A guest or invite token reaches the addresses for
// which it was issued.
func (as *Addresses) List(
	ctx context.Context, t Token, filter AddressFilter, q page.Query,
) (page.Page[Address], error) {
	if err := filter.Check(); err != nil {
		return page.Page[Address]{}, err
	}
	filter.Name = strings.ToLower(filter.Name)
	if t.Kind != SAT {
		filter.IDs = append([]string{}, t.AddressIDs...)
	}
	return as.store.ListAddresses(ctx, t.ProjectID, filter, q)
}

// Find returns an address that a token may reach.
func (as *Addresses) Find(ctx context.Context, t Token, id string) (Address, error) {
	id, ok := canonical(id)
	if !ok || !t.reaches(id) {
		return Address{}, problem.NoSuch("address")
	}
	return as.store.FindAddress(ctx, t.ProjectID, id)
}

// FindAt returns the project's address at path, which is /<context>/<name>.
func (as *Addresses) FindAt(ctx context.Context, projectID, path string) (Address, error) {
	where, name, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !ok || checkText("path", path) != nil {
		return Address{}, problem.NoSuch("address")
	}
	return as.store.FindAddressByName(ctx, projectID, where, strings.ToLower(name))
}

// ListAddresses returns a page of the addresses of a project's subscriber.
func (ss *Subscribers) ListAddresses(
	ctx context.Context, projectID, id string, q page.Query,
) (page.Page[Address], error) {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil {
		return page.Page[Address]{}, err
	}
	return ss.addresses.store.ListAddresses(ctx, projectID, AddressFilter{ResourceID: s.ID}, q)
}

// SubscriberOf returns the id of the project's subscriber whose address is path, which may end in a
// query. It returns "" if path is not the address of a subscriber.
func (as *Addresses) SubscriberOf(ctx context.Context, projectID, path string) (string, error) {
	path, _, _ = strings.Cut(path, "?")
	a, err := as.FindAt(ctx, projectID, path)
	if errors.Is(err, problem.NotFound) {
		return "", nil
	}
	if err != nil || a.Type != TypeSubscriber {
		return "", err
	}
	return a.ResourceID, nil
}

// Preview returns the path of the first address that a new resource of the kind k would get. named
// holds the members that may name the resource; if all of them are empty, Preview returns "". taken
// reports whether another address has this path; Create then appends a random suffix.
func (as *Addresses) Preview(
	ctx context.Context, projectID string, k *kinds.Kind, named kinds.Values,
) (path string, taken bool, err error) {
	if named.Text(k.AddressName) == "" && k.DisplayName(named) == "" {
		return "", false, nil
	}
	r := Resource{ID: newID(), ProjectID: projectID, Fields: named, DisplayName: titleOf(k, named)}
	a := resourceAddress(k, r)
	if resourceName(k, r) == "" {
		a.Name = slug(k.Type) + "-…" // the rest will come from the id of the resource
	}
	return as.preview(ctx, a)
}

// PreviewSubscriber is like Preview, for a new subscriber with this email address.
func (as *Addresses) PreviewSubscriber(
	ctx context.Context, projectID, email string,
) (path string, taken bool, err error) {
	if CheckEmail("email", email) != nil {
		return "", false, nil
	}
	s := Subscriber{ProjectID: projectID, Email: NormalizeEmail(email)}
	a := subscriberAddress(s)
	if subscriberName(s) == "" {
		a.Name = "subscriber-…"
	}
	return as.preview(ctx, a)
}

func (as *Addresses) preview(ctx context.Context, a Address) (path string, taken bool, err error) {
	_, err = as.store.FindAddressByName(ctx, a.ProjectID, a.Context, a.Name)
	if errors.Is(err, problem.NotFound) {
		return a.Path(), false, nil
	}
	return a.Path(), err == nil, err
}

// recentCount is like CountAddresses, but its result may be up to 300 ms old.
func (as *Addresses) recentCount(ctx context.Context, projectID string, ids []string) (int, error) {
	return as.caches.addresses.Load(projectID+strings.Join(ids, ""), func() (int, error) {
		return as.store.CountAddresses(ctx, projectID, ids)
	})
}
