package main

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/config"
	"github.com/selvage/selvage/internal/store"
	"github.com/selvage/selvage/internal/store/storetest"
)

// An examination ends, whatever one of its checks hangs in.
func TestExamine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		checks := []check{
			{"A", "quick", func(context.Context) []finding { return []finding{finef("here"), finef("there").of("other")} }},
			{"A", "hanging", func(context.Context) []finding { <-release; return nil }},
			{"A", "heedful", func(ctx context.Context) []finding { <-ctx.Done(); return []finding{warnedf("wait", "late")} }},
			{"B", "hanging", func(context.Context) []finding { <-release; return nil }},
			{"B", "nothing", func(context.Context) []finding { return nil }},
		}
		began := time.Now()
		var got []string
		for _, f := range examine(t.Context(), checks, 8*time.Second) {
			got = append(got, f.Group+" "+f.Name+" "+string(f.Status))
		}
		const want = "A quick ok, A other ok, A hanging failed, A heedful warning, B hanging failed"
		if strings.Join(got, ", ") != want {
			t.Errorf("examine = %s, want %s", strings.Join(got, ", "), want)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// What is found hangs below where it began; paths stay whole.
func TestHang(t *testing.T) {
	tests := []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 0, "one two three\n"},
		{"one two three", 12, "one two\n    three\n"},
		{"one two three", 17, "one two three\n"},
		{"one /a/very/long/path two", 12, "one\n    /a/very/long/path\n    two\n"},
		{"/a/very/long/path", 12, "/a/very/long/path\n"},
	}
	for _, tt := range tests {
		var b strings.Builder
		hang(&b, tt.text, 4, tt.width)
		if b.String() != tt.want {
			t.Errorf("hang(%q, 4, %d) = %q, want %q", tt.text, tt.width, b.String(), tt.want)
		}
	}
}

func TestMountOf(t *testing.T) {
	if kind, mount := mountOf("/proc/self"); kind != "" && (kind != "proc" || mount != "/proc") {
		t.Errorf("mountOf(/proc/self) = %q, %q", kind, mount)
	}
}

// A clock that was set back is told by rows that were made later than now.
func TestClocksOfRows(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := &examination{config: config.Config{Database: "sqlite:selvage.db"}}
	for _, tt := range []struct {
		ahead time.Duration
		want  verdict
	}{{-time.Hour, fine}, {30 * time.Second, fine}, {time.Hour, broken}} {
		id := uuid.Must(uuid.NewV7())
		binary.BigEndian.PutUint64(id[:], uint64(time.Now().Add(tt.ahead).UnixMilli())<<16|0x7000)
		if err := s.CreateProject(t.Context(), fabric.Project{ID: id.String(), Name: tt.ahead.String()}); err != nil {
			t.Fatal(err)
		}
		if got := e.clocksOfRows(t.Context(), s)[0]; got.Status != tt.want {
			t.Errorf("a row made %s from now = %+v, want %s", tt.ahead, got, tt.want)
		}
	}
}
