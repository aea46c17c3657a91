// Package redis keeps sessions in Redis: a single server, a server with Sentinels, or a Cluster.
//
// Each operation is a single command, or a single script, on one key, so it is atomic wherever the key
// is stored. Keys have the form v1:<kind>:{<id>}, after the prefix from the URL. Each value begins
// with its kind. An entry whose value begins with a different kind counts as absent. Therefore, even if
// a bug built wrong keys, no feature could read another feature's values. All commands are sent to
// masters, because a replica may not know yet that an entry was deleted.
//
// A command is sent once, and waits at most 250 ms for its response. Without a response, it is
// unknown whether the command was run. Sending it again could count twice, or conflict with the
// first attempt. Package failover decides what to do in this case, and handles everything else
// about an unavailable Redis.
package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/selvage/selvage/internal/session"
)

// Config describes the Redis to connect to.
type Config struct {
	// URL is one of
	//
	//	redis://[USER:PASSWORD@]HOST[:6379][/DATABASE]
	//	redis-cluster://[USER:PASSWORD@]HOST[:6379],HOST…
	//	redis-sentinel://[USER:PASSWORD@]MASTER@HOST[:26379],HOST…[/DATABASE]
	//
	// or the same with rediss, which uses TLS. It may have these parameters:
	//
	//   - ca: a PEM file of the authorities that sign the server's certificate, instead of the
	//     system's roots (TLS only)
	//   - cert and key: PEM files of the client certificate and its key (TLS only)
	//   - sentinel_user and sentinel_password: credentials for the Sentinels themselves
	//   - prefix: a name that distinguishes installations that share a Redis; an installation
	//     does not see the entries of the others
	URL  string
	Pool int // maximum number of connections to each server; 0 means 16
	// Patience is the maximum time to wait for a free connection, and then the maximum time to wait
	// for an answer. Connecting may take twice as long. 0 means 250 ms.
	Patience time.Duration
}

// A Store is a session.Store in Redis. Create one with [Open].
type Store struct {
	at      location
	client  redis.UniversalClient
	cluster *redis.ClusterClient // the client, if it is a Cluster's

	patience time.Duration
}

var _ session.Store = (*Store)(nil)

// Open returns a Store after it has tried all operations. It returns an error if credentials are
// wrong, permissions are missing, or a server is of the wrong kind. A server that is unreachable,
// or accepts no writes at the moment, is not an error, because it may recover at any time.
func Open(ctx context.Context, c Config) (*Store, error) {
	at, err := parse(c.URL)
	if err != nil {
		return nil, err
	}
	if c.Pool <= 0 {
		c.Pool = 16
	}
	if c.Patience <= 0 {
		c.Patience = 250 * time.Millisecond
	}

	redis.SetLogger(silence{}) // the library logs every failure, but package failover logs outages
	s := connect(at, c)
	if err := s.rehearse(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to Redis at %s: %w", at, err), s.Close())
	}
	return s, nil
}

// silence is a logger that discards everything.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// connect returns a Store for a location. It does not connect to the servers yet.
func connect(at location, c Config) *Store {
	s := &Store{at: at, patience: c.Patience}
	common := redis.UniversalOptions{
		Addrs:            at.hosts,
		MasterName:       at.master,
		DB:               at.database,
		Username:         at.user,
		Password:         at.password,
		SentinelUsername: at.sentinelUser,
		SentinelPassword: at.sentinelPassword,
		Dialer:           at.dial,

		// Version 2 has no push messages, so only responses arrive. An unexpected response ends the
		// connection.
		Protocol: 2,
		// When the response to CLIENT SETINFO was lost, old clients returned it for the next
		// command (CVE-2025-29923). This client does not send CLIENT SETINFO.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},

		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           2 * c.Patience,
		ReadTimeout:           c.Patience,
		WriteTimeout:          c.Patience,
		PoolTimeout:           c.Patience,
		ContextTimeoutEnabled: true, // for the deadlines of Probe and Info; callers' contexts are not passed on

		PoolSize:         c.Pool,
		PipelinePoolSize: -1,
		ConnMaxIdleTime:  5 * time.Minute,
		ReadBufferSize:   4 << 10,
		WriteBufferSize:  4 << 10,
	}

	switch at.mode {
	case Cluster:
		o := common.Cluster()
		o.DisableRoutingPolicies = true // routing needs only the key, and each command has exactly one
		s.cluster = redis.NewClusterClient(o)
		s.client = s.cluster
	case Sentinel:
		s.client = redis.NewFailoverClient(common.Failover())
	default:
		s.client = redis.NewClient(common.Simple())
	}
	return s
}

// name returns the key under which an entry is stored on the server.
func (s *Store) name(key session.Key) string { return s.at.prefix + key.String() }

// Close closes all connections.
func (s *Store) Close() error {
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("closing Redis: %w", err)
	}
	return nil
}

// String returns the URL without credentials.
func (s *Store) String() string { return s.at.String() }

// Stats describes the connections to all servers together.
type Stats struct {
	Open, Idle      int
	Waits, TimedOut uint64        // waits for a connection, and how many of them timed out
	Waited          time.Duration // total time of those waits
	Dialled         uint64        // connections that were opened because none was idle
	Retired         uint64        // connections that were closed because they were broken or old
}

// Stats returns the current numbers.
func (s *Store) Stats() Stats {
	p := s.client.PoolStats()
	return Stats{
		Open:     int(p.TotalConns),
		Idle:     int(p.IdleConns),
		Waits:    uint64(p.WaitCount),
		TimedOut: uint64(p.Timeouts),
		Waited:   time.Duration(p.WaitDurationNs),
		Dialled:  uint64(p.Misses),
		Retired:  uint64(p.StaleConns),
	}
}
