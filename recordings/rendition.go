package recordings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings/audio"
	"github.com/selvage/selvage/recordings/mp3"
	"github.com/selvage/selvage/recordings/wav"
)

// A Wanted is the form in which a caller wants a recording's media.
type Wanted struct {
	Format   Format
	Channels int // 1 means mixed, 2 requires two channels, 0 means all channels
	Leg      int // the only channel to return, counted from 1; 0 means all
}

// viewVersion must change when the conversion to PCM produces different bytes.
const viewVersion = "1"

// CodeNoChannel is the error code for a request for channels that the recording does not have.
const CodeNoChannel = "16113"

// A Rendition is the media of a recording in the requested form. Callers must close it.
type Rendition struct {
	Recording Recording
	// Content holds the bytes. If Stored is set and the media is in a file on disk, Content is the
	// *os.File, so that the kernel can send it.
	Content io.ReadSeeker
	Whole   bool   // Content is the original file
	Stored  bool   // Content is the stored file itself, which is not encrypted
	Encoded bool   // reading Content takes CPU time
	Type    string // media type of Content
	Ext     string // file name extension with the dot
	Tag     string // entity tag, which is the same only for the same bytes
	media   io.Closer
}

// Close releases the media.
func (n *Rendition) Close() error { return n.media.Close() }

// Render opens one of the owner's recordings in the form w. The row of the recording may be up to
// 300 ms old. If the recording cannot be converted to this form, Render returns
// problem.NotAcceptable.
func (r *Recordings) Render(ctx context.Context, o Owner, sid string, w Wanted) (_ *Rendition, err error) {
	rec, media, err := r.Open(ctx, o, sid)
	if err != nil {
		return nil, err
	}

	n := &Rendition{Recording: rec, Content: media, Whole: true, Tag: rec.SHA256, media: media}
	defer func() {
		if err != nil {
			_ = media.Close()
		}
		_, sealed := media.(interface{ Sealed() bool })
		n.Stored = n.Whole && !sealed
	}()

	// The original and an MP3 with all its channels need no conversion.
	n.Type, n.Ext = container(rec.Codec)
	if w.Format == Original {
		n.original()
		return n, nil
	}
	allChannels := w.Leg == 0 && (w.Channels == 0 || w.Channels == rec.Channels)
	if w.Format == MP3 && rec.Codec == "mp3" && allChannels {
		return n, nil
	}

	if err := w.check(rec); err != nil {
		return nil, err
	}
	return n, r.convert(ctx, n, w)
}

// check returns an error if w asks for channels that the recording does not have.
func (w Wanted) check(rec Recording) error {
	missing := func(what string) error {
		return problem.New(problem.Invalid, CodeNoChannel, "the recording has %s: %s",
			countOf(rec.Channels, "channel"), what)
	}
	switch {
	case w.Leg > rec.Channels:
		return missing(fmt.Sprintf("channel %d does not exist", w.Leg))
	case w.Channels > 1 && w.Channels != rec.Channels:
		return missing(fmt.Sprintf("it cannot be converted to %d", w.Channels))
	}
	return nil
}

func countOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// convert replaces n.Content, which is the original file, with its conversion, unless the original
// already has the wanted form. The conversion can be read until ctx is done.
func (r *Recordings) convert(ctx context.Context, n *Rendition, w Wanted) error {
	file, ok := n.Content.(io.ReaderAt)
	if !ok {
		return fmt.Errorf("reading media: %T does not support random access", n.Content)
	}

	rec := n.Recording
	facts, err := r.facts.Load(rec.MediaKey, func() (wav.Facts, error) { return factsOf(rec, file) })
	if err != nil {
		return notConverted(rec, w.Format, err)
	}

	oneLeg := w.Leg > 0 && rec.Channels > 1
	tooMany := w.Format == MP3 && w.Leg == 0 && rec.Channels > 2 // Layer III has at most two channels
	mixed := tooMany || w.Channels == 1 && rec.Channels > 1
	if w.Format == WAV && facts.Plain() && !mixed && !oneLeg {
		n.Type, n.Ext = "audio/x-wav", ".wav"
		return nil
	}

	source, err := r.source(rec, awaited{file, ctx}, facts)
	if err != nil {
		return notConverted(rec, w.Format, err)
	}
	n.Whole = false
	n.Encoded = audio.IsSlow(facts)
	n.Tag += "-pcm" + viewVersion
	if version := audio.Version(facts.Codec); version != "" {
		n.Tag += "-" + version
	}
	if mixed {
		source = wav.Mix(source)
		n.Tag += "-mix"
	} else if oneLeg {
		source = wav.Leg(source, w.Leg)
		n.Tag += fmt.Sprint("-leg", w.Leg)
	}

	if w.Format == WAV {
		n.Content = wav.NewView(source)
		n.Type, n.Ext = "audio/x-wav", ".wav"
		return nil
	}

	stream, err := mp3.New(source)
	if err != nil {
		return notConverted(rec, w.Format, err)
	}
	n.Content = stream
	n.Encoded = true
	n.Type, n.Ext = "audio/mpeg", ".mp3"
	n.Tag += "-mp3-" + mp3.Version
	return nil
}

// An awaited file can be read until its context is done. Without an index, reading a byte near the
// end of a long file requires decoding everything before it. A disconnected client must not cause
// this work.
type awaited struct {
	io.ReaderAt
	ctx context.Context
}

// ReadAt implements [io.ReaderAt].
func (a awaited) ReadAt(p []byte, off int64) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	return a.ReaderAt.ReadAt(p, off)
}

// source opens the audio of a file with the index that was stored during the upload.
func (r *Recordings) source(rec Recording, file io.ReaderAt, facts wav.Facts) (wav.Source, error) {
	return audio.Open(file, facts, func() ([]byte, error) {
		index, err := r.c.Media.ReadPart(rec.MediaKey, indexPart)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return index, err
	})
}

// factsOf parses the facts of a stored file. If the file has no header, or would take too long to
// parse, the facts come from the row.
func factsOf(rec Recording, file io.ReaderAt) (wav.Facts, error) {
	format := wav.Format{Codec: rec.Codec, SampleRate: rec.SampleRate, Channels: rec.Channels}
	switch rec.Codec {
	case "opus":
		return wav.Facts{Format: format, Frames: rec.Frames, Length: rec.Bytes}, nil
	case "mp3":
		end, err := mp3.End(file, rec.Bytes) // the stored index belongs to a file of this size
		return wav.Facts{Format: format, Frames: rec.Frames, Length: end}, err
	}
	facts, err := wav.Parse(file, rec.Bytes)
	if errors.Is(err, wav.ErrNotWAV) {
		return wav.Headerless(rec.Codec, rec.SampleRate, rec.Channels, rec.Bytes)
	}
	return facts, err
}

// notConverted returns the error for a file that cannot be converted to a format.
func notConverted(rec Recording, f Format, err error) error {
	if errors.Is(err, wav.ErrCodec) || errors.Is(err, mp3.ErrSource) {
		return problem.New(problem.NotAcceptable, "not_acceptable",
			"the recording is stored as %s, which cannot be converted to %s; request it with .wav?Original=true",
			rec.Codec, f)
	}
	return fmt.Errorf("converting media of %s: %w", rec.ID, err)
}

// container returns the media type and file name extension of files with this codec.
func container(codec string) (kind, ext string) {
	switch codec {
	case "mp3":
		return "audio/mpeg", ".mp3"
	case "opus", "vorbis", "speex":
		return "audio/ogg", ".ogg"
	}
	return "audio/x-wav", ".wav"
}

// Can reports whether the media is available in format f. Vorbis and Speex are not decoded, so they
// are available only unchanged. The same applies to Opus with more than two channels.
func (r Recording) Can(f Format) bool {
	_, ext := container(r.Codec)
	decoded := ext == ".wav" || r.Codec == "mp3" || r.Codec == "opus" && r.Channels <= 2
	return r.HasMedia() && (f == Original || decoded || ext == "."+string(f))
}

// original sets the type and extension of audio without a header according to RFC 3551.
func (n *Rendition) original() {
	file, ok := n.Content.(io.ReaderAt)
	if !ok || n.Ext != ".wav" {
		return
	}
	if _, err := wav.Parse(file, n.Recording.Bytes); !errors.Is(err, wav.ErrNotWAV) {
		return
	}

	n.Type, n.Ext = "application/octet-stream", ".raw"
	form := fmt.Sprintf("; rate=%d; channels=%d", n.Recording.SampleRate, n.Recording.Channels)
	switch n.Recording.Codec {
	case "mulaw":
		n.Type, n.Ext = "audio/PCMU"+form, ".ulaw"
	case "alaw":
		n.Type, n.Ext = "audio/PCMA"+form, ".alaw"
	case "g722":
		n.Type, n.Ext = "audio/G722", ".g722"
	case "gsm":
		n.Type, n.Ext = "audio/GSM", ".gsm"
	case "pcm_s16be":
		n.Type = "audio/L16" + form
	case "pcm_s24be":
		n.Type = "audio/L24" + form
	}
}
