// Package wav reads RIFF/WAVE files and audio without a header. It finds the facts of a file, such
// as its codec, where the audio is and how long it lasts, and converts the audio to 16-bit PCM.
//
// It supports what telephone systems write: PCM, float, G.711, GSM 6.10, IMA and MS ADPCM in RIFF,
// RIFX, RF64 and BW64, and bare G.711, G.722, GSM and PCM. Chunks may come in any order. Headers
// may be unfinished because the writer streamed or died. A fault with only one possible meaning is
// repaired, and [Facts] lists the repair; other faulty files are rejected. The bytes themselves
// are never changed.
//
// A [Source] is the audio of any codec: its length is known, and it can be read from any position.
// A [View] turns a Source into a file that every player reads. Reading any range of a view returns
// the same bytes as reading the whole.
//
// No input can cause large allocations or endless loops. Headers are read into a fixed buffer, the
// number of chunks is bounded, and audio is decoded one block at a time. The package makes no
// policy decisions and imports nothing else of selvage.
package wav

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// The reasons to reject a file. Unless reading fails, the errors of [Parse], [ParseRaw] and [Open]
// wrap one of them with details.
var (
	ErrNotWAV = errors.New("not a RIFF/WAVE file")
	ErrCodec  = errors.New("unknown codec")
	ErrBroken = errors.New("broken file")
)

// Facts describe the audio of a file.
type Facts struct {
	Format
	Frames  int64    // samples per channel; 0 means no audio
	Offset  int64    // position of the first byte of audio
	Length  int64    // bytes of audio
	Repairs []string // faults that were repaired, one sentence each

	common bool // the header is one that every player reads
}

// Plain reports whether the file already is 16-bit PCM that every player reads, and needs no
// conversion.
func (f Facts) Plain() bool { return f.common && f.Codec == "pcm_s16le" && len(f.Repairs) == 0 }

// Duration returns the length of the audio. It is computed from the frames, since the byte rate in
// the header may be wrong.
func (f Facts) Duration() time.Duration {
	if f.SampleRate == 0 {
		return 0
	}
	rate := int64(f.SampleRate)
	return time.Duration(f.Frames/rate)*time.Second + time.Duration(f.Frames%rate)*time.Second/time.Duration(rate)
}

// Parse reads the facts of a file of the given size.
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
	// If a block holds several frames, the fact chunk limits the frames of the last block. A fact
	// that would remove more than that is wrong.
	if f.Frames-p.fact > 0 && f.Frames-p.fact < int64(f.BlockFrames) && !p.streamed {
		f.Frames = p.fact
	}
	return *f, nil
}

// count computes the frames from the bytes of audio.
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
