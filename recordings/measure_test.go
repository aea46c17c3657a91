package recordings_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	if diff := cmp.Diff(rec.Levels, found.Levels); diff != "" {
		t.Errorf("the stored levels differ from those of the upload (-upload +stored):\n%s", diff)
	}
	measured := found.Levels
	if measured == nil || measured.Peak == nil || len(measured.Talk) != 2 {
		t.Fatalf("levels %+v, want a peak and the talk time of two legs", measured)
	}
	if *measured.Peak != -3.23 {
		t.Errorf("peak %v, want -3.23", *measured.Peak)
	}
	if measured.Talk[0] <= measured.Talk[1] {
		t.Errorf("talk times %v, want the first leg to talk more", measured.Talk)
	}
}

func TestOutline(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "speech_stereo_8k.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	outline := w.outline(t, rec.Sid)
	if outline.Channels != 2 || outline.PerPixel != 400 {
		t.Errorf("%d channels with %d frames per pixel, want 2 with 400", outline.Channels, outline.PerPixel)
	}
	if want := int(rec.Frames+399) / 400; outline.Length() != want {
		t.Errorf("%d pixels, want %d", outline.Length(), want)
	}

	stranger := recordings.Owner{ProjectID: w.addProject(t)}
	if _, _, err := w.Outline(t.Context(), stranger, rec.Sid); !errors.Is(err, problem.NotFound) {
		t.Errorf("Outline of another project's recording: %v, want NotFound", err)
	}

	if err := w.Delete(t.Context(), w.project, rec.Sid); err != nil {
		t.Fatal(err)
	}
	owner := recordings.Owner{ProjectID: w.project}
	if _, _, err := w.Outline(t.Context(), owner, rec.Sid); !errors.Is(err, problem.NotFound) {
		t.Errorf("Outline of a deleted recording: %v, want NotFound", err)
	}
	if left := w.mediaFiles(t); len(left) != 0 {
		t.Errorf("remaining files: %q, want none", left)
	}
}

// outline returns the outline of a recording of the project.
func (w *world) outline(t *testing.T, sid string) levels.Outline {
	t.Helper()
	rec, outline, err := w.Outline(t.Context(), recordings.Owner{ProjectID: w.project}, sid)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Sid != sid {
		t.Errorf("Outline of %s returns the recording %s", sid, rec.Sid)
	}
	return outline
}

// TestOpusIsMeasured shows that Opus has levels and an outline.
func TestOpusIsMeasured(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "speech.ogg", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Status != recordings.Completed || rec.Levels == nil || rec.Levels.Loudness == nil {
		t.Fatalf("got %s with the levels %+v, want completed with a loudness", rec.Status, rec.Levels)
	}
	outline := w.outline(t, rec.Sid)
	if outline.Channels != 1 {
		t.Errorf("the outline has %d channels, want 1", outline.Channels)
	}
	if want := int(rec.Frames+2399) / 2400; outline.Length() != want {
		t.Errorf("the outline has %d pixels, want %d", outline.Length(), want)
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
		if err != nil {
			t.Fatal(err)
		}
		if rec.Status != recordings.Completed || rec.Levels == nil {
			t.Fatalf("%s: %s with the levels %+v, want completed with levels", name, rec.Status, rec.Levels)
		}
		mp3, wav := rec.Levels, wave.Levels
		for _, level := range []struct {
			name                 string
			got, want, tolerance float64
		}{
			{"RMS", *mp3.RMS, *wav.RMS - lost, 0.2},
			{"loudness", *mp3.Loudness, *wav.Loudness - lost, 0.2},
			{"peak", *mp3.Peak, *wav.Peak, 1},
			{"talk time", mp3.Talk[0], wav.Talk[0], 0.3},
		} {
			if math.Abs(level.got-level.want) > level.tolerance {
				t.Errorf("%s: %s %v, want %v ± %v", name, level.name, level.got, level.want, level.tolerance)
			}
		}
		if got, want := w.outline(t, rec.Sid).Length(), int(rec.Frames+399)/400; got != want {
			t.Errorf("%s: the outline has %d pixels, want %d", name, got, want)
		}
	}
}

// TestLengthInTagIsCorrected shows that the length of an MP3 is computed from its frames, even if its
// tag contains a smaller number of frames. The price depends on the length.
func TestLengthInTagIsCorrected(t *testing.T) {
	file := mp3test.Lying(int(5 * time.Minute / mp3test.FrameLength))
	w := newWorld(t)
	rec, _, err := w.upload(t.Context(), string(file), recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Seconds() != 300 {
		t.Errorf("an MP3 that claims one frame has %d s, want 300", rec.Seconds())
	}
	if len(rec.Repairs) != 1 {
		t.Errorf("repairs %q, want one", rec.Repairs)
	}
}

// TestOpusDelaysNoOthers shows that WAV uploads do not wait while the maximum number of Opus files
// is being measured, which can take minutes.
func TestOpusDelaysNoOthers(t *testing.T) {
	w := newWorld(t)
	end := w.DecodeAll()
	defer end()
	rec, _, err := w.ingest(t, "speech_stereo_8k.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Levels == nil {
		t.Error("while Opus is measured, a WAV has no levels, want levels")
	}
}

// TestOutlineOfNoAudio shows that a file without audio has neither levels nor an outline.
func TestOutlineOfNoAudio(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "header_only_44.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Levels != nil {
		t.Errorf("levels %+v, want none", rec.Levels)
	}
	owner := recordings.Owner{ProjectID: w.project}
	if _, _, err := w.Outline(t.Context(), owner, rec.Sid); !errors.Is(err, problem.NotAcceptable) {
		t.Errorf("Outline: %v, want NotAcceptable", err)
	}
}

func TestSilenceIsAbsent(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "silence.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Status != recordings.Absent || rec.ErrorCode != recordings.NoAudio {
		t.Errorf("status %s with the error %s, want absent and no audio", rec.Status, rec.ErrorCode)
	}
	if rec.Seconds() != 3 {
		t.Errorf("%d s, want 3", rec.Seconds())
	}
	if flags := rec.Levels.Flags.Names(); !slices.Equal(flags, []string{"silent"}) {
		t.Errorf("flags %q, want only silent", flags)
	}
	if got := w.read(t, rec.Sid); int64(len(got)) != rec.Bytes {
		t.Errorf("%d bytes of the silence are stored, want %d", len(got), rec.Bytes)
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
		if got := len(w.list(t, recordings.Filter{Flag: flag})); got != want {
			t.Errorf("%d recordings have the flag %v, want %d", got, flag.Names(), want)
		}
	}
}
