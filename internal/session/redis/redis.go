// Package redis keeps sessions in Redis: a single server, one watched by
// Sentinels, or a Cluster.
//
// Each operation is one command or one script on one key, v1:<kind>:{<id>} with the
// prefix of the URL before it, and so atomic wherever the key lies. A value begins with its kind, and an entry
// whose value does not is none: a flaw in how keys are built must not let one
// feature read what another wrote. Everything is asked of masters: a replica may
// not have heard yet that an entry is gone.
//
// A command is sent once, and its answer waited for 250 ms. Without one it is not
// known whether it was done, and a second try could count twice or lose to itself;
// what to do then is left to package failover, as is everything about a Redis that
// is away.
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

// Config says where Redis is.
type Config struct {
	// URL is one of
	//
	//	redis://[USER:PASSWORD@]HOST[:6379][/DATABASE]
	//	redis-cluster://[USER:PASSWORD@]HOST[:6379],HOST…
	//	redis-sentinel://[USER:PASSWORD@]MASTER@HOST[:26379],HOST…[/DATABASE]
	//
	// or the same with rediss, which is with TLS, with these parameters: ca, a PEM
	// file of who vouches for the server instead of the system's roots; cert and
	// key, PEM files by which the server knows us; sentinel_user and
	// sentinel_password, where the Sentinels themselves ask for them. With or
	// without TLS there is prefix, the name of one of several installations that
	// share a Redis: what one writes no other sees.
	URL  string
	Pool int // connections to each server, at most; 0 means 16
	// Patience is how long an operation waits for its answer, and as long before
	// that for a connection to be free, twice as long for one to be made; 0 means
	// 250 ms.
	Patience time.Duration
}

// A Store is a session.Store in Redis. Make one with [Open].
type Store struct {
	at      location
	client  redis.UniversalClient
	cluster *redis.ClusterClient // the client, if it is one

	patience time.Duration
}

var _ session.Store = (*Store)(nil)

// Open makes a Store and tries whether it can be used. A server that cannot be
// reached, or takes no writes now, is no error: it may be back any time. Wrong
// credentials, missing permissions and a server of another sort are.
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
	redis.SetLogger(silence{}) // its lines are of every failure; ours are of a change
	s := connect(at, c)
	if wrong := s.rehearse(ctx); wrong != nil {
		return nil, errors.Join(fmt.Errorf("connecting to Redis at %s: %w", at, wrong), s.Close())
	}
	return s, nil
}

// silence is a logger without a voice.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// connect makes the client of a location. Nothing is dialled yet.
func connect(at location, c Config) *Store {
	s := &Store{at: at, patience: c.Patience}
	common := redis.UniversalOptions{
		Addrs: at.hosts, MasterName: at.master, DB: at.database,
		Username: at.user, Password: at.password, SentinelUsername: at.sentinelUser,
		SentinelPassword: at.sentinelPassword,
		Dialer:           at.dial,
		Protocol:         2, // no pushes: nothing but answers arrives, and an answer without a question ends the connection
		// An old client that lost an answer to CLIENT SETINFO gave it to the next
		// command (CVE-2025-29923); we do not send it at all.
		DisableIdentity: true,
		MaxRetries:      -1, DialerRetries: 1,
		DialTimeout: 2 * c.Patience, ReadTimeout: c.Patience, WriteTimeout: c.Patience, PoolTimeout: c.Patience,
		ContextTimeoutEnabled: true, // for the deadlines of Probe and Info; callers' contexts do not get so far
		PoolSize:              c.Pool, PipelinePoolSize: -1, ConnMaxIdleTime: 5 * time.Minute,
		ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch at.mode {
	case Cluster:
		o := common.Cluster()
		o.DisableRoutingPolicies = true // each command has one key; what else the server could tell of it is not needed
		s.cluster = redis.NewClusterClient(o)
		s.client = s.cluster
	case Sentinel:
		s.client = redis.NewFailoverClient(common.Failover())
	default:
		s.client = redis.NewClient(common.Simple())
	}
	return s
}

// name returns a key as the server has it.
func (s *Store) name(key session.Key) string { return s.at.prefix + key.String() }

// Close ends all connections.
func (s *Store) Close() error {
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("closing Redis: %w", err)
	}
	return nil
}

// String names the servers, without credentials.
func (s *Store) String() string { return s.at.String() }

// Stats tells of the connections, of all servers together.
type Stats struct {
	Open, Idle       int
	Waits, TimedOut  uint64        // how often an operation waited for a connection, and how often in vain
	Waited           time.Duration // all their waiting
	Dialled, Retired uint64        // connections made for want of an idle one; ended because they were broken or old
}

// Stats returns the counters now.
func (s *Store) Stats() Stats {
	p := s.client.PoolStats()
	return Stats{
		Open: int(p.TotalConns), Idle: int(p.IdleConns), Waits: uint64(p.WaitCount), TimedOut: uint64(p.Timeouts),
		Waited: time.Duration(p.WaitDurationNs), Dialled: uint64(p.Misses), Retired: uint64(p.StaleConns),
	}
}
