package recordings_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

func TestIngestCorpus(t *testing.T) {
	w := newWorld(t)
	stored := 0
	for name, want := range verdicts(t) {
		file := corpusFile(t, name)
		rec, added, err := w.Ingest(t.Context(), recordings.Upload{
			ProjectID: w.project,
			Body:      bytes.NewReader(file),
			Describe:  saying(recordings.Description{}),
			Hints:     []string{name},
		})
		if want.Result == "err" && !want.Absent {
			if !errors.Is(err, problem.Invalid) && !errors.Is(err, problem.Unsupported) {
				t.Errorf("Ingest(%s) = %v, want a problem", name, err)
			}
			continue
		}
		if err != nil || !added {
			t.Errorf("Ingest(%s) = added %v, %v, want a recording", name, added, err)
			continue
		}

		stored++
		t.Run(name, func(t *testing.T) {
			wantVerdict(t, rec, want)
			if rec.Bytes != int64(len(file)) {
				t.Errorf("%d bytes, want %d", rec.Bytes, len(file))
			}
			if got := w.read(t, rec.Sid); !bytes.Equal(got, file) {
				t.Error("the media differs from the upload")
			}
		})
	}

	if got := len(w.keys(t)); got != stored {
		t.Errorf("%d files for %d recordings, want one each", got, stored)
	}
}

// wantVerdict compares a recording with the expected result for its file.
func wantVerdict(t *testing.T, rec recordings.Recording, want verdict) {
	t.Helper()
	status := recordings.Completed
	if want.Absent || want.Silent {
		status = recordings.Absent
	}
	if rec.Status != status {
		t.Errorf("status %s, want %s", rec.Status, status)
	}
	if repaired := len(rec.Repairs) > 0; repaired != (want.Result == "repair") {
		t.Errorf("repairs %q, want %s", rec.Repairs, want.Result)
	}
	if rec.Codec != want.Codec && !want.Absent {
		t.Errorf("codec %s, want %s", rec.Codec, want.Codec)
	}
	tolerance := max(want.Tolerance, 1e-6)
	if seconds := rec.Duration().Seconds(); math.Abs(seconds-want.Duration) > tolerance {
		t.Errorf("duration %v s, want %v within %v", seconds, want.Duration, tolerance)
	}
	if rec.SHA256 != want.SHA256 {
		t.Errorf("SHA-256 %s, want %s", rec.SHA256, want.SHA256)
	}
}

func (w *world) read(t *testing.T, sid string) []byte {
	t.Helper()
	_, media, err := w.Open(t.Context(), recordings.Owner{ProjectID: w.project}, sid)
	if err != nil {
		t.Fatal(err)
	}
	defer media.Close()
	got, err := io.ReadAll(media)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestIngestFacts(t *testing.T) {
	w := newWorld(t)
	began := w.now.Add(-time.Minute)
	rec, _, err := w.ingest(t, "speech_stereo_8k.wav", recordings.Description{
		Metadata: recordings.Metadata{ConferenceSid: "room", StartTime: began},
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := w.Find(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid)
	if err != nil {
		t.Fatal(err)
	}

	got := fmt.Sprintf("%s %d Hz %d channels %d bits, %d s, price %d, %s %s, ends after %s",
		found.Codec, found.SampleRate, found.Channels, found.Bits,
		found.Seconds(), found.Price,
		found.Source, found.Track, found.EndTime().Sub(began))
	want := "pcm_s16le 8000 Hz 2 channels 16 bits, 6 s, price 2500, StartConferenceRecording both, ends after 6s"
	if got != want {
		t.Errorf("the recording is %s\nwant %s", got, want)
	}

	if rec.Sid == rec.ID || rec.Sid[14] != '4' {
		t.Errorf("Sid = %s, want a random UUID", rec.Sid)
	}
}

func TestIngestWithoutAudio(t *testing.T) {
	w := newWorld(t)
	rec, added, err := w.ingest(t, "header_only_44.wav", recordings.Description{})
	if err != nil || !added {
		t.Fatalf("Ingest = %v, %v, want a recording", added, err)
	}
	if rec.Status != recordings.Absent || rec.ErrorCode != recordings.NoAudio {
		t.Errorf("status %s with the error %s, want absent and no audio", rec.Status, rec.ErrorCode)
	}
	if rec.Seconds() != 0 || rec.Price != 0 {
		t.Errorf("%d s at the price %d, want 0 and 0", rec.Seconds(), rec.Price)
	}
}

func TestIngestIdentity(t *testing.T) {
	const file, otherFile = "canonical_44.wav", "fmt18.wav"
	none := recordings.Description{}
	key := recordings.Description{IdempotencyKey: "k", Metadata: recordings.Metadata{CallSid: "c"}}
	path := recordings.Description{Path: "/var/spool/1.wav"}
	call := recordings.Description{Metadata: recordings.Metadata{CallSid: "c"}}
	conference := recordings.Description{Metadata: recordings.Metadata{ConferenceSid: "c"}}
	otherConference := recordings.Description{Metadata: recordings.Metadata{ConferenceSid: "d"}}
	tests := []struct {
		name          string
		first, second recordings.Description
		secondFile    string // the first upload sends file
		same          bool   // whether the second upload returns the first recording
		files         int    // equal bytes are stored once
	}{
		{"no identity", none, none, file, false, 1},
		{"same key", key, key, file, true, 1},
		{"same path", path, path, file, true, 1},
		{"same path, other bytes", path, path, otherFile, false, 2},
		{"same call", call, call, file, true, 1},
		{"same call, other bytes", call, call, otherFile, false, 2},
		{"key, then call", key, call, file, false, 1},
		{"same conference", conference, conference, file, true, 1},
		{"same conference, other bytes", conference, conference, otherFile, false, 2},
		{"other conference", conference, otherConference, file, false, 1},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			first, added, err := w.ingest(t, file, tt.first)
			if err != nil || !added {
				t.Fatalf("first Ingest: added %v, %v, want it added", added, err)
			}

			second, added, err := w.ingest(t, tt.secondFile, tt.second)
			if err != nil {
				t.Fatal(err)
			}
			if added == tt.same {
				t.Errorf("second Ingest: added %v, want %v", added, !tt.same)
			}
			if same := second.Sid == first.Sid; same != tt.same {
				t.Errorf("the second upload returns the first recording: %v, want %v", same, tt.same)
			}
			if got := len(w.keys(t)); got != tt.files {
				t.Errorf("%d files, want %d", got, tt.files)
			}
		})
	}
}

// TestKeyOfAnotherFile shows that an idempotency key cannot be used for different bytes. The error
// names the digest of the first file.
func TestKeyOfAnotherFile(t *testing.T) {
	w := newWorld(t)
	key := recordings.Description{IdempotencyKey: "k"}
	first, _, err := w.ingest(t, "canonical_44.wav", key)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = w.ingest(t, "fmt18.wav", key)
	if !errors.Is(err, problem.Conflict) || !strings.Contains(err.Error(), first.SHA256) {
		t.Errorf("Ingest of another file: %v, want a conflict that names %s", err, first.SHA256)
	}
	if n := len(w.keys(t)); n != 1 {
		t.Errorf("%d files, want 1", n)
	}
}

// TestIdentityEndsWithItsRecording shows that an identity can be used again after its recording is
// deleted. Projects do not share identities.
func TestIdentityEndsWithItsRecording(t *testing.T) {
	w := newWorld(t)
	key := recordings.Description{IdempotencyKey: "k"}
	first, _, err := w.ingest(t, "canonical_44.wav", key)
	if err != nil {
		t.Fatal(err)
	}
	home := w.project
	w.project = w.addProject(t)
	if _, added, err := w.ingest(t, "canonical_44.wav", key); !added {
		t.Errorf("Ingest into another project: added %v, %v, want a new recording", added, err)
	}

	w.project = home
	if err := w.Delete(t.Context(), home, first.Sid); err != nil {
		t.Fatal(err)
	}
	if again, added, err := w.ingest(t, "canonical_44.wav", key); !added || again.Sid == first.Sid {
		t.Errorf("Ingest after Delete = %s, added %v, %v, want a new recording", again.Sid, added, err)
	}
}

func TestParallelIngestHasOneWinner(t *testing.T) {
	w := newWorld(t)
	file := string(corpusFile(t, "canonical_44.wav"))
	var uploads sync.WaitGroup
	var mu sync.Mutex
	sids := make(map[string]bool)
	winners := 0
	for range 50 {
		uploads.Go(func() {
			rec, added, err := w.upload(t.Context(), file, recordings.Description{IdempotencyKey: "k"})
			if err != nil {
				t.Errorf("Ingest: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			sids[rec.Sid] = true
			if added {
				winners++
			}
		})
	}
	uploads.Wait()

	if len(sids) != 1 || winners != 1 {
		t.Errorf("%d recordings, %d added, want 1 and 1", len(sids), winners)
	}
	if files := w.keys(t); len(files) != 1 {
		t.Errorf("%d files, want 1", len(files))
	}
}

func TestIngestThatFailsLeavesNothing(t *testing.T) {
	file := string(corpusFile(t, "speech_s16_8k.wav"))
	w := newWorld(t, func(c *recordings.Config) { c.MaxUpload = int64(len(file)) })
	const nobody = "7f2c3a52-0000-4000-8000-000000000000"
	brokenOff := io.MultiReader(strings.NewReader(file[:5000]), iotest.ErrReader(io.ErrUnexpectedEOF))
	none := recordings.Description{}
	badTrack := recordings.Description{Metadata: recordings.Metadata{Track: "x"}}
	badSubscriber := recordings.Description{SubscriberID: nobody}
	tests := []struct {
		name     string
		project  string
		body     io.Reader
		describe recordings.Description
		want     problem.Kind
	}{
		{"broken off", w.project, brokenOff, none, problem.Malformed},
		{"too large", w.project, strings.NewReader(file + "x"), none, problem.TooLarge},
		{"empty", w.project, strings.NewReader(""), none, problem.Invalid},
		{"wrong description", w.project, strings.NewReader(file), badTrack, problem.Invalid},
		{"unknown subscriber", w.project, strings.NewReader(file), badSubscriber, problem.Invalid},
		{"unknown project", nobody, strings.NewReader(file), none, problem.NotFound},
	}

	for _, tt := range tests {
		_, _, err := w.Ingest(t.Context(), recordings.Upload{
			ProjectID: tt.project,
			Body:      tt.body,
			Describe:  saying(tt.describe),
		})
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: Ingest: %v, want %v", tt.name, err, tt.want)
		}
		if left := w.mediaFiles(t); len(left) != 0 {
			t.Errorf("%s: remaining files: %q, want none", tt.name, left)
		}
	}

	everything := recordings.Filter{Owner: recordings.Owner{ProjectID: w.project}, IncludeDeleted: true}
	stored, err := w.List(t.Context(), everything, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(stored.Items); n != 0 {
		t.Errorf("List = %d recordings, want none", n)
	}
	if _, _, err := w.upload(t.Context(), file, recordings.Description{}); err != nil {
		t.Errorf("Ingest of exactly the limit: %v, want no error", err)
	}
}
