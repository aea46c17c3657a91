package redis

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/test/servers"
)

// BenchmarkStore measures each operation with concurrent callers. In addition to the elapsed time,
// it reports the CPU time that this process spends per operation.
func BenchmarkStore(b *testing.B) {
	value := make([]byte, 400)
	for name, op := range map[string]func(*Store, session.Key) error{
		"Get": func(s *Store, k session.Key) error { _, err := s.Get(b.Context(), k); return err },
		"Put": func(s *Store, k session.Key) error { return s.Put(b.Context(), k, value, time.Minute) },
		"Take": func(s *Store, k session.Key) error {
			if _, err := s.Take(b.Context(), session.Key{Kind: "none", ID: k.ID}); !errors.Is(err, problem.NotFound) {
				return err
			}
			return nil
		},
		"CompareAndSwap": func(s *Store, k session.Key) error {
			return s.CompareAndSwap(b.Context(), k, value, value, time.Minute)
		},
		"Incr": func(s *Store, k session.Key) error {
			k.Kind = "tries"
			_, err := s.Incr(b.Context(), k, time.Minute)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b, Config{URL: servers.Redis(b), Patience: patient})
			k := session.Key{Kind: "login", ID: session.Digest(name)}
			if err := s.Put(b.Context(), k, value, time.Minute); err != nil {
				b.Fatal(err)
			}

			b.ReportAllocs()
			b.SetParallelism(8)
			before := cpuTime(b)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := op(s, k); err != nil {
						b.Error(err)
						return
					}
				}
			})

			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime returns the CPU time that this process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
