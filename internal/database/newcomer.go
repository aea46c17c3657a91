package database

import (
	"context"
	"sync/atomic"
)

type newcomerKey struct{}

// Newcomer returns the context of a new request. While all connections to the database server are in
// use, a request waits for its first connection until all requests that had one have theirs.
// Background tasks need no Newcomer, and never wait for new requests.
func Newcomer(ctx context.Context) context.Context {
	return context.WithValue(ctx, newcomerKey{}, new(atomic.Bool))
}

// hadConnection reports whether ctx belongs to a background task, or to a request that has already
// had a connection. It records that the request will have one.
func hadConnection(ctx context.Context) bool {
	had, ok := ctx.Value(newcomerKey{}).(*atomic.Bool)
	return !ok || had.Swap(true)
}
