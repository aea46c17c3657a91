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

// Get reads the value of a key.
func (s *Store) Get(ctx context.Context, key session.Key) ([]byte, error) {
	answer, err := s.do(ctx, "get", s.name(key))
	return unmark("getting", key, answer, err)
}

// Take reads and deletes the value of a key.
func (s *Store) Take(ctx context.Context, key session.Key) ([]byte, error) {
	answer, err := s.run(ctx, take, key, prefix(key))
	return unmark("taking", key, answer, err)
}

// Add sets the value of a key that is absent.
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

// Allow takes n of what a rate allows a key.
func (s *Store) Allow(ctx context.Context, key session.Key, rate session.Rate, n int) (time.Duration, error) {
	answer, err := s.run(ctx, allow, key, prefix(key), rate.Cost(n).Microseconds(), rate.Slack().Microseconds())
	wait, _ := answer.(int64)
	return time.Duration(wait) * time.Microsecond, wrap("limiting", key, err)
}

// A once is a command that a Cluster's client does not send again, except where
// a server said that another one has the key, and so has not done it.
type once struct{ *redis.Cmd }

// NoRetry is asked by the client.
func (once) NoRetry() bool { return true }

// do sends one command. A caller who has left is served no more; one who leaves
// later gets the answer all the same: to give up halfway would break the
// connection and leave unknown what was done.
func (s *Store) do(ctx context.Context, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.send(context.Background(), args...)
}

// run runs a script as do does a command.
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

// sendScript names a script by its digest, and sends it where the server does not
// know it yet.
func (s *Store) sendScript(ctx context.Context, l *script, key session.Key, args ...any) (any, error) {
	answer, err := s.send(ctx, append([]any{"evalsha", l.digest, 1, s.name(key)}, args...)...)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.send(ctx, append([]any{"eval", l.text, 1, s.name(key)}, args...)...)
	}
	return answer, err
}

// isNil reports whether an answer is that there is nothing. errors.Is would say so
// too of a Sentinel that knows of no master.
func isNil(err error) bool { return err == redis.Nil }

// prefix is how the values of a kind begin.
func prefix(key session.Key) string { return key.Kind + ":" }

func mark(key session.Key, value []byte) []byte {
	marked := make([]byte, 0, len(key.Kind)+1+len(value))
	return append(append(marked, prefix(key)...), value...)
}

// unmark returns the value of an answer, which must be of the key's kind.
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

// millis returns a lifetime as Redis counts it, rounded up: none is 0, which is no
// lifetime.
func millis(ttl time.Duration) int64 { return int64((ttl + time.Millisecond - 1) / time.Millisecond) }

func conflict() error {
	return problem.New(problem.Conflict, "conflict", "the entry has another value")
}

// wrap turns an error into what the interface promises. Only the kind of the key
// is told: ids are the digests of secrets.
func wrap(doing string, key session.Key, err error) error {
	switch {
	case err == nil:
		return nil
	case isNil(err):
		return problem.NoSuch(key.Kind)
	}
	return fmt.Errorf("%s %s in Redis: %w", doing, key.Kind, plain(err))
}
