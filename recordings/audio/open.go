package audio

import (
	"errors"
	"fmt"
	"io"

	"github.com/selvage/selvage/recordings/opus"
	"github.com/selvage/selvage/recordings/wav"
)

// A Source is the audio of a file.
type Source interface {
	wav.Source
	// Index returns an index that makes reading from the middle fast after a later [Open] of the same
	// file. Call it after reading the audio from start to end. It has at most 600 KB, and is nil if it
	// would not help.
	Index() []byte
}

// Open returns the audio in a file whose facts are f. If the audio cannot be converted, the error is
// [wav.ErrCodec].
//
// index returns the result of Index for the same file. Open calls it only for codecs that benefit from
// an index. It is nil if there is no index.
func Open(r io.ReaderAt, f wav.Facts, index func() ([]byte, error)) (Source, error) {
	if f.Codec != "opus" {
		return wav.Open(r, f, index)
	}
	s, err := opus.Open(r, f.Length, index)
	if errors.Is(err, opus.ErrChannels) {
		return nil, fmt.Errorf("%w: %w", wav.ErrCodec, err)
	}
	return s, err
}

// IsSlow reports whether decoding the audio takes much more CPU time than reading it.
func IsSlow(f wav.Facts) bool { return f.Codec == "opus" }
