// Package wav reads RIFF/WAVE files and audio without a header. It determines the facts of a file,
// such as the codec, and the position and length of the audio. It also converts the audio to 16-bit
// PCM.
//
// It supports the formats that telephone systems write: PCM, float, G.711, GSM 6.10, IMA and MS
// ADPCM in RIFF, RIFX, RF64 and BW64, and headerless G.711, G.722, GSM and PCM. Additional chunks
// may come anywhere. Headers may be unfinished because the writer streamed or crashed. A fault that
// has only one possible meaning is repaired, and [Facts] lists the repair. Other faulty files are
// rejected. The bytes in the file are never changed.
//
// A [Source] is the audio of any codec. Its length is known, and it can be read from any position.
// A [View] turns a Source into a file that every player can read. Reading any range of a view
// returns the same bytes as reading the whole view.
//
// No input can cause large allocations or endless loops. Headers are read into a fixed buffer, the
// number of chunks is limited, and audio is decoded one block at a time. The package makes no
// policy decisions and imports no other package of selvage.
package wav

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// The errors for rejected files. Unless reading fails, the errors of [Parse], [ParseRaw] and [Open]
// wrap one of them with details.
var (
	ErrNotWAV = errors.New("not a RIFF/WAVE file")
	ErrCodec  = errors.New("unknown codec")
	ErrBroken = errors.New("broken file")
)

// Facts describes the audio in a file.
type Facts struct {
	Format
	Frames  int64    // samples per channel; 0 without audio
	Offset  int64    // position of the first byte of audio
	Length  int64    // number of bytes of audio
	Repairs []string // repaired faults, one sentence each

	common bool // every player can read the header
}

// Plain reports whether the file is already 16-bit PCM that every player can read, so that it needs
// no conversion.
func (f Facts) Plain() bool { return f.common && f.Codec == "pcm_s16le" && len(f.Repairs) == 0 }

// Duration returns the length of the audio. It is computed from the number of frames, because the
// byte rate in the header may be wrong.
func (f Facts) Duration() time.Duration {
	if f.SampleRate == 0 {
		return 0
	}
	rate := int64(f.SampleRate)
	return time.Duration(f.Frames/rate)*time.Second + time.Duration(f.Frames%rate)*time.Second/time.Duration(rate)
}

// Parse returns the facts of a file of the given size.
func Parse(r io.ReaderAt, size int64) (Facts, error) {
	p := parser{r: r, size: size}
	if err := p.header(); err != nil {
		return Facts{}, err
	}
	if err := p.beforeData(); err != nil {
		return Facts{}, err
	}
	if err := p.data(); err != nil {
		return Facts{}, err
	}

	f := &p.facts
	f.common = p.common
	f.count()
	// If a block contains several frames, the fact chunk says how many of the last block's frames
	// are audio. A fact chunk that would remove a whole block is wrong and ignored.
	if f.Frames-p.fact > 0 && f.Frames-p.fact < int64(f.BlockFrames) && !p.streamed {
		f.Frames = p.fact
	}
	return *f, nil
}

// count computes the number of frames from the number of bytes.
func (f *Facts) count() {
	if rest := f.Length % int64(f.BlockAlign); rest != 0 && f.inBlock(int(rest)) == 0 {
		f.Length -= rest
		f.repaired("the audio ends in the middle of a frame")
	}
	f.Frames = f.frames(f.Length)
}

// repaired records a repair.
func (f *Facts) repaired(format string, args ...any) {
	f.Repairs = append(f.Repairs, fmt.Sprintf(format, args...))
}

// broken returns an ErrBroken with details.
func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}
