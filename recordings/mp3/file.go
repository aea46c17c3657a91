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
	// segment is the number of frames that one decoder decodes.
	segment = 512
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
type File struct {
	scan   *scanner
	index  *index
	skip   int64 // samples at the start that are not played
	frames int64 // samples that are played

	segment int64 // number of the segment that is being decoded, or -1
	walker  *walker
	decoder *decoder
	out     []int16 // samples of the current frame, interleaved
	from    int64   // position of the first sample in out, counting samples that are not played
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

	f := &File{scan: m, segment: -1, from: 0}
	if index != nil {
		b, err := index()
		if err != nil {
			return nil, fmt.Errorf("reading index: %w", err)
		}
		f.index = parseIndex(b, m.size)
	}
	if f.index == nil {
		var err error
		if f.index, err = newIndex(m); err != nil {
			return nil, err
		}
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

// Index returns the positions of the segments in the file, for a later [Open]. The result is at
// most 512 KiB long.
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
	spf := int64(f.scan.first.samples())
	number := position / (segment * spf)
	if number != f.segment || position < f.from {
		f.begin(number)
	}
	for position >= f.from+int64(len(f.out)/f.Channels()) {
		f.decode()
		if err := f.scan.err; err != nil {
			f.segment = -1
			return nil, err
		}
	}
	return f.out[int(position-f.from)*f.Channels():], nil
}

// begin starts a new decoder for a segment.
func (f *File) begin(number int64) {
	f.segment, f.decoder = number, newDecoder()
	f.walker = f.index.walk(f.scan, number)
	f.out = f.out[:0]
	f.from = f.walker.frames * int64(f.scan.first.samples())
	for f.walker.frames < number*segment-preroll && f.walker.next() {
		f.from += int64(f.scan.first.samples())
	}
}

// decode decodes the next frame into f.out. After the end of the file, the frame is silent.
func (f *File) decode() {
	f.from += int64(len(f.out) / f.Channels())
	before := f.walker.after
	if !f.walker.next() {
		f.out = f.out[:f.scan.first.samples()*f.Channels()]
		clear(f.out)
		return
	}
	if f.walker.at != before {
		f.decoder.forget()
	}
	frame := f.scan.at(f.walker.at, f.walker.frame.length)
	f.out = f.decoder.frame(f.walker.frame, frame, f.Channels(), f.out[:0])
}
