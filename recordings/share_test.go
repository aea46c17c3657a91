package recordings_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/recordings"
)

// TestStoredOnce shows that two calls with the same audio are two recordings whose bytes are stored once,
// that deleting one leaves the other whole, and that projects share nothing.
func TestStoredOnce(t *testing.T) {
	w := newWorld(t)
	const file = "canonical_44.wav"
	var all []recordings.Recording
	store := func(call string) os.FileInfo {
		t.Helper()
		d := recordings.Description{Metadata: recordings.Metadata{CallSid: call}}
		rec, added, err := w.ingest(t, file, d)
		if err != nil || !added {
			t.Fatalf("uploading call %s: added %v, %v", call, added, err)
		}
		all = append(all, rec)
		info, err := os.Stat(filepath.Join(w.media, blob.Name(rec.MediaKey)))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}

	first, second := store("one"), store("two")
	if all[0].Sid == all[1].Sid || !os.SameFile(first, second) {
		t.Errorf("two calls are the recordings %s and %s, in the same file: %v", all[0].Sid, all[1].Sid,
			os.SameFile(first, second))
	}
	own := w.project
	w.project = w.addProject(t)
	if third := store("three"); os.SameFile(first, third) {
		t.Error("two projects share a file")
	}
	w.project = own

	if err := w.Delete(t.Context(), w.project, all[0].Sid); err != nil {
		t.Fatal(err)
	}
	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, media, err := w.Open(t.Context(), recordings.Owner{ProjectID: w.project}, all[1].Sid)
	if err != nil {
		t.Fatal(err)
	}
	defer media.Close()
	got, err := io.ReadAll(media)
	if err != nil || string(got) != string(corpusFile(t, file)) {
		t.Errorf("after the other was deleted: %d bytes, %v", len(got), err)
	}
	if fourth := store("four"); !os.SameFile(second, fourth) {
		t.Error("the audio of the recording that is left is stored twice")
	}
}
