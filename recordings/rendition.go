package recordings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings/mp3"
	"github.com/selvage/selvage/recordings/wav"
)

// A Wanted says how the media of a recording is to be.
type Wanted struct {
	Format   Format
	Channels int // 1 mixes; 2 asks for two that are there; 0 means as they are
	Leg      int // the one channel wanted, from 1; 0 means all
}

// viewVersion is another one whenever conversion to PCM gives other bytes.
const viewVersion = "1"

// CodeNoChannel is the code where channels are asked for that are not there.
const CodeNoChannel = "16113"

// A Rendition is the media of a recording as it is wanted. It is to be closed.
type Rendition struct {
	Recording Recording
	// Content is the bytes. Where they are a whole file as it came, it is that file
	// (an *os.File), so that the kernel can send it.
	Content io.ReadSeeker
	Whole   bool   // Content is that file
	Encoded bool   // reading Content is work for a processor
	Type    string // of the Content
	Ext     string // by which a file of it is known, dot included
	Tag     string // the same bytes have the same tag, and no others have it
	media   io.Closer
}

// Close lets go of the media.
func (n *Rendition) Close() error { return n.media.Close() }

// Render opens a recording of the owner, as it was within the last 300 ms, as it
// is wanted. What it cannot be turned into is a problem.NotAcceptable.
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
	}()
	n.Type, n.Ext = container(rec.Codec)
	switch {
	case w.Format == Original:
		n.original()
		return n, nil
	case w.Format == MP3 && rec.Codec == "mp3" && w.Leg == 0 && (w.Channels == 0 || w.Channels == rec.Channels):
		return n, nil
	}
	if err := w.check(rec); err != nil {
		return nil, err
	}
	return n, r.convert(ctx, n, w)
}

// check reports channels that are not there.
func (w Wanted) check(rec Recording) error {
	missing := func(what string) error {
		return problem.New(problem.Invalid, CodeNoChannel, "the recording has %s: %s",
			count(rec.Channels, "channel"), what)
	}
	switch {
	case w.Leg > rec.Channels:
		return missing(fmt.Sprintf("there is no channel %d", w.Leg))
	case w.Channels > 1 && w.Channels != rec.Channels:
		return missing(fmt.Sprintf("it cannot be given with %d", w.Channels))
	}
	return nil
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// convert makes the content out of the file that it is. It can be read until ctx is
// done.
func (r *Recordings) convert(ctx context.Context, n *Rendition, w Wanted) error {
	file, ok := n.Content.(io.ReaderAt)
	if !ok {
		return fmt.Errorf("reading media: a %T is not read at random", n.Content)
	}
	rec := n.Recording
	facts, err := r.facts.Load(rec.MediaKey, func() (wav.Facts, error) { return factsOf(rec, file) })
	if err != nil {
		return notConverted(rec, w.Format, err)
	}
	mixed := w.Channels == 1 && rec.Channels > 1 || w.Format == MP3 && w.Leg == 0 &&
		rec.Channels > 2 // of which Layer III knows nothing
	if w.Format == WAV && facts.Plain() && !mixed && (w.Leg == 0 || rec.Channels == 1) {
		n.Type, n.Ext = "audio/x-wav", ".wav"
		return nil
	}
	source, err := r.source(rec, awaited{file, ctx}, facts)
	if err != nil {
		return notConverted(rec, w.Format, err)
	}
	n.Whole = false
	if n.Tag += "-pcm" + viewVersion; mixed {
		source, n.Tag = wav.Mix(source), n.Tag+"-mix"
	} else if w.Leg > 0 && rec.Channels > 1 {
		source, n.Tag = wav.Leg(source, w.Leg), fmt.Sprint(n.Tag, "-leg", w.Leg)
	}
	if w.Format == WAV {
		n.Content, n.Type, n.Ext = wav.NewView(source), "audio/x-wav", ".wav"
		return nil
	}
	stream, err := mp3.New(source)
	if err != nil {
		return notConverted(rec, w.Format, err)
	}
	n.Content, n.Encoded, n.Type, n.Ext, n.Tag = stream, true, "audio/mpeg", ".mp3", n.Tag+"-mp3-"+mp3.Version
	return nil
}

// An awaited file is read for as long as somebody waits for what is made of it: where
// the index of a long one is lost, a byte near its end takes all that is before.
type awaited struct {
	io.ReaderAt
	ctx context.Context
}

// ReadAt is as [io.ReaderAt] says.
func (a awaited) ReadAt(p []byte, off int64) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	return a.ReaderAt.ReadAt(p, off)
}

// source opens the audio of a file, with what was learnt of it as it came in.
func (r *Recordings) source(rec Recording, file io.ReaderAt, facts wav.Facts) (wav.Source, error) {
	return wav.Open(file, facts, func() ([]byte, error) {
		index, err := r.media.ReadPart(rec.MediaKey, indexPart)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return index, err
	})
}

// factsOf reads the facts of a file that was taken in before. Where it has no
// header, the row has them.
func factsOf(rec Recording, file io.ReaderAt) (wav.Facts, error) {
	facts, err := wav.Parse(file, rec.Bytes)
	if errors.Is(err, wav.ErrNotWAV) {
		return wav.Headerless(rec.Codec, rec.SampleRate, rec.Channels, rec.Bytes)
	}
	return facts, err
}

// notConverted says why a file cannot be had in a format.
func notConverted(rec Recording, f Format, err error) error {
	if errors.Is(err, wav.ErrCodec) || errors.Is(err, mp3.ErrSource) {
		_, ext := container(rec.Codec)
		return problem.New(problem.NotAcceptable, "not_acceptable",
			"the recording is kept as it came, as %s, which is not converted to %s; ask for it with .wav?Original=true%s", rec.Codec, f, orSame(ext))
	}
	return fmt.Errorf("converting media of %s: %w", rec.ID, err)
}

// orSame adds that a format is also had by its own name, where it is.
func orSame(ext string) string {
	if ext == "."+string(MP3) {
		return " or .mp3"
	}
	return ""
}

// container returns the type of a file by its codec, and what its name ends in.
func container(codec string) (kind, ext string) {
	switch codec {
	case "mp3":
		return "audio/mpeg", ".mp3"
	case "opus", "vorbis", "speex":
		return "audio/ogg", ".ogg"
	}
	return "audio/x-wav", ".wav"
}

// Can tells whether the media can be had in a format: MP3 and Ogg are not decoded
// here.
func (r Recording) Can(f Format) bool {
	_, ext := container(r.Codec)
	return r.HasMedia() && (f == Original || ext == ".wav" || ext == "."+string(f))
}

// original names what came, if it is audio without a header, as RFC 3551 does.
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
