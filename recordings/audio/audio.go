// Package audio finds out what a file of audio is: the one place that knows all
// formats in which recordings come.
//
// What a file begins with decides, whatever it is called. WAV is read by package
// wav; of MP3 and Ogg the facts are read here, since they are kept as they came.
// Only where the bytes say nothing, as those of bare mu-law do not, its name or
// its Content-Type is believed.
//
// Nothing here holds more than a small part of a file, and what it reads of one
// is at most its size.
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

	"github.com/selvage/selvage/recordings/wav"
)

// ErrUnknown is that of a file which is no audio, or none that can be told.
var ErrUnknown = errors.New("not WAV, MP3 or Ogg, nor audio whose name or Content-Type tells its codec")

// Parse returns the facts of the file of size bytes behind r. Hints are what its
// sender calls it, a name, a path or a Content-Type each, the best one first. A
// file that is refused is an [ErrUnknown], a [wav.ErrCodec] or a [wav.ErrBroken].
func Parse(r io.ReaderAt, size int64, hints ...string) (wav.Facts, error) {
	f, err := wav.Parse(r, size)
	if !errors.Is(err, wav.ErrNotWAV) {
		return f, err
	}
	if f, ok, err := parseOgg(r, size); ok || err != nil {
		return f, err
	}
	raw := rawHint(hints)
	if f, ok, err := parseMP3(r, size, raw == ""); ok || err != nil {
		return f, err
	}
	other, err := looksLike(r)
	switch {
	case err != nil:
		return wav.Facts{}, err
	case other != "":
		return wav.Facts{}, fmt.Errorf("%w; it looks like %s", ErrUnknown, other)
	case raw == "":
		return wav.Facts{}, ErrUnknown
	}
	return wav.ParseRaw(raw, r, size)
}

// rawHint returns the first hint that names a codec: a Content-Type, or the
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

// IsName tells whether a file is called as one with audio that is taken.
func IsName(name string) bool {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".wav", ".mp3", ".ogg", ".oga", ".opus", ".spx":
		return true
	default:
		return ext != "" && wav.IsRaw(ext)
	}
}

// others are formats that are not taken, by how they begin.
var others = []struct{ start, name string }{
	{"fLaC", "FLAC"}, {"#!AMR", "AMR"}, {"FORM", "AIFF"}, {".snd", "AU"}, {"caff", "CAF"}, {"\x1aE\xdf\xa3", "WebM"},
	{"ID3", "MP3 without frames"}, {"RIFF", "another kind of RIFF"}, {"PK\x03\x04", "ZIP"}, {"\x1f\x8b", "gzip"},
}

// looksLike names the format of a file that is not taken, or gives "".
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

// opening is how a page or a message of JSON begins. Quiet mu-law may begin with one
// of these characters, but does not go on like this.
var opening = regexp.MustCompile(`^\s*(<[!?a-zA-Z]|\{\s*["}]|\[\s*["{\]])`)

// isText tells a page or a message, such as a proxy's, from audio.
func isText(b []byte) bool {
	if !opening.Match(b) {
		return false
	}
	whole := b[:max(0, len(b)-utf8.UTFMax)] // the last character may be cut
	binary := func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }
	return utf8.Valid(whole) && !bytes.ContainsFunc(whole, binary)
}
