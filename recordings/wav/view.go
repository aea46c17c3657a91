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
// an RF64 header if the size exceeds 32 bits. Reading allocates no memory. A View is not safe for
// concurrent use.
type View struct {
	source Source
	header []byte
	frame  int64 // bytes per frame
	size   int64
	at     int64
	buf    []int16
}

// NewView returns a view of a source.
func NewView(s Source) *View {
	v := &View{source: s, frame: 2 * int64(s.Channels())}
	v.header = header(s.Rate(), s.Channels(), s.Frames())
	v.size = int64(len(v.header)) + v.frame*s.Frames()
	return v
}

// Size returns the length of the file in bytes.
func (v *View) Size() int64 { return v.size }

// Seek implements [io.Seeker].
func (v *View) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += v.at
	case io.SeekEnd:
		offset += v.size
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, fmt.Errorf("seeking in a WAV: no position %d from %d", offset, whence)
	}
	v.at = offset
	return offset, nil
}

// Read implements [io.Reader].
func (v *View) Read(p []byte) (n int, err error) {
	if v.at >= v.size {
		return 0, io.EOF
	}
	if v.at < int64(len(v.header)) {
		n = copy(p, v.header[v.at:])
		v.at += int64(n)
	}

	for n < len(p) && v.at < v.size && err == nil {
		var more int
		more, err = v.readAudio(p[n:])
		n += more
		v.at += int64(more)
	}
	return n, err
}

// readAudio reads samples from the current position into p.
func (v *View) readAudio(p []byte) (int, error) {
	if s, ok := v.source.(*Samples); ok && s.facts.Codec == "pcm_s16le" {
		return s.plain.readBytes(p[:min(int64(len(p)), v.size-v.at)], v.at-int64(len(v.header)))
	}

	if v.buf == nil {
		v.buf = make([]int16, max(1, viewFrames/v.source.Channels())*v.source.Channels())
	}

	at, skip := v.position()
	want := min((int64(skip+len(p))+v.frame-1)/v.frame, v.source.Frames()-at, 2*int64(len(v.buf))/v.frame)
	samples := v.buf[:want*v.frame/2]
	frames, err := v.source.ReadFrames(samples, at)
	switch {
	case int64(frames) == want:
		err = nil
	case err == nil || errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF // the source has fewer frames than Frames returned
	}
	return put(p, samples[:int64(frames)*v.frame/2], skip), err
}

// position returns the current frame, and how many of its bytes have been read.
func (v *View) position() (frame int64, skip int) {
	audio := v.at - int64(len(v.header))
	return audio / v.frame, int(audio % v.frame)
}

// put writes as many samples to p as fit, beginning with byte skip of the samples. It returns the
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
	frame := 2 * channels
	data := frames * int64(frame)

	b, small := []byte("RIFF"), data+36 <= math.MaxUint32
	if small {
		b = le.AppendUint32(b, uint32(data+36))
		b = append(b, "WAVE"...)
	} else { // EBU Tech 3306
		b = append(b[:0], "RF64\xff\xff\xff\xffWAVEds64\x1c\x00\x00\x00"...)
		b = le.AppendUint64(b, uint64(data+72))
		b = le.AppendUint64(b, uint64(data))
		b = le.AppendUint64(b, uint64(frames))
		b = le.AppendUint32(b, 0) // more sizes
	}

	b = append(b, "fmt \x10\x00\x00\x00\x01\x00"...)
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(rate*frame))
	b = le.AppendUint16(b, uint16(frame))
	b = append(b, "\x10\x00data"...)
	if small {
		return le.AppendUint32(b, uint32(data))
	}
	return append(b, "\xff\xff\xff\xff"...)
}
