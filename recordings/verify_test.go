package recordings_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/recordings"
)

// TestVerify shows that VerifyMedia finds media that is missing, cut short or changed, and accepts
// media that is intact, or that was deleted together with its row.
func TestVerify(t *testing.T) {
	tests := []struct {
		name   string
		damage func(t *testing.T, w *world, file string, rec recordings.Recording)
		want   string
	}{
		{"intact", func(*testing.T, *world, string, recordings.Recording) {}, ""},
		{"missing", func(t *testing.T, _ *world, file string, _ recordings.Recording) {
			must(t, os.Remove(file))
		}, "the media is missing"},
		{"cut", func(t *testing.T, _ *world, file string, _ recordings.Recording) {
			must(t, os.Truncate(file, 100))
		}, "the media has 100 bytes instead of 32044"},
		{"one bit", func(t *testing.T, _ *world, file string, _ recordings.Recording) {
			b, err := os.ReadFile(file)
			must(t, err)
			b[len(b)-1] ^= 1
			must(t, os.WriteFile(file, b, 0o600))
		}, "the media has changed"},
		{"deleted", func(t *testing.T, w *world, _ string, rec recordings.Recording) {
			must(t, w.Delete(t.Context(), w.project, rec.Sid))
		}, ""},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			rec, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{})
			must(t, err)

			tt.damage(t, w, filepath.Join(w.media, blob.Name(rec.MediaKey)), rec)
			got, err := w.VerifyMedia(t.Context(), rec, nil)
			if err != nil || got != tt.want {
				t.Errorf("VerifyMedia = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestVerifyCanceled shows that a canceled verification reports an error and no damage.
func TestVerifyCanceled(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	damage, err := w.VerifyMedia(ctx, rec, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("VerifyMedia: %v, want context.Canceled", err)
	}
	if damage != "" {
		t.Errorf("VerifyMedia finds the damage %q, want none", damage)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
