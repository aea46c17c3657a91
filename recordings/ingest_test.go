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
			ProjectID: w.project, Body: bytes.NewReader(file), Describe: saying(recordings.Description{}),
			Hints: []string{name},
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
		if status := statusOf(want); rec.Status != status || len(rec.Repairs) > 0 != (want.Result == "repair") {
			t.Errorf("Ingest(%s) = %s, repairs %q, want %s, %s", name, rec.Status, rec.Repairs, status, want.Result)
		}

		if off := math.Abs(rec.Duration().Seconds() - want.Duration); rec.Codec != want.Codec &&
			!want.Absent || off > max(want.Tolerance, 1e-6) {
			t.Errorf("Ingest(%s) = %s, %v, want %s, %v s", name, rec.Codec, rec.Duration(), want.Codec, want.Duration)
		}
		if rec.SHA256 != want.SHA256 || rec.Bytes != int64(len(file)) {
			t.Errorf("Ingest(%s) = %d bytes, SHA-256 %s, want %d, %s", name, rec.Bytes, rec.SHA256, len(file),
				want.SHA256)
		}

		if got := w.read(t, rec.Sid); !bytes.Equal(got, file) {
			t.Errorf("the media of %s differs from the upload", name)
		}
	}

	if got := len(w.keys(t)); got != stored {
		t.Errorf("%d files for %d recordings, want one each", got, stored)
	}
}

func statusOf(v verdict) recordings.Status {
	if v.Absent || v.Silent {
		return recordings.Absent
	}
	return recordings.Completed
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
	rec, _, err := w.ingest(t, "speech_stereo_8k.wav",
		recordings.Description{Metadata: recordings.Metadata{ConferenceSid: "room", StartTime: began}})
	if err != nil {
		t.Fatal(err)
	}
	found, err := w.Find(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid)
	if err != nil {
		t.Fatal(err)
	}

	got := fmt.Sprintf("%s %d Hz %d channels %d bits, %d s, %d, %s %s, ends %s", found.Codec,
		found.SampleRate, found.Channels, found.Bits,
		found.Seconds(), found.Price, found.Source, found.Track, found.EndTime().Sub(began))
	want := "pcm_s16le 8000 Hz 2 channels 16 bits, 6 s, 2500, StartConferenceRecording both, ends 6s"
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
	if rec.Status != recordings.Absent || rec.ErrorCode != recordings.NoAudio || rec.Price != 0 ||
		rec.Seconds() != 0 {
		t.Errorf("got %s, error %s, price %d, %d s, want absent", rec.Status, rec.ErrorCode, rec.Price, rec.Seconds())
	}
}

func TestIngestIdentity(t *testing.T) {
	const a, b = "canonical_44.wav", "fmt18.wav"
	key := recordings.Description{IdempotencyKey: "k", Metadata: recordings.Metadata{CallSid: "c"}}
	path := recordings.Description{Path: "/var/spool/1.wav"}
	call := recordings.Description{Metadata: recordings.Metadata{CallSid: "c"}}
	tests := []struct {
		name          string
		first, second recordings.Description
		file          string // the file of the second upload
		same          bool
		conflict      bool
	}{
		{"no identity", recordings.Description{}, recordings.Description{}, a, false, false},
		{"same key", key, key, a, true, false},
		{"same key, other bytes", key, key, b, false, true},
		{"same path", path, path, a, true, false},
		{"same path, other bytes", path, path, b, false, false},
		{"same call", call, call, a, true, false},
		{"same call, other bytes", call, call, b, false, false},
		{"key, then call", key, call, a, false, false},
	}

	for _, tt := range tests {
		w := newWorld(t)
		first, added, err := w.ingest(t, a, tt.first)
		if err != nil || !added {
			t.Fatalf("%s: first Ingest = %v, %v, want it added", tt.name, added, err)
		}

		second, added, err := w.ingest(t, tt.file, tt.second)
		if conflict := errors.Is(err, problem.Conflict); conflict != tt.conflict || err != nil && !conflict {
			t.Errorf("%s: second Ingest: %v, want conflict %v", tt.name, err, tt.conflict)
		}
		if tt.conflict && !strings.Contains(err.Error(), first.SHA256) {
			t.Errorf("%s: %q does not name %s", tt.name, err, first.SHA256)
		}

		if same := err == nil && !added && second.Sid == first.Sid; same != tt.same {
			t.Errorf("%s: the same recording %v, want %v", tt.name, same, tt.same)
		}
		files := 1 // equal bytes are stored once
		if tt.file != a && !tt.conflict {
			files = 2
		}

		if got := len(w.keys(t)); got != files {
			t.Errorf("%s: %d files, want %d", tt.name, got, files)
		}
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
	var wait sync.WaitGroup
	var mu sync.Mutex

	sids, winners := make(map[string]bool), 0
	for range 50 {
		wait.Go(func() {
			rec, added, err := w.upload(t.Context(), file, recordings.Description{IdempotencyKey: "k"})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("Ingest: %v", err)
			}
			if sids[rec.Sid] = true; added {
				winners++
			}
		})
	}

	wait.Wait()
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
	tests := []struct {
		name    string
		project string
		body    io.Reader
		d       recordings.Description
		want    problem.Kind
	}{
		{"broken off", w.project, io.MultiReader(strings.NewReader(file[:5000]),
			iotest.ErrReader(io.ErrUnexpectedEOF)), recordings.Description{}, problem.Malformed},
		{"too large", w.project, strings.NewReader(file + "x"), recordings.Description{}, problem.TooLarge},
		{"empty", w.project, strings.NewReader(""), recordings.Description{}, problem.Invalid},
		{"wrong description", w.project, strings.NewReader(file),
			recordings.Description{Metadata: recordings.Metadata{Track: "x"}}, problem.Invalid},
		{"unknown subscriber", w.project, strings.NewReader(file),
			recordings.Description{SubscriberID: nobody}, problem.Invalid},
		{"unknown project", nobody, strings.NewReader(file), recordings.Description{}, problem.NotFound},
	}

	for _, tt := range tests {
		_, _, err := w.Ingest(t.Context(),
			recordings.Upload{ProjectID: tt.project, Body: tt.body, Describe: saying(tt.d)})
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: Ingest: %v, want %v", tt.name, err, tt.want)
		}
		if left := w.mediaFiles(t); len(left) != 0 {
			t.Errorf("%s: remaining files: %q, want none", tt.name, left)
		}
	}

	all, err := w.List(t.Context(), recordings.Filter{Owner: recordings.Owner{ProjectID: w.project},
		IncludeDeleted: true}, page.Query{Size: 10})
	if err != nil || len(all.Items) != 0 {
		t.Errorf("List = %d recordings, %v, want none", len(all.Items), err)
	}
	if _, _, err := w.upload(t.Context(), file, recordings.Description{}); err != nil {
		t.Errorf("Ingest of exactly the limit: %v, want no error", err)
	}
}
