package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Channel carries messages between processes with PUBLISH and SUBSCRIBE. It is safe for
// concurrent use.
type Channel struct{ store *Store }

// Channel returns a Channel that uses the servers of the store.
func (s *Store) Channel() Channel { return Channel{s} }

func (c Channel) name(channel string) string { return c.store.at.prefix + "v1:bus:" + channel }

// Publish sends a message to all processes that listen on channel.
func (c Channel) Publish(ctx context.Context, channel string, message []byte) error {
	to := redis.Cmdable(c.store.client)
	if c.store.cluster != nil {
		// The client itself would choose a random server, and messages could overtake each other.
		master, err := c.store.cluster.MasterForKey(ctx, c.name(channel))
		if err != nil {
			return fmt.Errorf("finding the server to publish at: %w", withoutArguments(err))
		}
		to = master
	}
	if err := to.Publish(ctx, c.name(channel), message).Err(); err != nil {
		return fmt.Errorf("publishing: %w", withoutArguments(err))
	}
	return nil
}

const (
	askAlive  = time.Second // how often Listen checks that the server is alive
	maxUnread = 4096        // maximum number of messages that Listen keeps for a slow receiver
)

// Listen calls receive for each message on the channels until ctx is done. It reconnects if the
// connection breaks.
func (c Channel) Listen(ctx context.Context, channels []string, receive func(message []byte)) {
	names := make([]string, len(channels))
	for i, channel := range channels {
		names[i] = c.name(channel)
	}

	messages := c.store.client.Subscribe(ctx, names...)
	defer messages.Close()
	all := messages.Channel(redis.WithChannelSize(maxUnread), redis.WithChannelHealthCheckInterval(askAlive))
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-all:
			if !ok {
				return
			}
			receive([]byte(m.Payload))
		}
	}
}
