// Package audio recognizes audio files. It is the only package that knows all formats of uploads.
//
// A file is recognized by its first bytes, no matter what its name is. Packages wav, mp3 and opus
// read the formats that can be decoded. This package reads the facts of other Ogg files, which are
// stored but never decoded. The name or Content-Type of a file is only used if its bytes identify
// no format, as with headerless mu-law.
//
// Only a small part of a file is in memory at a time. In total, the package reads little more than
// the whole file once.
package audio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/selvage/selvage/recordings/mp3"
	"github.com/selvage/selvage/recordings/wav"
)

// ErrUnknown is the error for a file that is not audio, or audio in an unknown format.
var ErrUnknown = errors.New("not WAV, MP3 or Ogg, and neither the name nor the Content-Type identifies the codec")

// Parse returns the facts of a file with the given size. hints are the sender's names for the file,
// the best first. Each hint is a name, a path or a Content-Type. If Parse rejects the file, the
// error is [ErrUnknown], [wav.ErrCodec] or [wav.ErrBroken].
func Parse(r io.ReaderAt, size int64, hints ...string) (wav.Facts, error) {
	f, err := wav.Parse(r, size)
	if !errors.Is(err, wav.ErrNotWAV) {
		return f, err
	}
	if f, ok, err := parseOgg(r, size); ok || err != nil {
		return f, err
	}

	// A file may be an MP3 even if the hints name a codec of headerless audio.
	raw := rawHint(hints)
	if f, ok, err := parseMP3(r, size, raw == ""); ok || err != nil {
		return f, err
	}

	other, err := looksLike(r)
	if err != nil {
		return wav.Facts{}, err
	}
	if other != "" {
		return wav.Facts{}, fmt.Errorf("%w; it looks like %s", ErrUnknown, other)
	}
	if raw == "" {
		return wav.Facts{}, ErrUnknown
	}
	return wav.ParseRaw(raw, r, size)
}

// parseMP3 returns the facts of an MP3. If the file is not an MP3, ok is false.
func parseMP3(r io.ReaderAt, size int64, search bool) (f wav.Facts, ok bool, err error) {
	found, ok, err := mp3.Scan(r, size, search)
	if err != nil || !ok {
		return wav.Facts{}, ok, err
	}

	f.Codec = "mp3"
	f.SampleRate = found.Rate
	f.Channels = found.Channels
	f.Offset = found.Offset
	f.Length = found.Length
	f.Frames = found.Frames
	if found.Claimed > 0 {
		repair := fmt.Sprintf("the file claims %d samples for each channel, but has %d", found.Claimed, found.Frames)
		f.Repairs = append(f.Repairs, repair)
	}
	if found.Junk > 0 {
		repair := fmt.Sprintf("%d bytes between the frames are not MP3", found.Junk)
		f.Repairs = append(f.Repairs, repair)
	}
	return f, true, nil
}

// rawHint returns the first hint that names a codec. The hint is either a Content-Type or the
// extension of a name.
func rawHint(hints []string) string {
	for _, hint := range hints {
		for _, kind := range []string{hint, path.Ext(strings.ReplaceAll(hint, `\`, "/"))} {
			if wav.IsRaw(kind) {
				return kind
			}
		}
	}
	return ""
}

// IsName reports whether a file name has the extension of an accepted format.
func IsName(name string) bool {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".wav", ".mp3", ".ogg", ".oga", ".opus", ".spx":
		return true
	default:
		return ext != "" && wav.IsRaw(ext)
	}
}

// others lists the first bytes of formats that are recognized but not accepted.
var others = []struct{ start, name string }{
	{"fLaC", "FLAC"},
	{"#!AMR", "AMR"},
	{"FORM", "AIFF"},
	{".snd", "AU"},
	{"caff", "CAF"},
	{"\x1aE\xdf\xa3", "WebM"},
	{"ID3", "MP3 without frames"},
	{"RIFF", "another kind of RIFF"},
	{"PK\x03\x04", "ZIP"},
	{"\x1f\x8b", "gzip"},
}

// looksLike returns the name of a file's format if the format is not accepted. If the format is
// unknown, it returns "".
func looksLike(r io.ReaderAt) (string, error) {
	var head [512]byte
	n, err := r.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading header: %w", err)
	}

	b := head[:n]
	for _, other := range others {
		if bytes.HasPrefix(b, []byte(other.start)) {
			return other.name, nil
		}
	}

	switch {
	case n > 8 && string(b[4:8]) == "ftyp":
		return "MP4", nil
	case isText(b):
		return "text", nil
	}
	return "", nil
}

// opening matches the beginning of an HTML page or a JSON message. Quiet mu-law audio may begin
// with one of these characters, but does not continue in this way.
var opening = regexp.MustCompile(`^\s*(<[!?a-zA-Z]|\{\s*["}]|\[\s*["{\]])`)

// isText reports whether the bytes are text instead of audio. The text may be a page or a message,
// such as a proxy's error.
func isText(b []byte) bool {
	if !opening.Match(b) {
		return false
	}
	whole := b[:max(0, len(b)-utf8.UTFMax)] // the last character may be incomplete
	binary := func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }
	return utf8.Valid(whole) && !bytes.ContainsFunc(whole, binary)
}
