package fabric

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Webhooks manages the webhooks of projects and the keys that sign their deliveries.
type Webhooks struct {
	*core
	store WebhookStore
}

// A WebhookStore keeps webhooks and signing keys; see [Stores].
type WebhookStore interface {
	// CreateWebhook creates a webhook. limit is the maximum number of webhooks of a project. If the
	// project already has that many, CreateWebhook returns problem.Invalid.
	CreateWebhook(ctx context.Context, w Webhook, limit int) error
	FindWebhook(ctx context.Context, projectID, id string) (Webhook, error)
	// ListWebhooks lists the webhooks that contain each word of text in their name, URL or id.
	ListWebhooks(ctx context.Context, projectID, text string, q page.Query) (page.Page[Webhook], error)
	// UpdateWebhook writes a webhook. old is the Updated time that the caller has read. If the
	// stored time differs, UpdateWebhook returns problem.Conflict. If the URL or Enabled changes,
	// it sets Failures to 0 and ends the pause. Otherwise it leaves both unchanged.
	UpdateWebhook(ctx context.Context, w Webhook, old time.Time) error
	// DeleteWebhook also deletes the webhook's deliveries.
	DeleteWebhook(ctx context.Context, projectID, id string) error
	// QueueDelivery queues an event for only this webhook.
	QueueDelivery(ctx context.Context, webhookID string, e Event) (Delivery, error)

	// CreateSigningKey returns problem.Conflict if the project has a key with the same start time.
	// Only one of several concurrent callers succeeds.
	CreateSigningKey(ctx context.Context, k SigningKey) error
	// ListSigningKeys returns all signing keys of a project, ordered by their start times.
	ListSigningKeys(ctx context.Context, projectID string) ([]SigningKey, error)
	// RotateSigningKey adds a key and deletes the keys that are older than the current key. current
	// is when the current key started signing. If alone is set, all other keys are deleted.
	// Otherwise it returns problem.Conflict if a key that starts after current exists.
	RotateSigningKey(ctx context.Context, k SigningKey, current time.Time, alone bool) error
}

// A Webhook is a URL that receives a project's events.
type Webhook struct {
	ID        string
	ProjectID string
	URL       string
	Name      string // "" if unnamed
	Events    []EventName
	Enabled   bool // if false, nothing is queued or sent
	Created   time.Time
	Updated   time.Time

	Failures int       // consecutive failed attempts
	Rests    time.Time // nothing is sent before this time
}

// A WebhookInput holds the fields of a webhook to create or update; nil fields are left
// unchanged. A new webhook has no name, receives all events and is enabled by default.
type WebhookInput struct {
	URL     *string
	Name    *string
	Events  *[]string // event names; no names or "*" means all events
	Enabled *bool
}

// maxURL is the maximum length of a webhook's URL.
const maxURL = 2048

// maxWebhooks is the maximum number of webhooks of a project, because each adds a row for every
// event.
const maxWebhooks = 50

// Check returns everything that is wrong with the input of an update or, if isNew, of a
// new webhook, which needs a URL.
func (ws *Webhooks) Check(in WebhookInput, isNew bool) error {
	var errs []error
	switch {
	case in.URL == nil && isNew:
		errs = append(errs, problem.Missing("url"))
	case in.URL == nil:
	case *in.URL == "":
		errs = append(errs, problem.Missing("url"))
	case len(*in.URL) > maxURL:
		errs = append(errs, problem.BadParam("url", "url is too long (maximum is %d characters)", maxURL))
	default:
		errs = append(errs, ws.c.CheckURL("url", *in.URL))
	}

	if in.Name != nil {
		errs = append(errs, checkText("name", *in.Name))
	}
	if in.Events != nil {
		_, err := checkEvents(*in.Events)
		errs = append(errs, err)
	}

	return errors.Join(errs...)
}

// apply writes the fields of a checked input into w.
func (in WebhookInput) apply(w *Webhook) {
	if in.URL != nil {
		w.URL = *in.URL
	}
	if in.Name != nil {
		w.Name = *in.Name
	}
	if in.Events != nil {
		w.Events, _ = checkEvents(*in.Events)
	}
	if in.Enabled != nil {
		w.Enabled = *in.Enabled
	}
}

// Create creates a webhook. If the project has no signing key, Create first creates one.
func (ws *Webhooks) Create(ctx context.Context, projectID string, in WebhookInput) (Webhook, error) {
	if err := ws.Check(in, true); err != nil {
		return Webhook{}, err
	}
	if _, err := ws.SigningKeys(ctx, projectID); err != nil {
		return Webhook{}, err
	}
	w := Webhook{ID: newID(), ProjectID: projectID, Events: []EventName{AnyEvent}, Enabled: true, Created: ws.now()}
	w.Updated = w.Created
	in.apply(&w)
	defer ws.caches.wants.Clear()
	return w, ws.store.CreateWebhook(ctx, w, maxWebhooks)
}

// Find returns a webhook of a project.
func (ws *Webhooks) Find(ctx context.Context, projectID, id string) (Webhook, error) {
	id, ok := canonical(id)
	if !ok {
		return Webhook{}, problem.NoSuch("webhook")
	}
	return ws.store.FindWebhook(ctx, projectID, id)
}

// List returns a page of a project's webhooks.
func (ws *Webhooks) List(ctx context.Context, projectID string, q page.Query) (page.Page[Webhook], error) {
	return ws.store.ListWebhooks(ctx, projectID, "", q)
}

// Search returns a page of a project's webhooks that contain each word of text in their
// name, URL or id.
func (ws *Webhooks) Search(ctx context.Context, projectID, text string, q page.Query) (page.Page[Webhook], error) {
	return ws.store.ListWebhooks(ctx, projectID, text, q)
}

// Update changes the fields that are set. Queued deliveries are sent to the new URL. Enabling or
// disabling a webhook, or changing its URL, ends its pause.
func (ws *Webhooks) Update(
	ctx context.Context, projectID, id string, in WebhookInput,
) (w Webhook, err error) {
	defer ws.caches.wants.Clear()
	err = again(func() error {
		if w, err = ws.Find(ctx, projectID, id); err != nil {
			return err
		}
		if err := ws.Check(in, false); err != nil {
			return err
		}
		old := w
		in.apply(&w)
		if w.URL != old.URL || w.Enabled != old.Enabled {
			w.Failures = 0
			w.Rests = time.Time{}
		}
		w.Updated = later(ws.now(), old.Updated.Add(time.Microsecond))
		return ws.store.UpdateWebhook(ctx, w, old.Updated)
	})
	return w, err
}

// Delete deletes a webhook and its queued deliveries.
func (ws *Webhooks) Delete(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("webhook")
	}
	return ws.store.DeleteWebhook(ctx, projectID, id)
}

// A SigningKey signs deliveries to a project's webhooks. Receivers need it to verify signatures, so
// it is stored sealed and shown to callers that have permission to read it.
type SigningKey struct {
	ID        string
	ProjectID string
	Sealed    string
	Created   time.Time
	Starts    time.Time // when the key starts signing; zero for a project's first key
}

// SigningKeys contains the keys that a receiver must know: the current key and, after a rotation,
// the next key.
type SigningKeys struct {
	Current, Next             *SigningKey // Next is nil if no rotation is pending
	CurrentSecret, NextSecret string
}

// SigningKeys returns the signing keys of a project. If the project has no key, it creates the
// first key.
func (ws *Webhooks) SigningKeys(ctx context.Context, projectID string) (SigningKeys, error) {
	projectID, ok := canonical(projectID)
	if !ok {
		return SigningKeys{}, problem.NoSuch("project")
	}
	stored, err := ws.store.ListSigningKeys(ctx, projectID)
	if err != nil {
		return SigningKeys{}, err
	}
	if len(stored) == 0 {
		if stored, err = ws.firstSigningKey(ctx, projectID); err != nil {
			return SigningKeys{}, err
		}
	}
	return ws.openSigningKeys(stored)
}

// firstSigningKey creates the first key of a project. Only one of several concurrent callers
// creates a key.
func (ws *Webhooks) firstSigningKey(ctx context.Context, projectID string) ([]SigningKey, error) {
	k, err := ws.newSigningKey(projectID, time.Time{})
	if err != nil {
		return nil, err
	}
	if err := ws.store.CreateSigningKey(ctx, k); err != nil && !errors.Is(err, problem.Conflict) {
		return nil, err
	}
	return ws.store.ListSigningKeys(ctx, projectID)
}

// newSigningKey returns a key with a new secret.
func (ws *Webhooks) newSigningKey(projectID string, starts time.Time) (SigningKey, error) {
	var random [32]byte
	rand.Read(random[:])
	secret := "PSK" + hex.EncodeToString(random[:])
	k := SigningKey{ID: newID(), ProjectID: projectID, Created: ws.now(), Starts: starts}
	sealed, err := ws.c.Ring.SealSecret(SigningKeySecretName(k.ID), []byte(secret))
	if err != nil {
		return SigningKey{}, err
	}
	k.Sealed = sealed
	return k, nil
}

// SigningKeySecretName returns the name under which a signing key is sealed.
func SigningKeySecretName(id string) string { return "signing:" + id }

// openSigningKeys opens the current and the next of the keys, which are ordered by their start
// times. If this node's clock is behind, even the first key may start in the future. It is still the
// current key, because no other key exists.
func (ws *Webhooks) openSigningKeys(all []SigningKey) (s SigningKeys, err error) {
	now := ws.now()
	for i, k := range all {
		if i > 0 && k.Starts.After(now) {
			s.Next = &all[i]
			break
		}
		s.Current = &all[i]
	}

	if s.Current == nil {
		return s, errors.New("the project has no signing key")
	}
	if s.CurrentSecret, err = ws.openSigningKey(*s.Current); err != nil {
		return SigningKeys{}, err
	}
	if s.Next == nil {
		return s, nil
	}
	if s.NextSecret, err = ws.openSigningKey(*s.Next); err != nil {
		return SigningKeys{}, err
	}
	return s, nil
}

// openSigningKey returns the secret of a key.
func (ws *Webhooks) openSigningKey(k SigningKey) (string, error) {
	secret, err := ws.c.Ring.OpenSecret(SigningKeySecretName(k.ID), k.Sealed)
	if err != nil {
		return "", err
	}
	return string(secret), nil
}

// RotateSigningKey creates a key that starts signing after an overlap. If the overlap is 0, for
// example because a key has leaked, the new key starts immediately, and all other keys of the
// project are deleted. If a next key already exists, the overlap must be 0.
func (ws *Webhooks) RotateSigningKey(
	ctx context.Context, projectID string, overlap time.Duration,
) (SigningKeys, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return SigningKeys{}, problem.BadParam(
			"overlap", "overlap must be from 0 to %d seconds", int(MaxOverlap.Seconds()))
	}

	old, err := ws.SigningKeys(ctx, projectID)
	if err != nil {
		return old, err
	}
	if old.Next != nil && overlap > 0 {
		return old, problem.BadParam("overlap",
			"a new key takes over at %s; set overlap to 0 to create another one now", moment(old.Next.Starts))
	}

	k, err := ws.newSigningKey(old.Current.ProjectID, ws.startAfter(*old.Current, overlap))
	if err != nil {
		return old, err
	}

	if err := ws.store.RotateSigningKey(ctx, k, old.Current.Starts, overlap == 0); err != nil {
		return old, fmt.Errorf("rotating signing key: %w", err)
	}
	ws.caches.signing.Clear()
	return ws.SigningKeys(ctx, projectID)
}

// startAfter returns the start time of the key that replaces the current key after an overlap. The
// new key starts after the current one, even if this node's clock is behind the clock of the node
// that created the current one.
func (ws *Webhooks) startAfter(current SigningKey, overlap time.Duration) time.Time {
	starts := ws.now().Add(overlap)
	earliest := current.Starts.Add(time.Microsecond) // the precision of the database
	if starts.Before(earliest) {
		return earliest
	}
	return starts
}

// SigningKey returns the secret that signs a project's deliveries. The result may be up to 300 ms
// old.
func (ws *Webhooks) SigningKey(ctx context.Context, projectID string) (string, error) {
	return ws.caches.signing.Load(projectID, func() (string, error) {
		k, err := ws.SigningKeys(ctx, projectID)
		return k.CurrentSecret, err
	})
}
