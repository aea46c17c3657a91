// Package audio recognizes audio files. It is the only package that knows all formats in which
// recordings arrive.
//
// The first bytes of a file decide, whatever its name. Package wav reads WAV; this package reads
// the facts of MP3 and Ogg, which are stored but never decoded. The name or Content-Type of a file
// matters only if its bytes show no format, as with bare mu-law.
//
// Only a small part of a file is in memory at a time, and no more is read than the file has.
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

// ErrUnknown is the error for a file that is not audio, or audio in an unknown format.
var ErrUnknown = errors.New("not WAV, MP3 or Ogg, and neither the name nor the Content-Type identifies the codec")

// Parse returns the facts of a file of the given size. Hints are the sender's names for it, the
// best first: each a name, a path or a Content-Type. The error for a rejected file is an
// [ErrUnknown], a [wav.ErrCodec] or a [wav.ErrBroken].
func Parse(r io.ReaderAt, size int64, hints ...string) (wav.Facts, error) {
	f, err := wav.Parse(r, size)
	if !errors.Is(err, wav.ErrNotWAV) {
		return f, err
	}
	if f, ok, err := parseOgg(r, size); ok || err != nil {
		return f, err
	}

	// Without a header, the bytes may still be those of another format than the hints claim.
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

// rawHint returns the first hint that names a codec, either a Content-Type or the extension of a
// name.
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

// others lists the first bytes of formats that are not accepted.
var others = []struct{ start, name string }{
	{"fLaC", "FLAC"}, {"#!AMR", "AMR"}, {"FORM", "AIFF"}, {".snd", "AU"}, {"caff", "CAF"}, {"\x1aE\xdf\xa3", "WebM"},
	{"ID3", "MP3 without frames"}, {"RIFF", "another kind of RIFF"}, {"PK\x03\x04", "ZIP"}, {"\x1f\x8b", "gzip"},
}

// looksLike returns the name of the unaccepted format of a file, or "" if it is not recognized.
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

// opening matches the beginning of an HTML page or a JSON message. Quiet mu-law may begin with one
// of these characters, but does not continue like this.
var opening = regexp.MustCompile(`^\s*(<[!?a-zA-Z]|\{\s*["}]|\[\s*["{\]])`)

// isText reports whether the bytes are a page or a message, such as a proxy's, and not audio.
func isText(b []byte) bool {
	if !opening.Match(b) {
		return false
	}
	whole := b[:max(0, len(b)-utf8.UTFMax)] // the last character may be cut
	binary := func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }
	return utf8.Valid(whole) && !bytes.ContainsFunc(whole, binary)
}
