package store

import (
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/uuid7"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/test/servers"
)

// BenchmarkListRecordings reads the first page of fifty from a million recordings, and a page from
// the middle.
func BenchmarkListRecordings(b *testing.B) {
	c := Config{Dir: b.TempDir(), Audit: auditKey(b)}
	s := opened(b, c)
	if err := s.CreateProject(b.Context(), fabric.Project{ID: "p", MediaAuth: "public"}); err != nil {
		b.Fatal(err)
	}

	manyRecordings(b, c, s, "p", 1_000_000)
	for _, l := range recordingLists("p") {
		for where, from := range map[string]string{"first": "", "middle": "01900000-0000-7000-8000-100000500001"} {
			b.Run(strings.ReplaceAll(l.name, " ", "_")+"/"+where, func(b *testing.B) {
				b.ReportAllocs()
				timed(b, func() error {
					_, err := s.ListRecordings(b.Context(), l.filter, page.Query{Size: 50, From: from})
					return err
				})
			})
		}
	}
}

// BenchmarkMillionRecordings uses a project with a million recordings; a tenth of them are stubs.
// It measures searches by number, usage, a batch of retention, and a sweep of the stubs. Run it
// with -benchtime 1x, because only the first sweep finds stubs. It uses PostgreSQL if
// SELVAGE_TEST_BACKEND is postgres.
func BenchmarkMillionRecordings(b *testing.B) {
	c := Config{Dir: b.TempDir(), Audit: auditKey(b)}
	if os.Getenv("SELVAGE_TEST_BACKEND") == "postgres" {
		c = Config{URL: servers.Postgres(b), Audit: auditKey(b), Patience: time.Minute}
	}
	s := opened(b, c)
	if err := s.CreateProject(b.Context(), fabric.Project{ID: "p", MediaAuth: "public"}); err != nil {
		b.Fatal(err)
	}
	manyRecordings(b, c, s, "p", 1_000_000)
	const rare = "+49301234567"
	filled(b, c, s, `UPDATE recordings SET from_address = '`+rare+`', from_tail = '`+recordings.Tail(rare)+`'
		WHERE sid = 'sid-500000'`, `ANALYZE`)

	for name, party := range map[string]string{"every": "+1 555 1234", "end": "1234", "rare": rare, "none": "98765"} {
		b.Run("number/"+name, func(b *testing.B) {
			f := recordings.Filter{Owner: recordings.Owner{ProjectID: "p"}, Party: party}
			timed(b, func() error {
				_, err := s.ListRecordings(b.Context(), f, page.Query{Size: 50})
				return err
			})
		})
	}

	epoch := time.Unix(0, 0).UTC()
	b.Run("usage", func(b *testing.B) {
		timed(b, func() error {
			_, err := s.ListUsage(b.Context(), "p", epoch, epoch.AddDate(0, 1, 0))
			return err
		})
	})
	b.Run("stored bytes", func(b *testing.B) {
		timed(b, func() error {
			_, err := s.StoredBytes(b.Context(), "p")
			return err
		})
	})
	b.Run("kept", func(b *testing.B) {
		timed(b, func() error {
			_, err := s.ListKept(b.Context(), "p", "", uuid7.First(time.Now()), 500)
			return err
		})
	})
	b.Run("sweep", func(b *testing.B) { benchmarkSweep(b, s) })
}

// benchmarkSweep sweeps 100,000 stubs. It reports the CPU time of a batch, and how long other changes
// take with and without the sweep.
func benchmarkSweep(b *testing.B, s *Store) {
	reportChanges(b, s, "alone", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
		return nil
	})
	began := processor(b)
	reportChanges(b, s, "swept", func(ctx context.Context) error {
		return s.SweepRecordings(ctx, time.Now())
	})
	b.ReportMetric(float64(processor(b)-began)/1e6/(100_000/stubBatch), "cpu-ms/batch")
}

// reportChanges makes one change after another while it runs do, and reports how long they took.
func reportChanges(b *testing.B, s *Store, name string, do func(ctx context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()

	var took []time.Duration
	for running := true; running; {
		began := time.Now()
		err := s.change(ctx, audit.None("a benchmark"), func(t tx) error {
			_, err := t.Exec(ctx, `UPDATE projects SET updated = updated + 1 WHERE id = 'p'`)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}

		took = append(took, time.Since(began))
		select {
		case err := <-done:
			if err != nil {
				b.Fatal(err)
			}
			running = false
		case <-time.After(5 * time.Millisecond):
		}
	}

	slices.Sort(took)
	for at, what := range map[int]string{len(took) / 2: "p50", len(took) * 99 / 100: "p99", len(took) - 1: "max"} {
		b.ReportMetric(float64(took[at])/1e6, "ms-"+what+"-"+name)
	}
}

// timed runs an operation repeatedly and reports its CPU time.
func timed(b *testing.B, do func() error) {
	b.Helper()
	began := processor(b)
	for b.Loop() {
		if err := do(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processor(b)-began)/float64(b.N), "cpu-ns/op")
}

// processor returns the CPU time that this process has used so far.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
