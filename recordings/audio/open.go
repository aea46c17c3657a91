package audio

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/selvage/selvage/recordings/mp3"
	"github.com/selvage/selvage/recordings/opus"
	"github.com/selvage/selvage/recordings/wav"
)

// A Source is the audio of a file.
type Source interface {
	wav.Source
	// Index returns an index that makes reading from the middle fast after a later [Open] of the
	// same file. Call it after reading the audio from start to end. It has at most 600 KB, and is
	// nil if it would not help.
	Index() []byte
}

// Open returns the audio in a file whose facts are f. If the audio cannot be converted, the error
// is [wav.ErrCodec].
//
// index returns the result of Index for the same file, and may be nil. Open calls it only for
// codecs that benefit from an index.
func Open(r io.ReaderAt, f wav.Facts, index func() ([]byte, error)) (Source, error) {
	switch f.Codec {
	case "mp3":
		s, err := mp3.Open(r, f.Offset+f.Length, index)
		if errors.Is(err, mp3.ErrSparse) {
			return nil, fmt.Errorf("%w: %w", wav.ErrCodec, err)
		}
		return s, err
	case "opus":
		s, err := opus.Open(r, f.Length, index)
		if errors.Is(err, opus.ErrChannels) {
			return nil, fmt.Errorf("%w: %w", wav.ErrCodec, err)
		}
		return s, err
	}
	return wav.Open(r, f, index)
}

// Version returns a name for the decoder of a codec. It changes when the same file is decoded to
// different samples. It is empty for codecs whose samples are specified exactly.
func Version(codec string) string {
	switch codec {
	case "mp3":
		return "mp3" + mp3.DecoderVersion
	case "opus":
		return "opus" + opus.Version + runtime.GOARCH // its floating-point sums depend on the architecture
	}
	return ""
}

// IsSlow reports whether decoding the audio takes much more CPU time than reading it.
func IsSlow(f wav.Facts) bool { return f.Codec == "mp3" || f.Codec == "opus" }
