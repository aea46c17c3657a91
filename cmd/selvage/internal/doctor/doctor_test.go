package doctor

import (
	"context"
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// TestExamine shows that an examination ends even if one of its checks hangs.
func TestExamine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)

		quick := func(context.Context) []Finding {
			return []Finding{finef("here"), finef("there").of("other")}
		}
		hanging := func(context.Context) []Finding {
			<-release
			return nil
		}
		canceled := func(ctx context.Context) []Finding {
			<-ctx.Done()
			return []Finding{warnedf("late").withRemedy("wait")}
		}
		nothing := func(context.Context) []Finding { return nil }
		checks := []check{
			{"A", "quick", quick},
			{"A", "hanging", hanging},
			{"A", "canceled", canceled},
			{"B", "hanging", hanging},
			{"B", "nothing", nothing},
		}

		began := time.Now()
		var lines []string
		for _, f := range examine(t.Context(), checks, 8*time.Second) {
			lines = append(lines, f.Group+" "+f.Name+" "+string(f.Status))
		}

		const want = "A quick ok, A other ok, A hanging failed, A canceled warning, B hanging failed"
		if got := strings.Join(lines, ", "); got != want {
			t.Errorf("examine = %s, want %s", got, want)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("examine took %s, want at most 10s", took)
		}
	})
}

// TestMountOf shows that mountOf finds the mount point of /proc, on systems with a /proc.
func TestMountOf(t *testing.T) {
	if _, err := os.Stat("/proc/self/mountinfo"); err != nil {
		t.Skip("this system has no /proc")
	}
	kind, mount := mountOf("/proc/self")
	if kind != "proc" || mount != "/proc" {
		t.Errorf("mountOf(/proc/self) = %q, %q, want proc, /proc", kind, mount)
	}
}

// TestClocksOfRows shows that rows with times in the future reveal that the clock was set back.
func TestClocksOfRows(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	e := &Examination{Config: config.Config{Database: "sqlite:selvage.db"}}
	tests := []struct {
		ahead time.Duration
		want  Verdict
	}{
		{-time.Hour, Fine},
		{30 * time.Second, Fine},
		{time.Hour, Broken},
	}
	for _, tt := range tests {
		id := uuid.Must(uuid.NewV7())
		created := uint64(time.Now().Add(tt.ahead).UnixMilli())
		binary.BigEndian.PutUint64(id[:], created<<16|0x7000) // the time and version of a UUIDv7
		project := fabric.Project{ID: id.String(), Name: tt.ahead.String()}
		if err := s.CreateProject(t.Context(), project); err != nil {
			t.Fatal(err)
		}
		if got := e.clocksOfRows(t.Context(), s)[0]; got.Status != tt.want {
			t.Errorf("a row created %s from now = %+v, want %s", tt.ahead, got, tt.want)
		}
	}
}
