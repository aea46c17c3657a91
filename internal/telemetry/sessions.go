package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// Sessions returns a store that traces the operations of s. system is redis, postgresql or sqlite. If
// that system fails, the span includes the time until another one takes over.
func (t *Tracer) Sessions(s session.Store, system string) session.Store {
	if t == nil {
		return s
	}
	return &sessions{
		store:  s,
		t:      t,
		system: attribute.String("db.system.name", system),
	}
}

// sessions traces the operations of a session store.
type sessions struct {
	store  session.Store
	t      *Tracer
	system attribute.KeyValue
}

// trace runs an operation in a span. Results such as an unknown key do not count as errors.
func (s *sessions) trace(ctx context.Context, name string, key session.Key, do func() error) error {
	span, ok := s.t.start(ctx, "session "+name, s.system, attribute.String("selvage.session.kind", key.Kind))
	if !ok {
		return do()
	}
	err := do()
	isResult := problem.First(err) != nil && !errors.Is(err, problem.Unavailable)
	if isResult {
		end(span, nil)
	} else {
		end(span, err)
	}
	return err
}

func (s *sessions) Put(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	return s.trace(ctx, "put", key, func() error { return s.store.Put(ctx, key, value, ttl) })
}

func (s *sessions) Get(ctx context.Context, key session.Key) (value []byte, err error) {
	err = s.trace(ctx, "get", key, func() (err error) {
		value, err = s.store.Get(ctx, key)
		return err
	})
	return value, err
}

func (s *sessions) Take(ctx context.Context, key session.Key) (value []byte, err error) {
	err = s.trace(ctx, "take", key, func() (err error) {
		value, err = s.store.Take(ctx, key)
		return err
	})
	return value, err
}

func (s *sessions) Add(ctx context.Context, key session.Key, value []byte, ttl time.Duration) error {
	return s.trace(ctx, "add", key, func() error { return s.store.Add(ctx, key, value, ttl) })
}

func (s *sessions) CompareAndSwap(ctx context.Context, key session.Key, old, new []byte, ttl time.Duration) error {
	return s.trace(ctx, "compare and swap", key, func() error {
		return s.store.CompareAndSwap(ctx, key, old, new, ttl)
	})
}

func (s *sessions) Delete(ctx context.Context, key session.Key) error {
	return s.trace(ctx, "delete", key, func() error { return s.store.Delete(ctx, key) })
}

func (s *sessions) Incr(ctx context.Context, key session.Key, ttl time.Duration) (sum int64, err error) {
	err = s.trace(ctx, "incr", key, func() (err error) {
		sum, err = s.store.Incr(ctx, key, ttl)
		return err
	})
	return sum, err
}

func (s *sessions) Allow(ctx context.Context, key session.Key, rate session.Rate,
	n int) (wait time.Duration, err error) {
	err = s.trace(ctx, "allow", key, func() (err error) {
		wait, err = s.store.Allow(ctx, key, rate, n)
		return err
	})
	return wait, err
}
