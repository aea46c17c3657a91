package fabric

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/problem"
)

// An Identity contains the values from the other system that an imported object keeps. Empty fields
// get new values.
type Identity struct {
	ID      string    // a UUID that no other object has
	Address string    // its address name; a suffix is added if the name is taken
	Created time.Time // when the other system created it
}

// addressName matches the names that [slug] and [Address.withSuffix] return.
var addressName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,56}[a-z0-9])?$`)

// normalize sets an empty ID, and a Created that is empty or in the future. It returns an error for
// invalid fields.
func (k *Identity) normalize(now time.Time) error {
	var errs []error
	k.ID = cmp.Or(k.ID, newID())
	id, ok := canonical(k.ID)
	if !ok {
		errs = append(errs, problem.BadParam("id", "id must be a UUID"))
	}
	if k.Address != "" && !addressName.MatchString(k.Address) {
		errs = append(errs, problem.BadParam("address", "address is not the name of an address"))
	}
	if k.Created.IsZero() || k.Created.After(now) {
		k.Created = now
	}
	k.ID = id
	k.Created = k.Created.UTC().Truncate(time.Microsecond)
	return errors.Join(errs...)
}

// named returns an address with its name replaced by the name in k. If k has no address name, it
// returns the address unchanged.
func (k *Identity) named(a Address) Address {
	if k.Address == "" {
		return a
	}
	if a.DisplayName == a.Name {
		a.DisplayName = k.Address
	}
	a.Name = k.Address
	return a
}

// Import creates a project with the fields of p, except the logos. If dry is set, Import only
// checks the fields.
func (ps *Projects) Import(ctx context.Context, p Project, dry bool) error {
	identity := Identity{ID: p.ID, Created: p.Created}
	if err := errors.Join(identity.normalize(ps.now()), p.settings().Check()); err != nil || dry {
		return err
	}

	p.ID = identity.ID
	p.Created = identity.Created
	p.Updated = ps.now()
	p.Logo = ""
	p.DarkLogo = ""
	return ps.store.CreateProject(ctx, p)
}

// hexDigest matches SHA-256 digests in hexadecimal.
var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// checkImportedSecret returns an error if a key cannot have a secret with this digest and prefix.
func checkImportedSecret(digest, prefix string) error {
	var errs []error
	if !hexDigest.MatchString(digest) {
		errs = append(errs, problem.BadParam("hash", "hash must be a SHA-256 digest in hexadecimal"))
	}
	if len(prefix) > 16 {
		errs = append(errs, problem.BadParam("prefix", "prefix must have at most 16 characters"))
	}
	return errors.Join(errs...)
}

// Import creates an API key with the fields of k, so that its secret stays valid. If dry is set,
// Import only checks the fields.
func (ks *APIKeys) Import(ctx context.Context, k APIKey, dry bool) error {
	identity := Identity{ID: k.ID, Created: k.Created}
	in := APIKeyInput{Name: &k.Name, Scopes: k.Scopes, Expires: &k.Expires}
	err := errors.Join(
		identity.normalize(ks.now()),
		ks.Check(in, true),
		checkImportedSecret(k.Hash, k.Prefix),
		checkText("prefix", k.Prefix),
	)
	if err != nil || dry {
		return err
	}
	return ks.store.CreateAPIKey(ctx, APIKey{
		ID:        identity.ID,
		ProjectID: k.ProjectID,
		Name:      k.Name,
		Prefix:    k.Prefix,
		Hash:      k.Hash,
		Scopes:    distinct(k.Scopes),
		Created:   identity.Created,
		Expires:   k.Expires,
	}, nil)
}

// A SubscriberImport holds the fields of a subscriber to import. It needs an Email or a Reference.
type SubscriberImport struct {
	Identity
	Reference string // the backend's own name for the subscriber; see [Subscriber]
	SubscriberInput
}

// Import creates a subscriber with its private address. If dry is set, Import only checks the
// fields. If the id, the email or the reference is taken, Import returns problem.Conflict on
// "email".
func (ss *Subscribers) Import(
	ctx context.Context, projectID string, in SubscriberImport, dry bool,
) (Subscriber, error) {
	errs := []error{in.normalize(ss.now()), in.checkSet(true), checkText("reference", in.Reference)}
	if in.Email == nil && in.Reference == "" {
		errs = append(errs, problem.Missing("email"))
	}
	if err := errors.Join(errs...); err != nil {
		return Subscriber{}, err
	}

	s, err := ss.newSubscriber(ctx, projectID, in.SubscriberInput)
	if err != nil || dry {
		return s, err
	}
	s.ID = in.ID
	s.Reference = in.Reference
	s.Created = in.Created
	return s, insertNamed(in.named(subscriberAddress(s)), func(a Address) error {
		return ss.store.CreateSubscriber(ctx, s, a)
	})
}

// Import creates a resource of a kind with its first address. If dry is set, Import only checks the
// identity, the names, and the members against the schema. In that case, it does not check whether
// a handler exists.
func (rs *Resources) Import(ctx context.Context, projectID string, k *kinds.Kind, identity Identity,
	sent map[string]json.RawMessage, dry bool,
) (Resource, error) {
	values, invalid := k.New(sent)
	if k.Type == GatewayKind {
		defaultTransport(nil, values, sent) // another transport can be changed after the import
	}
	err := errors.Join(identity.normalize(rs.now()), joinNames(invalid, k, values, nil))
	if err != nil || dry {
		return Resource{}, err
	}
	return rs.create(ctx, projectID, k, identity, values)
}

// Import creates a webhook with the fields of w. The deliveries are signed with the keys of this
// installation. If dry is set, Import only checks the fields.
func (ws *Webhooks) Import(ctx context.Context, w Webhook, dry bool) error {
	identity := Identity{ID: w.ID, Created: w.Created}
	events := make([]string, len(w.Events))
	for i, name := range w.Events {
		events[i] = string(name)
	}
	in := WebhookInput{URL: &w.URL, Name: &w.Name, Events: &events, Enabled: &w.Enabled}
	if err := errors.Join(identity.normalize(ws.now()), ws.Check(in, true)); err != nil || dry {
		return err
	}

	if _, err := ws.SigningKeys(ctx, w.ProjectID); err != nil {
		return err
	}
	made := Webhook{ID: identity.ID, ProjectID: w.ProjectID, Created: identity.Created, Updated: ws.now()}
	in.apply(&made)
	defer ws.caches.wants.Clear()
	return ws.store.CreateWebhook(ctx, made, maxWebhooks)
}

// Import creates a phone number with the fields of n, except the resource that takes its calls. If
// dry is set, Import only checks the fields.
func (ns *PhoneNumbers) Import(ctx context.Context, n PhoneNumber, dry bool) error {
	identity := Identity{ID: n.ID, Created: n.Created}
	err := identity.normalize(ns.now())
	number, ok := ParseNumber(n.Number)
	if !ok {
		err = errors.Join(err, problem.BadParam("number", "number must be a phone number such as +4930123456"))
	}
	if err != nil || dry {
		return err
	}
	return ns.store.CreateNumber(ctx, PhoneNumber{
		ID:        identity.ID,
		ProjectID: n.ProjectID,
		Number:    number,
		Created:   identity.Created,
	})
}

// Import creates an ingest key with the fields of k. The secret part of the key's URL stays the
// same, so switches only need a new host. If dry is set, Import only checks the fields.
func (ks *IngestKeys) Import(ctx context.Context, k IngestKey, dry bool) error {
	identity := Identity{ID: k.ID, Created: k.Created}
	err := errors.Join(
		identity.normalize(ks.now()),
		checkText("name", k.Name),
		checkText("prefix", k.Prefix),
		checkImportedSecret(k.Hash, k.Prefix),
	)
	if err != nil || dry {
		return err
	}
	return ks.store.CreateIngestKey(ctx, IngestKey{
		ID:        identity.ID,
		ProjectID: k.ProjectID,
		Name:      k.Name,
		Prefix:    k.Prefix,
		Hash:      k.Hash,
		Created:   identity.Created,
		Expires:   k.Expires,
	}, nil)
}
