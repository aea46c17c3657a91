// Package wav reads RIFF/WAVE files, and audio without any header: the facts of a
// file, what is in it, where, and how long it lasts, and its sound as 16-bit PCM.
//
// It takes what telephony writes: PCM, float, G.711, GSM 6.10, IMA and MS ADPCM
// in RIFF, RIFX, RF64 and BW64, with chunks in any order, and headers that were
// never finished because the writer streamed or died; and bare G.711, G.722, GSM
// and PCM. What can be read in one way only is repaired, and [Facts] says so;
// everything else is refused. The bytes themselves are left alone.
//
// The sound is a [Source], of any codec: its length is known, and it can be read
// from any place. A [View] makes a file of one that every player reads. Any range
// of a view is that range of the whole.
//
// No input makes it allocate or loop: it reads headers into a fixed buffer, visits
// a bounded number of chunks, and decodes a block at a time. It decides nothing
// about files and imports nothing of selvage.
package wav

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Why a file is refused. The errors of [Parse], [ParseRaw] and [Open] wrap one of
// these and say more, except for those of reading.
var (
	ErrNotWAV = errors.New("not a RIFF/WAVE file")
	ErrCodec  = errors.New("unknown codec")
	ErrBroken = errors.New("broken file")
)

// Facts are what is known of a file.
type Facts struct {
	Format
	Frames  int64    // samples of each channel; 0 means that there is no audio
	Offset  int64    // of the first byte of audio
	Length  int64    // bytes of audio
	Repairs []string // what is wrong and was put right, a sentence each

	common bool // in a header that every player reads
}

// Plain tells whether the file itself is 16-bit PCM as every player reads it, so
// that nothing is gained by converting it.
func (f Facts) Plain() bool { return f.common && f.Codec == "pcm_s16le" && len(f.Repairs) == 0 }

// Duration is the length of the audio, from the frames: a byte rate may lie.
func (f Facts) Duration() time.Duration {
	if f.SampleRate == 0 {
		return 0
	}
	rate := int64(f.SampleRate)
	return time.Duration(f.Frames/rate)*time.Second + time.Duration(f.Frames%rate)*time.Second/time.Duration(rate)
}

// Parse reads the facts of the file of size bytes behind r.
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
	// Where a block holds several frames, fact says how many of the last one are
	// meant; one that would cut more off is wrong.
	if f.Frames-p.fact > 0 && f.Frames-p.fact < int64(f.BlockFrames) && !p.streamed {
		f.Frames = p.fact
	}
	return *f, nil
}

// count turns the bytes of audio into frames.
func (f *Facts) count() {
	if rest := f.Length % int64(f.BlockAlign); rest != 0 && f.inBlock(int(rest)) == 0 {
		f.Length -= rest
		f.repaired("the audio ends in the middle of a frame")
	}
	f.Frames = f.frames(f.Length)
}

// repaired notes something that was put right.
func (f *Facts) repaired(format string, args ...any) {
	f.Repairs = append(f.Repairs, fmt.Sprintf(format, args...))
}

// broken makes an ErrBroken that says more.
func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}
