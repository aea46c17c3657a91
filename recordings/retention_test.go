package recordings_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// TestRetention shows which recordings the rules delete. A preview counts these recordings first.
func TestRetention(t *testing.T) {
	w := newWorld(t)
	alice := w.addSubscriber(t, "alice")
	plain := w.add(t, "plain", recordings.MarkInput{})
	brief := w.add(t, "brief", tag("brief"))
	keep := w.add(t, "keep", tag("keep", "brief"))
	hers, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{
		SubscriberID: alice,
		Metadata:     recordings.Metadata{CallSid: "hers"},
	})
	if err != nil {
		t.Fatal(err)
	}

	w.addRule(t, recordings.Rule{Days: 30})
	w.addRule(t, recordings.Rule{Days: 7, Tag: "brief"})
	w.addRule(t, recordings.Rule{Days: 90, SubscriberID: alice})
	keepRule := w.addRule(t, recordings.Rule{Days: 0, Tag: "keep"})

	start := w.now
	tests := []struct {
		days int
		left []string
	}{
		{6, []string{hers.Sid, keep.Sid, brief.Sid, plain.Sid}},
		{7, []string{hers.Sid, keep.Sid, plain.Sid}},
		{29, []string{hers.Sid, keep.Sid, plain.Sid}},
		{30, []string{hers.Sid, keep.Sid}},
		{89, []string{hers.Sid, keep.Sid}},
		{90, []string{keep.Sid}},
		{4000, []string{keep.Sid}},
	}
	for _, tt := range tests {
		before := len(w.list(t, recordings.Filter{}))
		w.now = start.AddDate(0, 0, tt.days)
		preview, err := w.Retention().Preview(t.Context(), w.project, nil)
		if err != nil {
			t.Fatal(err)
		}

		if err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := w.list(t, recordings.Filter{})
		slices.Sort(got)
		slices.Sort(tt.left)
		if !slices.Equal(got, tt.left) {
			t.Errorf("after %d days: %q are left, want %q", tt.days, got, tt.left)
		}
		if deleted := before - len(got); int(preview.Recordings) != deleted {
			t.Errorf("after %d days: the preview counts %d recordings, want %d",
				tt.days, preview.Recordings, deleted)
		}
	}

	changed := &recordings.Rule{Days: 1, Tag: "keep"}
	preview, err := w.Retention().Preview(t.Context(), w.project, changed)
	if err != nil {
		t.Fatal(err)
	}
	if preview.Recordings != 1 || preview.Bytes != keep.Bytes {
		t.Errorf("a preview with a different rule = %+v, want one recording of %d bytes", preview, keep.Bytes)
	}

	if err := w.Retention().Delete(t.Context(), w.project, keepRule.ID); err != nil {
		t.Fatal(err)
	}
	if err := w.Retention().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := w.mediaFiles(t); len(left) != 0 {
		t.Errorf("files after the last rule applied: %q, want none", left)
	}
}

// A stuckMedia is storage that cannot remove the bytes of one key.
type stuckMedia struct {
	recordings.Media
	key   string
	asked int // number of calls of Remove
}

var errStuck = errors.New("permission denied")

func (m *stuckMedia) Remove(key string, parts ...string) error {
	m.asked++
	if key == m.key {
		return errStuck
	}
	return m.Media.Remove(key, parts...)
}

// TestRetentionOfStuckMedia shows that a file that cannot be removed does not keep the retention
// rules from deleting other recordings. The files of these recordings are left to Sweep, because each
// attempt to remove a file may take long.
func TestRetentionOfStuckMedia(t *testing.T) {
	var stuck *stuckMedia
	w := newWorld(t, func(c *recordings.Config) {
		stuck = &stuckMedia{Media: c.Media}
		c.Media = stuck
	})
	first := w.add(t, "first", recordings.MarkInput{})
	stuck.key = first.MediaKey
	w.now = w.now.Add(time.Second)
	if _, _, err := w.ingest(t, "silence.wav", recordings.Description{}); err != nil {
		t.Fatal(err)
	}

	w.addRule(t, recordings.Rule{Days: 1})
	w.now = w.now.AddDate(0, 0, 2)
	if err := w.Retention().Apply(t.Context()); !errors.Is(err, errStuck) {
		t.Errorf("Apply: %v, want %v", err, errStuck)
	}
	if left := w.list(t, recordings.Filter{}); len(left) != 0 {
		t.Errorf("%q are left, want none", left)
	}
	if stuck.asked != 1 {
		t.Errorf("Apply tries to remove %d files, want 1", stuck.asked)
	}

	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := w.mediaFiles(t); len(left) != 0 {
		t.Errorf("files after a sweep: %q, want none", left)
	}
}

// addRule adds a retention rule to the project.
func (w *world) addRule(t *testing.T, rule recordings.Rule) recordings.Rule {
	t.Helper()
	rule.ProjectID = w.project
	added, err := w.Retention().Add(t.Context(), rule)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func TestRetentionRefusals(t *testing.T) {
	w := newWorld(t)
	rule := w.addRule(t, recordings.Rule{Days: 30})
	_, err := w.Retention().Add(t.Context(), recordings.Rule{ProjectID: w.project, Days: 3})
	if !errors.Is(err, problem.Conflict) {
		t.Errorf("a second rule for all: %v, want Conflict", err)
	}
	err = w.Retention().Delete(t.Context(), w.addProject(t), rule.ID)
	if !errors.Is(err, problem.NotFound) {
		t.Errorf("deleting another project's rule: %v, want NotFound", err)
	}
}
