package database

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A Notifier carries messages between the processes that use a PostgreSQL database, with LISTEN and
// NOTIFY. It uses two connections outside the pool. Its methods are safe for concurrent use.
type Notifier struct {
	config Config

	mu   sync.Mutex
	conn *pgx.Conn // for NOTIFY; nil before the first message and after a failure
}

// NewNotifier returns a Notifier for a PostgreSQL database. It connects when it is first used.
func NewNotifier(c Config) *Notifier { return &Notifier{config: c} }

// A notification is limited to 8,000 bytes, so a message is split into parts:
//
//	<id of the message> <index of the part> <number of parts> <base64>
const (
	maxPart  = 7_800 // bytes of base64 in a part
	maxParts = 64
)

// notifierKeepAlive limits how long a dead connection goes unnoticed.
var notifierKeepAlive = net.KeepAliveConfig{
	Enable:   true,
	Idle:     5 * time.Second,
	Interval: 5 * time.Second,
	Count:    3,
}

func (n *Notifier) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := n.config.server()
	if err != nil {
		return nil, err
	}
	config.DialFunc = (&net.Dialer{KeepAliveConfig: notifierKeepAlive}).DialContext
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, refusal(config, err)
	}
	return c, nil
}

// Publish sends a message to all processes that listen on channel.
func (n *Notifier) Publish(ctx context.Context, channel string, message []byte) error {
	parts, err := cut(message)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn == nil {
		if n.conn, err = n.connect(ctx); err != nil {
			return err
		}
	}

	_, err = n.conn.Exec(ctx, `SELECT pg_notify($1, part) FROM unnest($2::text[]) WITH ORDINALITY AS p (part, i)
		ORDER BY i`, channel, parts)
	if err != nil {
		n.drop()
		return fmt.Errorf("notifying: %w", explain(err))
	}
	return nil
}

// cut splits a message into parts.
func cut(message []byte) ([]string, error) {
	text := base64.RawStdEncoding.EncodeToString(message)
	count := max(1, (len(text)+maxPart-1)/maxPart)
	if count > maxParts {
		return nil, fmt.Errorf("a message of %d bytes is too long to notify", len(message))
	}
	id := uuid.NewString()
	parts := make([]string, count)
	for i := range parts {
		part := text[i*maxPart : min(len(text), (i+1)*maxPart)]
		parts[i] = fmt.Sprintf("%s %d %d %s", id, i, count, part)
	}
	return parts, nil
}

// drop closes the connection, so that the next message opens a new one.
func (n *Notifier) drop() {
	if n.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = n.conn.Close(ctx) // the connection is broken, or the process is about to end
		n.conn = nil
	}
}

// Close closes the connection that sends messages. The connection of Listen is closed when its
// context ends.
func (n *Notifier) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop()
	return nil
}

// listenAgain is how long Listen waits before it reconnects.
const listenAgain = time.Second

// Listen calls receive for each message on the channels until ctx is done.
func (n *Notifier) Listen(ctx context.Context, channels []string, receive func(message []byte)) {
	for ctx.Err() == nil {
		if err := n.listen(ctx, channels, receive); err == nil || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}

// listen receives messages on a single connection, and returns when the connection breaks.
func (n *Notifier) listen(ctx context.Context, channels []string, receive func(message []byte)) error {
	c, err := n.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	for _, channel := range channels {
		if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return err
		}
	}

	var parts assembly
	for {
		part, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if message := parts.add(part.Payload); message != nil {
			receive(message)
		}
	}
}

// An assembly joins the parts of messages. The parts of a message arrive one right after the other,
// since they were sent in one transaction.
type assembly struct {
	id    string
	parts []string
}

// add adds a part, and returns the message if the part completes it. It ignores payloads that are not the
// next part of a message, since any program may send notifications on the channel.
func (a *assembly) add(payload string) []byte {
	fields := strings.Split(payload, " ")
	if len(fields) != 4 {
		return nil
	}
	id, text := fields[0], fields[3]
	index, err := strconv.Atoi(fields[1])
	if err != nil {
		return nil
	}
	count, err := strconv.Atoi(fields[2])
	if err != nil || count > maxParts {
		return nil
	}

	if index == 0 {
		a.id, a.parts = id, nil
	}
	if id != a.id || index != len(a.parts) {
		return nil
	}
	a.parts = append(a.parts, text)
	if len(a.parts) < count {
		return nil
	}

	message, err := base64.RawStdEncoding.DecodeString(strings.Join(a.parts, ""))
	a.id, a.parts = "", nil
	if err != nil {
		return nil
	}
	return message
}
