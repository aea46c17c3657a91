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

// The methods below implement [session.Store], which states their contracts.

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

// Add sets the value of a key that does not exist.
func (s *Store) Add(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	_, err := s.do(ctx, "set", s.name(key), mark(key, value), "px", millis(ttl), "nx")
	if isNil(err) {
		return conflict()
	}
	return wrap("adding", key, err)
}

// CompareAndSwap replaces the value of a key with new if the value equals old. The script returns -1
// if the key does not exist, and 0 if it has another value.
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

// Allow takes n events from the rate of a key. The script returns the wait in microseconds; 0 means
// that the events are allowed.
func (s *Store) Allow(ctx context.Context, key session.Key, rate session.Rate, n int) (time.Duration, error) {
	answer, err := s.run(ctx, allow, key, prefix(key), rate.Cost(n).Microseconds(), rate.Slack().Microseconds())
	wait, _ := answer.(int64)
	return time.Duration(wait) * time.Microsecond, wrap("limiting", key, err)
}

// once is a command that the client must not retry. The client for a Cluster still sends the command
// again if a server answers that another server has the key, because the first server has not run it.
type once struct{ *redis.Cmd }

// NoRetry reports that the client must not retry the command.
func (once) NoRetry() bool { return true }

// do sends one command. If ctx is done, do sends nothing. If ctx ends later, do still waits for the
// response. Otherwise it would have to close the connection, and it would be unknown whether the command
// was run.
func (s *Store) do(ctx context.Context, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.send(context.Background(), args...)
}

// run runs a script. It handles ctx as do does.
func (s *Store) run(ctx context.Context, l *script, key session.Key, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.sendScript(context.Background(), l, key, args...)
}

// send sends one command. It ends early if ctx ends.
func (s *Store) send(ctx context.Context, args ...any) (any, error) {
	cmd := once{redis.NewCmd(ctx, args...)}
	_ = s.client.Process(ctx, cmd) // cmd holds the error
	return cmd.Result()
}

// sendScript calls a script by its digest. It sends the text only if the server does not know the
// script yet.
func (s *Store) sendScript(ctx context.Context, l *script, key session.Key, args ...any) (any, error) {
	answer, err := s.send(ctx, append([]any{"evalsha", l.digest, 1, s.name(key)}, args...)...)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.send(ctx, append([]any{"eval", l.text, 1, s.name(key)}, args...)...)
	}
	return answer, err
}

// isNil reports whether err means that a value is missing. It does not use errors.Is, because that would
// also match the error of a Sentinel that does not know the master.
func isNil(err error) bool { return err == redis.Nil }

// prefix returns the prefix that all stored values of the key's kind have.
func prefix(key session.Key) string { return key.Kind + ":" }

// mark returns value with the prefix of the key's kind.
func mark(key session.Key, value []byte) []byte {
	marked := make([]byte, 0, len(key.Kind)+1+len(value))
	return append(append(marked, prefix(key)...), value...)
}

// unmark returns the value in answer without its prefix. If the value is of a different kind, the
// error is problem.NotFound.
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

// millis returns ttl in milliseconds. It rounds up, because Redis refuses a lifetime of 0.
func millis(ttl time.Duration) int64 { return int64((ttl + time.Millisecond - 1) / time.Millisecond) }

func conflict() error {
	return problem.New(problem.Conflict, "conflict", "the entry exists already, or has a different value")
}

// wrap converts an error to one that session.Store defines. The error names only the kind of the key,
// because ids are digests of secrets.
func wrap(doing string, key session.Key, err error) error {
	switch {
	case err == nil:
		return nil
	case isNil(err):
		return problem.NoSuch(key.Kind)
	}
	return fmt.Errorf("%s %s in Redis: %w", doing, key.Kind, withoutArguments(err))
}
