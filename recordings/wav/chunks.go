package wav

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// maxChunks is the maximum number of chunks in a file. No known call recorder writes more chunks.
const maxChunks = 1024

// unknown is the size in the header of a chunk whose writer did not know the size.
const unknown = math.MaxUint32

// A parser parses the chunks of a file in one pass.
type parser struct {
	r     io.ReaderAt
	size  int64
	order binary.ByteOrder
	facts Facts

	riffSize int64 // size of the file according to its header
	dataSize int64 // size of the audio according to ds64, or -1
	fact     int64 // number of frames according to the chunk "fact"
	streamed bool  // the header does not give the actual size of the audio
	common   bool  // the file is RIFF, without an EXTENSIBLE format
	visited  int   // number of chunks that were read
	buf      [64]byte
	head     [192]byte // beginning of the file, which contains most headers
	ahead    int       // number of bytes in head; 0 before it is read
}

// A chunk is a section of the file with an id and a content of size bytes at offset.
type chunk struct {
	id     string
	offset int64
	size   int64
}

func (c chunk) end() int64 { return c.offset + c.size }

// read returns n bytes at an offset, or fewer at the end of the file.
func (p *parser) read(offset int64, n int) ([]byte, error) {
	if p.ahead == 0 {
		got, err := p.r.ReadAt(p.head[:], 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("reading header: %w", err)
		}
		p.ahead = got
	}

	if end := offset + int64(n); offset >= 0 && end <= int64(p.ahead) {
		return p.head[offset:end], nil
	}

	got, err := p.r.ReadAt(p.buf[:n], offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading header: %w", err)
	}
	return p.buf[:got], nil
}

// header reads the RIFF header, and the sizes in ds64 if the file is RF64.
func (p *parser) header() error {
	b, err := p.read(0, 12)
	if err != nil {
		return err
	}
	if len(b) < 12 || string(b[8:12]) != "WAVE" {
		return ErrNotWAV
	}

	p.order, p.dataSize = binary.LittleEndian, -1
	magic := string(b[:4])
	if magic == "RIFX" {
		p.order = binary.BigEndian
	}
	p.riffSize = int64(p.order.Uint32(b[4:])) + 8

	switch magic {
	case "RIFF", "RIFX":
		p.common = magic == "RIFF"
		return nil
	case "RF64", "BW64":
		return p.ds64()
	}
	return ErrNotWAV
}

// ds64 reads the 64-bit sizes of an RF64 file (EBU Tech 3306). They must be in the first chunk.
func (p *parser) ds64() error {
	b, err := p.read(12, 8+24)
	if err != nil {
		return err
	}
	if len(b) < 32 || string(b[:4]) != "ds64" {
		return broken("RF64 without ds64")
	}
	riff, data := p.order.Uint64(b[8:]), p.order.Uint64(b[16:])
	if riff > math.MaxInt64-8 || data > math.MaxInt64 {
		return broken("ds64 claims more than 2^63 bytes")
	}
	p.riffSize, p.dataSize = int64(riff)+8, int64(data)
	return nil
}

// chunkAt reads the header of a chunk. At the end of the file, or if the id is not text, ok is
// false.
func (p *parser) chunkAt(offset int64) (c chunk, ok bool, err error) {
	if offset < 0 || p.size-offset < 8 {
		return chunk{}, false, nil
	}
	if p.visited++; p.visited > maxChunks {
		return chunk{}, false, broken("it has more than %d chunks", maxChunks)
	}

	b, err := p.read(offset, 8)
	if err != nil || len(b) < 8 {
		return chunk{}, false, err
	}
	for _, letter := range b[:4] {
		if letter < ' ' || letter > '~' {
			return chunk{}, false, nil
		}
	}
	return chunk{id: string(b[:4]), offset: offset + 8, size: int64(p.order.Uint32(b[4:]))}, true, nil
}

// after returns the chunk after c. A chunk of odd size should have one byte of padding, but some
// writers omit it.
func (p *parser) after(c chunk) (next chunk, ok bool, err error) {
	next, ok, err = p.chunkAt(c.end() + c.size%2)
	if err != nil || c.size%2 == 0 || ok && p.fits(next) {
		return next, ok, err
	}
	if unpadded, found, err := p.chunkAt(c.end()); err != nil || found && p.fits(unpadded) {
		p.facts.repaired("a chunk of odd size lacks its padding")
		return unpadded, found, err
	}
	return next, ok, nil
}

// fits reports whether a chunk lies within the file, as all chunks except the audio must.
func (p *parser) fits(c chunk) bool { return c.id == "data" || c.end() <= p.size }

// beforeData reads the chunks up to "data" and records the position of the audio.
func (p *parser) beforeData() error {
	c, ok, err := p.chunkAt(12)
	for ; ok && err == nil && c.id != "data"; c, ok, err = p.after(c) {
		if !p.fits(c) {
			return broken("chunk %q claims %d bytes, more than the file has", c.id, c.size)
		}
		if err := p.visit(c); err != nil {
			return err
		}
	}

	switch {
	case err != nil:
		return err
	case !ok:
		return broken("it has no data chunk")
	case p.facts.Codec == "":
		return broken("it has no fmt chunk before its data")
	}
	p.facts.Offset, p.facts.Length = c.offset, c.size
	return nil
}

// visit reads chunk c if it describes the audio.
func (p *parser) visit(c chunk) (err error) {
	switch {
	case c.id == "fmt " && p.facts.Codec == "":
		if c.size < 16 {
			return broken("its fmt chunk has %d bytes, not 16 or more", c.size)
		}
		b, err := p.read(c.offset, int(min(c.size, int64(len(p.buf)))))
		if err != nil || len(b) < 16 {
			return errors.Join(err, ErrBroken)
		}

		p.common = p.common && p.order.Uint16(b) != tagExtensible
		p.facts.Format, err = parseFormat(b, p.order, p.facts.repaired)
		return err

	case c.id == "fact" && c.size >= 4:
		b, err := p.read(c.offset, 4)
		if err != nil || len(b) < 4 {
			return errors.Join(err, ErrBroken)
		}
		p.fact = int64(p.order.Uint32(b))
	}
	return nil
}

// data determines the actual length of the audio.
func (p *parser) data() error {
	f := &p.facts
	if f.Length == unknown && p.dataSize >= 0 {
		f.Length = p.dataSize
	}

	rest := p.size - f.Offset
	switch {
	case f.Length == 0 && rest > 0:
		if chunks, err := p.onlyChunks(f.Offset); chunks || err != nil {
			return err
		}
		p.extendToEnd("the size of the audio was never written")
	case f.Length >= math.MaxInt32-math.MaxUint16 && f.Length > rest: // a placeholder, at or near its maximum
		p.extendToEnd("the size of the audio was never written")
	case f.Length > rest:
		p.extendToEnd(fmt.Sprintf("the audio has %d bytes of the %d announced", rest, f.Length))
	default:
		return p.afterData()
	}
	return nil
}

// extendToEnd extends the audio to the end of the file, and records the reason.
func (p *parser) extendToEnd(why string) {
	p.facts.Length, p.streamed = p.size-p.facts.Offset, true
	p.facts.repaired("%s", why)
}

// onlyChunks reports whether the file consists of whole chunks from offset to its end.
func (p *parser) onlyChunks(offset int64) (bool, error) {
	end := offset
	c, ok, err := p.chunkAt(offset)
	for ; ok && err == nil; c, ok, err = p.chunkAt(end) {
		end = c.end() + c.size%2
		if c.end() > p.size {
			return false, nil
		}
	}
	return end >= p.size, err
}

// afterData checks the rest of the file after the audio. If the rest has another data chunk or does
// not consist of whole chunks, or the size in the RIFF header is wrong, afterData records a repair.
func (p *parser) afterData() error {
	audio := chunk{id: "data", offset: p.facts.Offset, size: p.facts.Length}
	last := audio
	c, ok, err := p.after(audio)
	for ; ok && err == nil && c.end() <= p.size; c, ok, err = p.after(c) {
		if c.id == "data" {
			p.facts.repaired("a second data chunk is not used")
		}
		last = c
	}

	switch end := last.end() + last.size%2; {
	case err != nil:
		return err
	case end < p.size:
		p.facts.repaired("%d bytes after the last chunk are not a chunk", p.size-end)
	case p.riffSize != last.end() && p.riffSize != end:
		p.facts.repaired("the size in the RIFF header is %d, not %d", p.riffSize-8, end-8)
	}
	return nil
}
