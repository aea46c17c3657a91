// Package wav reads the facts of a RIFF/WAVE file: what is in it, where, and
// how long it lasts.
//
// It takes what telephony writes: PCM, float, G.711, GSM 6.10, IMA and MS ADPCM
// in RIFF, RIFX, RF64 and BW64, with chunks in any order, and headers that were
// never finished because the writer streamed or died. What can be read in one
// way only is repaired, and [Facts] says so; everything else is refused. The
// bytes themselves are left alone.
//
// No input makes it allocate or loop: it reads headers into a fixed buffer and
// visits a bounded number of chunks. It decides nothing about files and imports
// nothing of selvage.
package wav

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Why a file is refused. The errors of [Parse] wrap one of these and say more,
// except for those of reading.
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
}

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
	p.count()
	return p.facts, nil
}

// count turns the bytes of audio into frames.
func (p *parser) count() {
	f := &p.facts
	if f.BlockFrames == 1 {
		if rest := f.Length % int64(f.BlockAlign); rest != 0 {
			f.Length -= rest
			p.repaired("the audio ends in the middle of a frame")
		}
	}
	f.Frames = f.frames(f.Length)
	// Only where a block holds several frames does fact say how many are meant.
	if f.BlockFrames > 1 && p.fact > 0 && p.fact < f.Frames && !p.streamed {
		f.Frames = p.fact
	}
}

// repaired notes something that was put right.
func (p *parser) repaired(format string, args ...any) {
	p.facts.Repairs = append(p.facts.Repairs, fmt.Sprintf(format, args...))
}

// broken makes an ErrBroken that says more.
func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}
