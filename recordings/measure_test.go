package recordings_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
	"github.com/selvage/selvage/recordings/mp3/mp3test"
)

func TestIngestMeasures(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "speech_stereo_8k.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	owner := recordings.Owner{ProjectID: w.project}
	found, err := w.Find(t.Context(), owner, rec.Sid)
	if err != nil {
		t.Fatal(err)
	}
	if l := found.Levels; l == nil || !reflect.DeepEqual(l, rec.Levels) || l.Peak == nil ||
		*l.Peak != -3.23 || len(l.Talk) != 2 || l.Talk[0] <= l.Talk[1] {
		t.Errorf("the row has the levels %+v, the upload %+v, want the same, with a peak of -3.23",
			found.Levels, rec.Levels)
	}

	got, outline, err := w.Outline(t.Context(), owner, rec.Sid)
	if err != nil || got.Sid != rec.Sid || outline.Channels != 2 || outline.PerPixel != 400 ||
		outline.Length() != int(rec.Frames+399)/400 {
		t.Errorf("Outline = %d channels, %d pixels of %d, %v, want 2 and 400", outline.Channels, outline.Length(),
			outline.PerPixel, err)
	}

	if _, _, err := w.Outline(
		t.Context(), recordings.Owner{ProjectID: w.addProject(t)}, rec.Sid,
	); !errors.Is(err, problem.NotFound) {
		t.Errorf("Outline of another project's recording: %v, want NotFound", err)
	}

	if err := w.Delete(t.Context(), w.project, rec.Sid); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Outline(t.Context(), owner, rec.Sid); !errors.Is(err, problem.NotFound) {
		t.Errorf("Outline of a deleted recording: %v, want NotFound", err)
	}

	if left := w.mediaFiles(t); len(left) != 0 {
		t.Errorf("remaining files: %q, want none", left)
	}
}

// TestOpusIsMeasured shows that Opus has levels and an outline, and that silence in it is absent.
func TestOpusIsMeasured(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "speech.ogg", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Status != recordings.Completed || rec.Levels == nil || rec.Levels.Loudness == nil {
		t.Fatalf("got %s with the levels %+v, want completed with a loudness", rec.Status, rec.Levels)
	}
	got, outline, err := w.Outline(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid)
	if err != nil || outline.Channels != 1 || outline.Length() != int(got.Frames+2399)/2400 {
		t.Errorf("Outline = %d channels, %d pixels of %d, %v, want 1 and 2400", outline.Channels, outline.Length(),
			outline.PerPixel, err)
	}
}

// TestMP3IsMeasured shows that an MP3 has the levels of the WAV from which it was made. In one
// file, lame reduced the levels by 0.45 dB.
func TestMP3IsMeasured(t *testing.T) {
	w := newWorld(t)
	wave, _, err := w.ingest(t, "speech_s16_8k.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}

	for name, lost := range map[string]float64{"speech_cbr32.mp3": 0.45, "speech_vbr_notag.mp3": 0} {
		rec, _, err := w.ingest(t, name, recordings.Description{})
		if err != nil || rec.Status != recordings.Completed || rec.Levels == nil {
			t.Fatalf("%s: %s with the levels %+v, %v, want completed with levels", name, rec.Status, rec.Levels, err)
		}
		got, want := rec.Levels, wave.Levels
		if math.Abs(*got.RMS+lost-*want.RMS) > 0.2 || math.Abs(*got.Loudness+lost-*want.Loudness) > 0.2 ||
			math.Abs(*got.Peak-*want.Peak) > 1 || math.Abs(got.Talk[0]-want.Talk[0]) > 0.3 {
			t.Errorf("%s has RMS %v, %v LUFS, peak %v and talk %v, want about %v, %v, %v and %v", name, *got.RMS,
				*got.Loudness, *got.Peak, got.Talk, *want.RMS, *want.Loudness, *want.Peak, want.Talk)
		}
		if _, outline, err := w.Outline(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid); err != nil ||
			outline.Length() != int(rec.Frames+399)/400 {
			t.Errorf("Outline of %s = %d pixels, %v, want one per 400 frames", name, outline.Length(), err)
		}
	}
}

// TestLengthInTagIsCorrected shows that an MP3 has the length of its frames, even if its tag claims
// fewer. The price depends on the length.
func TestLengthInTagIsCorrected(t *testing.T) {
	file := mp3test.Lying(int(5 * time.Minute / mp3test.FrameLength))
	w := newWorld(t)
	rec, _, err := w.upload(t.Context(), string(file), recordings.Description{})
	if err != nil || rec.Seconds() != 300 || len(rec.Repairs) != 1 {
		t.Errorf("an MP3 of 300 s that claims one frame has %d s, the repairs %q, %v", rec.Seconds(), rec.Repairs, err)
	}
}

// TestOpusDelaysNoOthers shows that WAV uploads do not wait while the maximum number of Opus files
// is being measured, which can take minutes.
func TestOpusDelaysNoOthers(t *testing.T) {
	w := newWorld(t)
	end := w.DecodeAll()
	defer end()
	if rec, _, err := w.ingest(t, "speech_stereo_8k.wav", recordings.Description{}); err != nil || rec.Levels == nil {
		t.Errorf("while Opus is measured, a WAV has the levels %+v, %v, want some", rec.Levels, err)
	}
}

// TestOutlineOfNoAudio shows that a file without audio has neither levels nor an outline.
func TestOutlineOfNoAudio(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "header_only_44.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Outline(
		t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid,
	); rec.Levels != nil || !errors.Is(err, problem.NotAcceptable) {
		t.Errorf("levels %v, Outline: %v, want none and NotAcceptable", rec.Levels, err)
	}
}

func TestSilenceIsAbsent(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "silence.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Status != recordings.Absent || rec.ErrorCode != recordings.NoAudio || rec.Seconds() != 3 ||
		!slices.Equal(rec.Levels.Flags.Names(), []string{"silent"}) {
		t.Errorf("got %s, error %s, %d s, %+v, want absent and silent, 3 s", rec.Status, rec.ErrorCode,
			rec.Seconds(), rec.Levels)
	}
	if got := w.read(t, rec.Sid); int64(len(got)) != rec.Bytes {
		t.Errorf("%d bytes of the silence are stored, of %d", len(got), rec.Bytes)
	}
}

func TestListByFlag(t *testing.T) {
	w := newWorld(t)
	for _, file := range []string{"speech_s16_8k.wav", "silence.wav", "clipped_dc.wav", "canonical_44.wav"} {
		w.now = w.now.Add(time.Second)
		if _, _, err := w.ingest(t, file, recordings.Description{}); err != nil {
			t.Fatal(err)
		}
	}
	for flag, want := range map[levels.Flags]int{0: 4, levels.Silent: 1, levels.Clipped: 1, levels.OneWay: 0} {
		found, err := w.List(t.Context(),
			recordings.Filter{Owner: recordings.Owner{ProjectID: w.project}, Flag: flag}, page.Query{Size: 10})
		if err != nil || len(found.Items) != want {
			t.Errorf("List of flag %v = %d recordings, %v, want %d", flag.Names(), len(found.Items), err, want)
		}
	}
}
