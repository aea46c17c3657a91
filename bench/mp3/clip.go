package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/selvage/selvage/recordings/mp3"
)

// A clip is audio in memory with one or two channels.
type clip struct {
	rate, channels int
	samples        []int16
}

func (c *clip) Rate() int     { return c.rate }
func (c *clip) Channels() int { return c.channels }
func (c *clip) Frames() int64 { return int64(len(c.samples) / c.channels) }

func (c *clip) ReadFrames(dst []int16, at int64) (int, error) {
	if at >= c.Frames() {
		return 0, io.EOF
	}
	return copy(dst[:len(dst)/c.channels*c.channels], c.samples[at*int64(c.channels):]) / c.channels, nil
}

// fromFloats returns a clip of samples between -1 and 1.
func fromFloats(rate int, x []float64) *clip {
	c := &clip{rate: rate, channels: 1, samples: make([]int16, len(x))}
	for i, v := range x {
		c.samples[i] = int16(max(-32768, min(32767, v*32767)))
	}
	return c
}

// writeWAV writes a clip as a WAV file with a header of 44 bytes.
func (c *clip) writeWAV(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()

	w := bufio.NewWriter(f)
	le, size := binary.LittleEndian, uint32(2*len(c.samples))
	h := le.AppendUint32([]byte("RIFF"), 36+size)
	h = le.AppendUint32(append(h, "WAVEfmt "...), 16)
	h = le.AppendUint16(le.AppendUint16(h, 1), uint16(c.channels))
	h = le.AppendUint32(le.AppendUint32(h, uint32(c.rate)), uint32(2*c.channels*c.rate))
	h = le.AppendUint16(le.AppendUint16(h, uint16(2*c.channels)), 16)
	w.Write(le.AppendUint32(append(h, "data"...), size))

	if err := binary.Write(w, le, c.samples); err != nil {
		return err
	}
	return w.Flush()
}

// wavHeader is the size of the header of a plain WAV file.
const wavHeader = 44

// A wavFile is a WAV file with a header of 44 bytes. Its samples are read on demand.
type wavFile struct {
	file           *os.File
	rate, channels int
	frames         int64
	buf            []byte
}

func openWAV(name string) (*wavFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	var h [wavHeader]byte
	if _, err := io.ReadFull(f, h[:]); err != nil || string(h[36:40]) != "data" {
		return nil, fmt.Errorf("%s is not a WAV file with a header of 44 bytes", name)
	}
	le := binary.LittleEndian
	w := &wavFile{file: f, rate: int(le.Uint32(h[24:])), channels: int(le.Uint16(h[22:]))}
	w.frames = int64(le.Uint32(h[40:])) / int64(2*w.channels)
	return w, nil
}

func (w *wavFile) Rate() int     { return w.rate }
func (w *wavFile) Channels() int { return w.channels }
func (w *wavFile) Frames() int64 { return w.frames }

func (w *wavFile) ReadFrames(dst []int16, at int64) (int, error) {
	n := int(min(int64(len(dst)/w.channels), w.frames-at))
	if n <= 0 {
		return 0, io.EOF
	}

	if size := 2 * n * w.channels; len(w.buf) < size {
		w.buf = make([]byte, size)
	}
	b := w.buf[:2*n*w.channels]
	if _, err := w.file.ReadAt(b, wavHeader+at*int64(2*w.channels)); err != nil {
		return 0, err
	}

	for i := range n * w.channels {
		dst[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return n, nil
}

// encodeFile encodes a WAV file as an MP3.
func encodeFile(name string, to io.Writer) error {
	w, err := openWAV(name)
	if err != nil {
		return err
	}
	defer w.file.Close()
	s, err := mp3.New(w)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, s)
	return err
}
