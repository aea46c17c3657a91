package recordings_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// limitTo sets the quota and the upload rate of the project.
func (w *world) limitTo(t *testing.T, quota, rate int64) {
	t.Helper()
	c := fabric.ProjectChange{RecordingQuota: &quota, UploadRate: &rate}
	if _, err := w.store.UpdateProject(t.Context(), w.project, c, w.now); err != nil {
		t.Fatal(err)
	}
}

// distinct returns the contents of an audio file. The contents differ for each n.
func distinct(t *testing.T, n byte) string {
	t.Helper()
	file := corpusFile(t, "canonical_44.wav")
	file[len(file)-1] = n
	return string(file)
}

// TestQuota shows that uploads are refused after the quota is used up, and that refused uploads
// leave nothing behind. Equal files need no quota. Deleting a recording makes room again.
func TestQuota(t *testing.T) {
	everyMedia(t, func(t *testing.T, w *world, _ blob.Store, _ string) {
		size := int64(len(distinct(t, 0)))
		w.limitTo(t, 2*size+1, 0)
		var last recordings.Recording
		for n := range byte(2) {
			rec, _, err := w.upload(t.Context(), distinct(t, n), recordings.Description{})
			if err != nil {
				t.Fatal(err)
			}
			last = rec
		}

		_, _, err := w.upload(t.Context(), distinct(t, 9), recordings.Description{})
		if p := problem.First(err); p == nil || p.Kind != problem.Forbidden || p.Code != "quota_exceeded" {
			t.Errorf("over the quota: %v, want Forbidden with the code quota_exceeded", err)
		}
		w.wantUsage(t, 2*size, 2*size)

		_, added, err := w.upload(t.Context(), distinct(t, 0), recordings.Description{})
		if err != nil || !added {
			t.Errorf("an equal file: added %v, %v, want it added", added, err)
		}

		if err := w.Delete(t.Context(), w.project, last.Sid); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(6 * time.Second)
		if _, _, err := w.upload(t.Context(), distinct(t, 9), recordings.Description{}); err != nil {
			t.Errorf("after a deletion: %v, want the upload stored", err)
		}
	})
}

// TestQuotaAtOnce shows that concurrent uploads cannot use more than the quota.
func TestQuotaAtOnce(t *testing.T) {
	w := newWorld(t)
	const fit, uploads = 3, 12
	w.limitTo(t, fit*int64(len(distinct(t, 0))), 0)
	var added, refused atomic.Int64
	var uploading sync.WaitGroup
	for n := range byte(uploads) {
		file := distinct(t, n)
		uploading.Go(func() {
			_, _, err := w.upload(context.Background(), file, recordings.Description{})
			switch {
			case err == nil:
				added.Add(1)
			case errors.Is(err, problem.Forbidden):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	uploading.Wait()

	if added.Load() != fit || refused.Load() != uploads-fit {
		t.Errorf("%d uploads were stored and %d were refused, want %d and %d",
			added.Load(), refused.Load(), fit, uploads-fit)
	}
	if files := w.keys(t); len(files) != fit {
		t.Errorf("%d files, want %d", len(files), fit)
	}
}

// TestFullQuota shows that the body of an upload is not read when the quota is used up. The quota
// does not apply to calls that this deployment recorded.
func TestFullQuota(t *testing.T) {
	w := newWorld(t)
	w.limitTo(t, 1, 0)
	own := recordings.Upload{
		ProjectID: w.project,
		Body:      strings.NewReader(distinct(t, 0)),
		Own:       true,
		Describe:  saying(recordings.Description{}),
	}
	if _, added, err := w.Ingest(t.Context(), own); err != nil || !added {
		t.Fatalf("a call of this deployment: added %v, %v, want it added", added, err)
	}
	w.wantUnread(t, problem.Forbidden)
}

// TestRepeatAtFullQuota shows that a repeated upload succeeds when the quota is exactly used up. A
// different file is refused.
func TestRepeatAtFullQuota(t *testing.T) {
	w := newWorld(t)
	w.limitTo(t, int64(len(distinct(t, 0))), 0)
	about := recordings.Description{IdempotencyKey: "one"}
	first, _, err := w.upload(t.Context(), distinct(t, 0), about)
	if err != nil {
		t.Fatal(err)
	}

	again, added, err := w.upload(t.Context(), distinct(t, 0), about)
	if err != nil || added {
		t.Fatalf("the same upload again: added %v, %v, want it not added", added, err)
	}
	if again.Sid != first.Sid {
		t.Errorf("the same upload again has the Sid %s, want %s", again.Sid, first.Sid)
	}

	_, _, err = w.upload(t.Context(), distinct(t, 1), recordings.Description{})
	if !errors.Is(err, problem.Forbidden) {
		t.Errorf("another file: %v, want it refused", err)
	}
}

// wantUnread checks that an upload is refused before its body is read.
func (w *world) wantUnread(t *testing.T, want problem.Kind) {
	t.Helper()
	body := strings.NewReader(distinct(t, 1))
	_, _, err := w.Ingest(t.Context(), recordings.Upload{
		ProjectID: w.project,
		Body:      body,
		Describe:  saying(recordings.Description{}),
	})
	if !errors.Is(err, want) {
		t.Errorf("Ingest: %v, want %v", err, want)
	}
	if read := int(body.Size()) - body.Len(); read != 0 {
		t.Errorf("Ingest read %d bytes of the body, want 0", read)
	}
}

// TestUploadRate shows that uploads of a project with a rate are counted, except imports. Uploads
// above the rate are refused before their bodies are read.
func TestUploadRate(t *testing.T) {
	var counted []string
	tooMany := problem.New(problem.RateLimited, "rate_limit_exceeded", "too many requests")
	w := newWorld(t, func(c *recordings.Config) {
		c.CountUpload = func(_ context.Context, projectID string, perMinute int64) error {
			counted = append(counted, projectID)
			if int64(len(counted)) > perMinute {
				return tooMany
			}
			return nil
		}
	})
	if _, _, err := w.upload(t.Context(), distinct(t, 0), recordings.Description{}); err != nil {
		t.Fatal(err)
	}
	if len(counted) != 0 {
		t.Fatalf("without a rate, uploads of %q are counted, want none", counted)
	}

	w.limitTo(t, 0, 1)
	if _, _, err := w.upload(t.Context(), distinct(t, 0), recordings.Description{}); err != nil {
		t.Fatal(err)
	}
	w.wantUnread(t, problem.RateLimited)
	if want := []string{w.project, w.project}; !slices.Equal(counted, want) {
		t.Errorf("uploads of %q are counted, want %q", counted, want)
	}

	_, _, err := w.Ingest(t.Context(), recordings.Upload{
		ProjectID: w.project,
		Body:      strings.NewReader(distinct(t, 1)),
		Imported:  true,
		Describe:  saying(recordings.Description{}),
	})
	if err != nil {
		t.Errorf("an import by an operator: %v, want no error", err)
	}
	if len(counted) != 2 {
		t.Errorf("%d uploads are counted after an import, want 2", len(counted))
	}
}
