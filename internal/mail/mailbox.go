package mail

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// These constants limit how many messages a Box keeps, and for how long.
const (
	boxSize = 50
	boxFor  = 24 * time.Hour
)

// A Box keeps messages instead of sending them, so that the developer who runs the server can read
// them. It keeps the last fifty for a day. The messages are sealed, because they contain working
// links.
type Box struct {
	// Sessions holds each message under its own key, and an index of all messages.
	Sessions session.Store
	// Seal encrypts secret and binds it to name. Open decrypts it. Open fails for any other name.
	Seal func(name string, secret []byte) (string, error)
	Open func(name, sealed string) ([]byte, error)
	Now  func() time.Time
	Log  *slog.Logger // nil disables logging
}

var _ Transport = (*Box)(nil)

// An Item is an entry in the list of messages.
type Item struct {
	ID      string    `json:"id"`  // ID of the letter; may repeat, because letters can be sent again
	Key     string    `json:"key"` // identifies this message, see Find
	Kind    Kind      `json:"kind"`
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Arrived time.Time `json:"arrived"`
}

const boxKind = "mailbox"

var boxIndex = session.Key{Kind: boxKind, ID: "index"}

// Send stores a message.
func (b *Box) Send(ctx context.Context, m Message) error {
	if _, err := m.build(); err != nil {
		return err // refuse messages that SMTP could not send
	}

	key := session.Key{Kind: boxKind, ID: session.Digest(m.ID + b.Now().String())}
	if err := b.save(ctx, key, m); err != nil {
		return err
	}
	item := Item{
		ID:      m.ID,
		Key:     key.ID,
		Kind:    m.Kind,
		To:      m.To,
		Subject: m.Subject,
		Arrived: b.Now(),
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

// save stores v as JSON, sealed, for boxFor.
func (b *Box) save(ctx context.Context, key session.Key, v any) error {
	sealed, err := b.sealed(key, v)
	if err != nil {
		return fmt.Errorf("storing email: %w", err)
	}
	if err := b.Sessions.Put(ctx, key, sealed, boxFor); err != nil {
		return fmt.Errorf("storing email: %w", err)
	}
	return nil
}

func (b *Box) sealed(key session.Key, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	sealed, err := b.Seal("mail "+key.ID, raw)
	return []byte(sealed), err
}

// load reads the value of key into the variable that into points to. It also returns the stored
// value, even if load cannot open it, so that addToIndex can replace it.
func (b *Box) load(ctx context.Context, key session.Key, into any) (sealed []byte, err error) {
	if sealed, err = b.Sessions.Get(ctx, key); err != nil {
		return nil, err
	}
	raw, err := b.Open("mail "+key.ID, string(sealed))
	if err != nil {
		return sealed, fmt.Errorf("reading email: %w", err)
	}
	return sealed, json.Unmarshal(raw, into)
}

// addToIndex prepends an item to the index. It retries if another caller changed the index. An
// index that cannot be opened, for example after a change of keys, is replaced.
func (b *Box) addToIndex(ctx context.Context, item Item) error {
	const attempts = 50
	for range attempts {
		var items []Item
		old, err := b.load(ctx, boxIndex, &items)
		absent := errors.Is(err, problem.NotFound)
		if err != nil && !absent && old == nil {
			return err
		}

		items = append([]Item{item}, items...)
		sealed, err := b.sealed(boxIndex, items[:min(len(items), boxSize)])
		if err != nil {
			return err
		}

		// Both calls fail if another caller has meanwhile added or changed the index.
		if absent {
			err = b.Sessions.Add(ctx, boxIndex, sealed, boxFor)
		} else {
			err = b.Sessions.CompareAndSwap(ctx, boxIndex, old, sealed, boxFor)
		}

		if !errors.Is(err, problem.Conflict) && !errors.Is(err, problem.NotFound) {
			return err
		}
	}
	return errors.New("storing email: every attempt conflicted with a concurrent change")
}

// List returns all messages in the box, the newest first.
func (b *Box) List(ctx context.Context) ([]Item, error) {
	var items []Item
	_, err := b.load(ctx, boxIndex, &items)
	if errors.Is(err, problem.NotFound) {
		return nil, nil
	}
	return items, err
}

// Find returns the message with the given [Item.Key].
func (b *Box) Find(ctx context.Context, key string) (m Message, err error) {
	if digest, err := base64.RawURLEncoding.DecodeString(key); err != nil || len(digest) != sha256.Size {
		return m, problem.NoSuch("mail")
	}
	_, err = b.load(ctx, session.Key{Kind: boxKind, ID: key}, &m)
	return m, err
}
