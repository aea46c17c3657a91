package recordings_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/mp3/mp3test"
)

// TestRenditionMixes shows that an MP3 of a recording with more than two channels contains the same
// mix that clients can request.
func TestRenditionMixes(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "four_channels.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}

	render := func(wanted recordings.Wanted) (tag, content string) {
		t.Helper()
		rendition, err := w.Render(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid, wanted)
		if err != nil {
			t.Fatal(err)
		}
		defer rendition.Close()
		bytes, err := io.ReadAll(rendition.Content)
		if err != nil {
			t.Fatal(err)
		}
		return rendition.Tag, string(bytes)
	}

	mixTag, mix := render(recordings.Wanted{Format: recordings.MP3, Channels: 1})
	if mix == "" {
		t.Error("the mix is empty")
	}
	tag, content := render(recordings.Wanted{Format: recordings.MP3})
	if tag != mixTag {
		t.Errorf("the MP3 of four channels has the tag %s, want the tag of their mix, %s", tag, mixTag)
	}
	if content != mix {
		t.Errorf("the MP3 of four channels (%d bytes) differs from their mix (%d bytes)", len(content), len(mix))
	}

	legTag, leg := render(recordings.Wanted{Format: recordings.MP3, Leg: 3})
	if legTag == mixTag {
		t.Errorf("the third channel has the tag of the mix, %s, want a tag of its own", legTag)
	}
	if leg == mix {
		t.Error("the third channel equals the mix")
	}
}

// A partMedia counts how many times parts are read.
type partMedia struct {
	recordings.Media
	reads int
}

func (m *partMedia) ReadPart(key, part string) ([]byte, error) {
	m.reads++
	return m.Media.ReadPart(key, part)
}

// TestRenditionReadsTheIndex shows that the index is read only for codecs that have one.
func TestRenditionReadsTheIndex(t *testing.T) {
	var media *partMedia
	w := newWorld(t, func(c *recordings.Config) {
		media = &partMedia{Media: c.Media}
		c.Media = media
	})

	for file, want := range map[string]int{"speech_s16_8k.wav": 0, "speech_alaw_8k.wav": 0, "speech_wav49.WAV": 1} {
		rec, _, err := w.ingest(t, file, recordings.Description{})
		if err != nil {
			t.Fatal(err)
		}
		media.reads = 0
		rendition, err := w.Render(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid,
			recordings.Wanted{Format: recordings.MP3})
		if err != nil {
			t.Fatal(err)
		}
		_ = rendition.Close()
		if media.reads != want {
			t.Errorf("%s as MP3: %d parts were read, want %d", file, media.reads, want)
		}
	}
}

// TestRenditionEndsWithItsRequest shows that conversion stops when the client disconnects. Without
// an index, reading the end of a recording would decode everything before it.
func TestRenditionEndsWithItsRequest(t *testing.T) {
	for _, format := range []recordings.Format{recordings.WAV, recordings.MP3} {
		w := newWorld(t)
		rec, _, err := w.ingest(t, "speech_wav49.WAV", recordings.Description{})
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		media, err := w.Render(ctx, recordings.Owner{ProjectID: w.project}, rec.Sid,
			recordings.Wanted{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = media.Close() })

		cancel()
		if _, err := media.Content.Seek(-1, io.SeekEnd); err != nil {
			t.Fatal(err)
		}
		if n, err := io.ReadFull(media.Content, make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: reading the end after the client left = %d, %v, want %v", format, n, err, context.Canceled)
		}
	}
}

// TestRenditionOfTaggedMP3 shows that a tag after the frames of a short MP3 does not prevent its
// conversion.
func TestRenditionOfTaggedMP3(t *testing.T) {
	w := newWorld(t)
	const frames = 2 * 576
	file := string(mp3test.Lying(2)) + "TAG" + strings.Repeat("\x00", 125)
	rec, _, err := w.upload(t.Context(), file, recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Frames != frames {
		t.Errorf("the recording has %d frames, want %d", rec.Frames, frames)
	}

	rendition, err := w.Render(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid,
		recordings.Wanted{Format: recordings.WAV})
	if err != nil {
		t.Fatal(err)
	}
	defer rendition.Close()
	content, err := io.ReadAll(rendition.Content)
	if err != nil || len(content) != 44+2*frames {
		t.Errorf("the WAV has %d bytes, %v, want %d", len(content), err, 44+2*frames)
	}
}
