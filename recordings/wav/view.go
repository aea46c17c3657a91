package wav

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// viewFrames is the maximum number of frames converted at a time.
const viewFrames = 4096

// A View is a WAV file of 16-bit PCM with the audio of a [Source]. Its header has 44 bytes, or is
// an RF64 header if the size exceeds 32 bits. After the first read, reading allocates no memory. A
// View is not safe for concurrent use.
type View struct {
	source     Source
	header     []byte
	frameBytes int64
	size       int64
	offset     int64 // offset of the next byte to read
	buf        []int16
}

// NewView returns a view of a source.
func NewView(s Source) *View {
	v := &View{source: s, frameBytes: 2 * int64(s.Channels())}
	v.header = header(s.Rate(), s.Channels(), s.Frames())
	v.size = int64(len(v.header)) + v.frameBytes*s.Frames()
	return v
}

// Size returns the length of the file in bytes.
func (v *View) Size() int64 { return v.size }

// Seek implements [io.Seeker].
func (v *View) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += v.offset
	case io.SeekEnd:
		offset += v.size
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, fmt.Errorf("seeking in a WAV: no position %d from %d", offset, whence)
	}
	v.offset = offset
	return offset, nil
}

// Read implements [io.Reader].
func (v *View) Read(p []byte) (n int, err error) {
	if v.offset >= v.size {
		return 0, io.EOF
	}
	if v.offset < int64(len(v.header)) {
		n = copy(p, v.header[v.offset:])
		v.offset += int64(n)
	}

	for n < len(p) && v.offset < v.size {
		more, err := v.readAudio(p[n:])
		n += more
		v.offset += int64(more)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// readAudio reads samples from the current position into p.
func (v *View) readAudio(p []byte) (int, error) {
	audioOffset := v.offset - int64(len(v.header))
	if s, ok := v.source.(*Samples); ok && s.facts.Codec == "pcm_s16le" {
		p = p[:min(int64(len(p)), v.size-v.offset)]
		return s.plain.readBytes(p, audioOffset)
	}

	channels := v.source.Channels()
	if v.buf == nil {
		v.buf = make([]int16, max(1, viewFrames/channels)*channels)
	}

	frame, skip := audioOffset/v.frameBytes, int(audioOffset%v.frameBytes)
	requested := (int64(skip+len(p)) + v.frameBytes - 1) / v.frameBytes
	frames := min(requested, v.source.Frames()-frame, int64(len(v.buf)/channels))
	n, err := v.source.ReadFrames(v.buf[:frames*int64(channels)], frame)
	if int64(n) == frames {
		err = nil
	} else if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the source has fewer frames than Frames returned
	}
	return put(p, v.buf[:n*channels], skip), err
}

// put writes as many samples to p as fit, beginning with byte number skip. It returns the
// number of bytes written.
func put(p []byte, samples []int16, skip int) int {
	n := min(len(p), 2*len(samples)-skip)
	if n <= 0 {
		return 0
	}
	p = p[:n]
	if skip%2 == 1 {
		p[0] = byte(uint16(samples[skip/2]) >> 8)
		p, skip = p[1:], skip+1
	}

	whole := len(p) / 2
	samples = samples[skip/2:]
	if len(p)%2 == 1 {
		p[2*whole] = byte(samples[whole])
	}
	for samples = samples[:whole]; len(samples) >= 4 && len(p) >= 8; samples, p = samples[4:], p[8:] {
		four := uint64(uint16(samples[0])) | uint64(uint16(samples[1]))<<16 |
			uint64(uint16(samples[2]))<<32 | uint64(uint16(samples[3]))<<48
		binary.LittleEndian.PutUint64(p, four)
	}
	for i, s := range samples {
		binary.LittleEndian.PutUint16(p[2*i:], uint16(s))
	}
	return n
}

// header returns the header of a WAV file of 16-bit PCM.
func header(rate, channels int, frames int64) []byte {
	le := binary.LittleEndian
	frameBytes := 2 * channels
	data := frames * int64(frameBytes)
	isSmall := data+36 <= math.MaxUint32

	var b []byte
	if isSmall {
		b = append(b, "RIFF"...)
		b = le.AppendUint32(b, uint32(data+36))
		b = append(b, "WAVE"...)
	} else { // EBU Tech 3306
		b = append(b, "RF64\xff\xff\xff\xffWAVEds64\x1c\x00\x00\x00"...)
		b = le.AppendUint64(b, uint64(data+72))
		b = le.AppendUint64(b, uint64(data))
		b = le.AppendUint64(b, uint64(frames))
		b = le.AppendUint32(b, 0) // number of further sizes
	}

	b = append(b, "fmt \x10\x00\x00\x00\x01\x00"...)
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(rate*frameBytes))
	b = le.AppendUint16(b, uint16(frameBytes))
	b = append(b, "\x10\x00data"...)
	if isSmall {
		return le.AppendUint32(b, uint32(data))
	}
	return append(b, "\xff\xff\xff\xff"...)
}
