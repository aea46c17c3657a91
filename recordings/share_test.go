package recordings_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store/storetest"
)

// everyMedia runs a test with each kind of storage. The argument dir is the path of a directory, or
// "" for other kinds of storage.
func everyMedia(t *testing.T, test func(t *testing.T, w *world, media blob.Store, dir string)) {
	secret := sha256.Sum256([]byte(t.Name()))
	seal := func(s blob.Store) blob.Store {
		return blob.NewSealed(s, true, func() [][sha256.Size]byte { return [][sha256.Size]byte{secret} })
	}

	run := func(name, dir string, media blob.Store) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *recordings.Config) { c.Media = media })
			test(t, w, media, dir)
		})
	}

	plain := filepath.Join(t.TempDir(), "media")
	encrypted := filepath.Join(t.TempDir(), "media")
	run("directory", plain, storetest.Media(t, plain))
	run("encrypted directory", encrypted, seal(storetest.Media(t, encrypted)))
	run("bucket", "", storetest.Bucket(t))
	run("encrypted bucket", "", seal(storetest.Bucket(t)))
}

const sharedFile = "speech_stereo_8k.wav"

// storeCall uploads sharedFile as the recording of a call.
func (w *world) storeCall(t *testing.T, call string) recordings.Recording {
	t.Helper()
	d := recordings.Description{Metadata: recordings.Metadata{CallSid: call}}
	rec, added, err := w.ingest(t, sharedFile, d)
	if err != nil || !added {
		t.Fatalf("uploading call %s: added %v, %v, want a new recording", call, added, err)
	}
	return rec
}

// isMissing reports whether no media has this key.
func isMissing(t *testing.T, media blob.Store, key string) bool {
	t.Helper()
	f, err := media.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	return false
}

// TestStoredOnce shows that the bytes of two recordings with the same audio are stored and counted
// only once. Deleting one recording does not affect the other. Projects share no files.
func TestStoredOnce(t *testing.T) {
	everyMedia(t, func(t *testing.T, w *world, media blob.Store, _ string) {
		want := string(corpusFile(t, sharedFile))
		first := w.storeCall(t, "one")
		second := w.storeCall(t, "two")
		if first.Sid == second.Sid {
			t.Errorf("two calls have the Sid %s, want one each", first.Sid)
		}
		if first.MediaKey != second.MediaKey {
			t.Errorf("two calls have the media %s and %s, want the same", first.MediaKey, second.MediaKey)
		}
		if !isMissing(t, media, second.ID) {
			t.Error("the second call has its own media, want none")
		}

		own := w.project
		w.project = w.addProject(t)
		if third := w.storeCall(t, "three"); third.MediaKey == first.MediaKey {
			t.Error("two projects share a file")
		}
		w.project = own
		size := int64(len(want))
		w.wantUsage(t, 2*size, size)

		if err := w.Delete(t.Context(), w.project, first.Sid); err != nil {
			t.Fatal(err)
		}
		if err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := string(w.read(t, second.Sid)); got != want {
			t.Errorf("after the other was deleted, the recording has %d bytes, want those of the file", len(got))
		}
		w.wantUsage(t, 2*size, size)

		fourth := w.storeCall(t, "four")
		if fourth.MediaKey != second.MediaKey {
			t.Error("the audio of the recording that is left is stored twice")
		}

		w.wantUsage(t, 3*size, size)
		for _, rec := range []recordings.Recording{second, fourth} {
			if isMissing(t, media, second.MediaKey) {
				t.Fatal("the media is gone before its last recording is")
			}
			if err := w.Delete(t.Context(), w.project, rec.Sid); err != nil {
				t.Fatal(err)
			}
		}

		if !isMissing(t, media, second.MediaKey) {
			t.Error("the media remains after its last recording was deleted")
		}
		w.wantUsage(t, 3*size, 0)
	})
}

// wantUsage checks the numbers of uploaded and stored bytes.
func (w *world) wantUsage(t *testing.T, uploaded, stored int64) {
	t.Helper()
	day := w.now.Truncate(24 * time.Hour)
	days, err := w.Usage(t.Context(), w.project, day, day.AddDate(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if sum := recordings.SumUsage(days); sum.Bytes != uploaded || sum.Stored != stored {
		t.Errorf("usage is %d bytes uploaded and %d stored, want %d and %d", sum.Bytes, sum.Stored, uploaded, stored)
	}
}

// TestDamagedTwin shows that an upload is stored if the stored file with the same digest is
// damaged.
func TestDamagedTwin(t *testing.T) {
	everyMedia(t, func(t *testing.T, w *world, _ blob.Store, dir string) {
		if dir == "" {
			return // TestBucketDamage shows that reading a damaged object fails
		}
		first := w.storeCall(t, "one")
		name := filepath.Join(dir, blob.Name(first.MediaKey))
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/2] ^= 1
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}

		second := w.storeCall(t, "two")
		if second.MediaKey == first.MediaKey {
			t.Fatal("the upload shares a damaged file")
		}
		if got := w.read(t, second.Sid); string(got) != string(corpusFile(t, sharedFile)) {
			t.Errorf("the upload has %d bytes, want those of the file", len(got))
		}
	})
}

// TestSameBytesOtherFormat shows that recordings do not share a file without a header if they
// decode it in different ways, because their outlines differ.
func TestSameBytesOtherFormat(t *testing.T) {
	w := newWorld(t)
	sound := corpusFile(t, sharedFile)[44:][:16_000]
	var keys []string
	for _, name := range []string{"a.ulaw", "b.ulaw", "c.alaw"} {
		rec, _, err := w.Ingest(t.Context(), recordings.Upload{
			ProjectID: w.project,
			Hints:     []string{name},
			Body:      bytes.NewReader(sound),
			Describe:  saying(recordings.Description{Path: name}),
		})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, rec.MediaKey)
	}
	if keys[0] != keys[1] {
		t.Errorf("a.ulaw and b.ulaw have the keys %s and %s, want the same", keys[0], keys[1])
	}
	if keys[1] == keys[2] {
		t.Errorf("b.ulaw and c.alaw have the key %s, want different keys", keys[1])
	}
}

// TestShareAgainstDelete shows that nothing is lost if a file is uploaded while other recordings
// with the same bytes are deleted. Every remaining recording is complete.
func TestShareAgainstDelete(t *testing.T) {
	w := newWorld(t)
	want := string(corpusFile(t, sharedFile))
	var mu sync.Mutex
	var left []string
	uploadOrDelete := func(keep bool) error {
		rec, _, err := w.upload(context.Background(), want, recordings.Description{})
		if err != nil {
			return err
		}
		if !keep {
			return w.Delete(context.Background(), w.project, rec.Sid)
		}
		mu.Lock()
		defer mu.Unlock()
		left = append(left, rec.Sid)
		return nil
	}

	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := range 12 {
				if err := uploadOrDelete(i%3 == 0); err != nil {
					t.Error(err)
					return
				}
				if err := w.Sweep(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()

	for _, sid := range left {
		if got := string(w.read(t, sid)); got != want {
			t.Errorf("%s has %d bytes, want %d", sid, len(got), len(want))
		}
	}

	for _, sid := range left {
		if err := w.Delete(t.Context(), w.project, sid); err != nil {
			t.Fatal(err)
		}
	}
	if files := w.mediaFiles(t); len(files) > 0 {
		t.Errorf("after the last deletion, the files %q remain", files)
	}
}
