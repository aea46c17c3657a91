package mp3

import (
	"errors"
	"fmt"
	"io"
)

// DecoderVersion is the version of the decoder. Change it whenever the decoder returns different
// samples for the same file.
const DecoderVersion = "1"

// Errors for files that cannot be decoded.
var (
	ErrNotMP3 = errors.New("not an MP3")
	ErrSparse = errors.New("an MP3 with hardly any frames in it")
)

const (
	// segmentFrames is the number of frames that one decoder decodes.
	segmentFrames = 512
	// preroll is the number of frames before a segment at which its decoder starts. The bits of a
	// frame may begin this many frames earlier, and its samples depend on the samples of the
	// previous frame.
	preroll = 32
)

// A File is the audio of an MP3 file, and a [Source]. It is not safe for concurrent use.
//
// Decoding a frame depends on earlier frames. The audio is therefore divided into segments. Each
// segment has its own decoder, which starts some frames before the segment. Therefore, the samples
// never depend on earlier reads.
//
// Positions count samples per channel, including samples that are not played.
type File struct {
	scan   *scanner
	index  *index
	skip   int64 // samples at the start that are not played
	frames int64 // samples that are played

	segment   int64 // number of the segment that is being decoded, or -1
	walker    *walker
	decoder   *decoder
	samples   []int16 // samples of the current frame, interleaved
	samplesAt int64   // position of the first sample in samples
}

var _ Source = (*File)(nil)

// Open returns the audio of a file whose frames end at position end, which is Offset + Length of
// its [Facts]. The audio has exactly the frames that [Scan] counted. index returns the result of
// [File.Index] for the same file, or nil. Open ignores a damaged index. Without an index, it reads
// the whole file.
func Open(r io.ReaderAt, end int64, index func() ([]byte, error)) (*File, error) {
	m := newScanner(r, end)
	ok := m.begin(true)
	if m.err != nil {
		return nil, m.err
	}
	if !ok {
		return nil, ErrNotMP3
	}

	f := &File{scan: m, segment: -1}
	if index != nil {
		b, err := index()
		if err != nil {
			return nil, fmt.Errorf("reading index: %w", err)
		}
		f.index = parseIndex(b, m.size)
	}
	if f.index == nil {
		x, err := newIndex(m)
		if err != nil {
			return nil, err
		}
		f.index = x
	}

	if m.tag.delay > 0 || m.tag.padding > 0 {
		f.skip = m.tag.delay + decoderDelay
	}
	f.frames = m.played(f.index.frames)
	return f, nil
}

// Rate returns the sample rate.
func (f *File) Rate() int { return f.scan.first.rate }

// Channels returns the number of channels, which is 1 or 2.
func (f *File) Channels() int { return f.scan.first.channels }

// Frames returns the number of samples of each channel.
func (f *File) Frames() int64 { return f.frames }

// Index returns the positions of the segments in the file, for a later [Open]. The result is at most
// about 512 KiB long.
func (f *File) Index() []byte { return f.index.marshal(f.scan.size) }

// ReadFrames implements [Source].
func (f *File) ReadFrames(dst []int16, at int64) (n int, err error) {
	if at < 0 {
		return 0, errors.New("reading audio: negative position")
	}
	channels := f.Channels()
	for n*channels < len(dst) {
		frame := at + int64(n)
		if frame >= f.frames {
			return n, io.EOF
		}
		have, err := f.decoded(frame + f.skip)
		if err != nil {
			return n, fmt.Errorf("reading audio: %w", err)
		}
		have = have[:min(int64(len(have)), (f.frames-frame)*int64(channels))]
		n += copy(dst[n*channels:], have) / channels
	}
	return n, nil
}

// decoded returns at least one sample, beginning at a position.
func (f *File) decoded(position int64) ([]int16, error) {
	number := position / (segmentFrames * f.frameSamples())
	if number != f.segment || position < f.samplesAt {
		f.startSegment(number)
	}
	for position >= f.samplesEnd() {
		f.decode()
		if err := f.scan.err; err != nil {
			f.segment = -1
			return nil, err
		}
	}
	return f.samples[int(position-f.samplesAt)*f.Channels():], nil
}

// frameSamples returns the number of samples of each channel in a frame of the file.
func (f *File) frameSamples() int64 { return int64(f.scan.first.samples()) }

// samplesEnd returns the position after the current frame.
func (f *File) samplesEnd() int64 { return f.samplesAt + int64(len(f.samples)/f.Channels()) }

// startSegment starts a new decoder for a segment.
func (f *File) startSegment(number int64) {
	f.segment = number
	f.decoder = newDecoder()
	f.walker = f.index.walkerBefore(f.scan, number)
	for f.walker.frames < number*segmentFrames-preroll {
		if !f.walker.next() {
			break
		}
	}
	f.samples = f.samples[:0]
	f.samplesAt = f.walker.frames * f.frameSamples()
}

// decode decodes the next frame. After the end of the file, the frame is silent.
func (f *File) decode() {
	f.samplesAt = f.samplesEnd()
	previousEnd := f.walker.frameEnd
	if !f.walker.next() {
		f.samples = f.samples[:f.scan.first.samples()*f.Channels()]
		clear(f.samples)
		return
	}
	if f.walker.frameStart != previousEnd {
		f.decoder.forget()
	}
	frame := f.scan.read(f.walker.frameStart, f.walker.frame.length)
	f.samples = f.decoder.frame(f.walker.frame, frame, f.Channels(), f.samples[:0])
}
