package mail

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

const (
	boxSize = 50             // how many messages the index lists
	boxFor  = 24 * time.Hour // how long messages and the index are kept
)

// A Box keeps messages instead of sending them, so that the developer who runs the server can read
// them. It keeps each message for a limited time, and lists only the newest messages. They are encrypted,
// because they contain working links.
type Box struct {
	// Sessions holds each message under its own key, and an index of the newest messages.
	Sessions session.Store

	// Seal encrypts secret and binds it to name. Open decrypts it, and fails for any other name.
	Seal func(name string, secret []byte) (string, error)
	Open func(name, sealed string) ([]byte, error)

	Now func() time.Time
	Log *slog.Logger // nil disables logging
}

var _ Transport = (*Box)(nil)

// An Item is an entry in the list of messages.
type Item struct {
	ID      string    `json:"id"`  // ID of the letter; not unique, because letters can be sent again
	Key     string    `json:"key"` // identifies this message, see Find
	Kind    Kind      `json:"kind"`
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Arrived time.Time `json:"arrived"`
}

const boxKind = "mailbox" // the kind of all keys

var boxIndex = session.Key{Kind: boxKind, ID: "index"} // holds an []Item, the newest first

// Send stores a message.
func (b *Box) Send(ctx context.Context, m Message) error {
	if _, err := m.build(); err != nil {
		return err // refuse messages that SMTP could not send
	}

	now := b.Now()
	key := session.Key{Kind: boxKind, ID: session.Digest(m.ID + now.String())}
	if err := b.save(ctx, key, m); err != nil {
		return fmt.Errorf("storing email: %w", err)
	}
	item := Item{
		ID:      m.ID,
		Key:     key.ID,
		Kind:    m.Kind,
		To:      m.To,
		Subject: m.Subject,
		Arrived: now,
	}
	if err := b.addToIndex(ctx, item); err != nil {
		return err
	}

	if b.Log != nil {
		b.Log.Info("email stored at /dev/mail instead of being sent (mail.url is log:)",
			"mail", m.ID, "kind", string(m.Kind))
	}
	return nil
}

// addToIndex prepends an item to the index. If a concurrent Send changes the index first, addToIndex
// immediately tries again. It needs no pause between attempts, because each conflict means that another
// item was added.
func (b *Box) addToIndex(ctx context.Context, item Item) error {
	const attempts = 50
	for range attempts {
		err := b.tryAddToIndex(ctx, item)
		isConflict := errors.Is(err, problem.Conflict) || errors.Is(err, problem.NotFound)
		if !isConflict {
			return err
		}
	}
	return errors.New("storing email: every attempt conflicted with a concurrent change")
}

// tryAddToIndex is one attempt of addToIndex. The error is problem.Conflict if the index has
// meanwhile been created or changed, and problem.NotFound if it has meanwhile expired.
func (b *Box) tryAddToIndex(ctx context.Context, item Item) error {
	old, err := b.Sessions.Get(ctx, boxIndex)
	exists := !errors.Is(err, problem.NotFound)
	if err != nil && exists {
		return err
	}

	var items []Item
	if exists {
		// An index that cannot be decoded, for example after a change of keys, is replaced.
		_ = b.decode(boxIndex, old, &items)
	}
	items = slices.Insert(items, 0, item)
	changed, err := b.encode(boxIndex, items[:min(len(items), boxSize)])
	if err != nil {
		return err
	}

	if !exists {
		return b.Sessions.Add(ctx, boxIndex, changed, boxFor)
	}
	return b.Sessions.CompareAndSwap(ctx, boxIndex, old, changed, boxFor)
}

// save stores v under key.
func (b *Box) save(ctx context.Context, key session.Key, v any) error {
	stored, err := b.encode(key, v)
	if err != nil {
		return err
	}
	return b.Sessions.Put(ctx, key, stored, boxFor)
}

// load reads the value of key into the variable that v points to.
func (b *Box) load(ctx context.Context, key session.Key, v any) error {
	stored, err := b.Sessions.Get(ctx, key)
	if err != nil {
		return err
	}
	return b.decode(key, stored, v)
}

// encode returns v as encrypted JSON that only decode with the same key can read.
func (b *Box) encode(key session.Key, v any) (stored []byte, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	sealed, err := b.Seal(sealName(key), text)
	return []byte(sealed), err
}

// decode reads what encode has returned for the same key into the variable that v points to.
func (b *Box) decode(key session.Key, stored []byte, v any) error {
	text, err := b.Open(sealName(key), string(stored))
	if err != nil {
		return fmt.Errorf("reading email: %w", err)
	}
	return json.Unmarshal(text, v)
}

// sealName returns the name to which the value of key is bound.
func sealName(key session.Key) string { return "mail " + key.ID }

// List returns the newest messages in the box, the newest first.
func (b *Box) List(ctx context.Context) ([]Item, error) {
	var items []Item
	err := b.load(ctx, boxIndex, &items)
	if errors.Is(err, problem.NotFound) {
		return nil, nil
	}
	return items, err
}

// Find returns the message with the given [Item.Key]. The error is problem.NotFound if the key is
// invalid or the message has expired.
func (b *Box) Find(ctx context.Context, key string) (m Message, err error) {
	digest, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil || len(digest) != sha256.Size {
		return m, problem.NoSuch("mail") // this also keeps callers from reading the index
	}
	err = b.load(ctx, session.Key{Kind: boxKind, ID: key}, &m)
	return m, err
}
