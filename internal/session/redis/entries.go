package redis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// Put sets the value of a key.
func (s *Store) Put(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	_, err := s.do(ctx, "set", s.name(key), mark(key, value), "px", millis(ttl))
	return wrap("putting", key, err)
}

// Get returns the value of a key.
func (s *Store) Get(ctx context.Context, key session.Key) ([]byte, error) {
	answer, err := s.do(ctx, "get", s.name(key))
	return unmark("getting", key, answer, err)
}

// Take returns the value of a key and deletes it.
func (s *Store) Take(ctx context.Context, key session.Key) ([]byte, error) {
	answer, err := s.run(ctx, take, key, prefix(key))
	return unmark("taking", key, answer, err)
}

// Add sets the value of an unknown key.
func (s *Store) Add(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	_, err := s.do(ctx, "set", s.name(key), mark(key, value), "px", millis(ttl), "nx")
	if isNil(err) {
		return conflict()
	}
	return wrap("adding", key, err)
}

// CompareAndSwap replaces the value of a key if it is old.
func (s *Store) CompareAndSwap(ctx context.Context, key session.Key, old, new []byte, ttl time.Duration) error {
	answer, err := s.run(ctx, swap, key, prefix(key), mark(key, old), mark(key, new), millis(ttl))
	switch {
	case err != nil:
		return wrap("swapping", key, err)
	case answer == int64(-1):
		return problem.NoSuch(key.Kind)
	case answer == int64(0):
		return conflict()
	}
	return nil
}

// Delete removes a key.
func (s *Store) Delete(ctx context.Context, key session.Key) error {
	_, err := s.do(ctx, "del", s.name(key))
	return wrap("deleting", key, err)
}

// Incr adds one to a counter.
func (s *Store) Incr(ctx context.Context, key session.Key, ttl time.Duration) (int64, error) {
	answer, err := s.run(ctx, incr, key, millis(ttl))
	sum, _ := answer.(int64)
	return sum, wrap("counting", key, err)
}

// Allow takes n events from the rate of a key.
func (s *Store) Allow(ctx context.Context, key session.Key, rate session.Rate, n int) (time.Duration, error) {
	answer, err := s.run(ctx, allow, key, prefix(key), rate.Cost(n).Microseconds(), rate.Slack().Microseconds())
	wait, _ := answer.(int64)
	return time.Duration(wait) * time.Microsecond, wrap("limiting", key, err)
}

// A once is a command that a Cluster's client does not retry. It is sent again only if a server redirects
// it to the server that has the key, because then the first server has not run it.
type once struct{ *redis.Cmd }

// NoRetry reports to the client that the command must not be retried.
func (once) NoRetry() bool { return true }

// do sends one command. It does nothing for a caller that has already left. For a caller that leaves
// later the command is completed: giving up halfway would break the connection and leave unknown what
// was done.
func (s *Store) do(ctx context.Context, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.send(context.Background(), args...)
}

// run runs a script, with the same rule for callers that leave as do.
func (s *Store) run(ctx context.Context, l *script, key session.Key, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.sendScript(context.Background(), l, key, args...)
}

func (s *Store) send(ctx context.Context, args ...any) (any, error) {
	cmd := once{redis.NewCmd(ctx, args...)}
	_ = s.client.Process(ctx, cmd) // the command has the error
	return cmd.Result()
}

// sendScript calls a script by its digest. It sends the text only if the server does not know it yet.
func (s *Store) sendScript(ctx context.Context, l *script, key session.Key, args ...any) (any, error) {
	answer, err := s.send(ctx, append([]any{"evalsha", l.digest, 1, s.name(key)}, args...)...)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.send(ctx, append([]any{"eval", l.text, 1, s.name(key)}, args...)...)
	}
	return answer, err
}

// isNil reports whether err is Redis's answer for a missing value. It does not use errors.Is, which would
// also be true for a Sentinel that knows no such master.
func isNil(err error) bool { return err == redis.Nil }

// prefix returns the beginning of all values of a key's kind.
func prefix(key session.Key) string { return key.Kind + ":" }

func mark(key session.Key, value []byte) []byte {
	marked := make([]byte, 0, len(key.Kind)+1+len(value))
	return append(append(marked, prefix(key)...), value...)
}

// unmark returns the value in an answer. A value of another kind is problem.NotFound.
func unmark(doing string, key session.Key, answer any, err error) ([]byte, error) {
	if err != nil {
		return nil, wrap(doing, key, err)
	}
	text, _ := answer.(string)
	value, ok := strings.CutPrefix(text, prefix(key))
	if !ok {
		return nil, problem.NoSuch(key.Kind)
	}
	return []byte(value), nil
}

// millis returns a lifetime in Redis's unit, rounded up, because Redis refuses a lifetime of 0.
func millis(ttl time.Duration) int64 { return int64((ttl + time.Millisecond - 1) / time.Millisecond) }

func conflict() error {
	return problem.New(problem.Conflict, "conflict", "the entry has another value")
}

// wrap turns an error into one that the interface promises. It names only the kind of the key, because
// ids are digests of secrets.
func wrap(doing string, key session.Key, err error) error {
	switch {
	case err == nil:
		return nil
	case isNil(err):
		return problem.NoSuch(key.Kind)
	}
	return fmt.Errorf("%s %s in Redis: %w", doing, key.Kind, plain(err))
}
