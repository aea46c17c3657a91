package audio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/selvage/selvage/recordings/opus"
	"github.com/selvage/selvage/recordings/wav"
)

// Only two parts of an Ogg file with Vorbis or Speex are read. The part at the start contains the
// first page. The part at the end contains the last page, which has at most 65,307 bytes. Pages of
// other streams may follow it.
const (
	oggHead = 27 // bytes in a page before its segment table
	oggTail = 2 * 65307
)

// parseOgg reads the facts of an Ogg file with Opus, Vorbis or Speex (RFC 3533). If the file is not
// Ogg, ok is false.
func parseOgg(r io.ReaderAt, size int64) (f wav.Facts, ok bool, err error) {
	first, err := read(r, make([]byte, 512), 0)
	if err != nil {
		return f, false, err
	}
	if len(first) < oggHead+1 || string(first[:5]) != "OggS\x00" {
		return f, false, nil
	}

	serial := binary.LittleEndian.Uint32(first[14:])
	packet := first[min(len(first), oggHead+int(first[26])):]
	if err := oggFormat(&f, packet); err != nil {
		return f, true, err
	}
	if f.Codec == "opus" {
		err := opusFacts(&f, r, size)
		return f, true, err
	}

	// The granule position at the end of the last page is the length of the stream.
	start := max(0, size-oggTail)
	tail, err := read(r, make([]byte, min(size, oggTail)), start)
	if err != nil {
		return f, true, err
	}

	end := lastGranule(tail, serial)
	if end < 0 {
		return f, true, fmt.Errorf("%w: the last page is missing", wav.ErrBroken)
	}
	f.Frames = end
	f.Length = size
	return f, true, checkSize(f)
}

// opusFacts completes the facts of a stream with Opus.
func opusFacts(f *wav.Facts, r io.ReaderAt, size int64) error {
	found, err := opus.Scan(r, size)
	if errors.Is(err, opus.ErrNotOpus) || errors.Is(err, opus.ErrSparse) {
		return fmt.Errorf("%w: %w", wav.ErrBroken, err)
	}
	if err != nil {
		return err
	}
	f.Frames = found.Frames
	f.Length = size
	return checkSize(*f)
}

// checkSize returns ErrBroken if a file has less than a byte for each second.
func checkSize(f wav.Facts) error {
	if f.Frames/int64(f.SampleRate) > f.Length {
		return fmt.Errorf("%w: it claims %d frames in %d bytes", wav.ErrBroken, f.Frames, f.Length)
	}
	return nil
}

// oggFormat parses the first packet of a stream.
func oggFormat(f *wav.Facts, packet []byte) error {
	le := binary.LittleEndian
	switch {
	case bytes.HasPrefix(packet, []byte("OpusHead")) && len(packet) >= 19: // RFC 7845, section 5.1
		f.Codec, f.SampleRate, f.Channels = "opus", opus.Rate, int(packet[9])
	case bytes.HasPrefix(packet, []byte("\x01vorbis")) && len(packet) >= 30:
		f.Codec, f.SampleRate, f.Channels = "vorbis", int(le.Uint32(packet[12:])), int(packet[11])
	case bytes.HasPrefix(packet, []byte("Speex   ")) && len(packet) >= 80:
		f.Codec, f.SampleRate, f.Channels = "speex", int(le.Uint32(packet[36:])), int(le.Uint32(packet[48:]))
	default:
		return fmt.Errorf("%w: Ogg with neither Opus, Vorbis nor Speex in it", wav.ErrCodec)
	}
	return f.Check()
}

// lastGranule returns the position at the end of a stream's last whole page. If the stream has no
// whole page, it returns -1.
func lastGranule(tail []byte, serial uint32) int64 {
	start := len(tail)
	for {
		start = bytes.LastIndex(tail[:start], []byte("OggS\x00"))
		if start < 0 {
			return -1
		}
		page := tail[start:]
		if len(page) < oggHead {
			continue
		}
		body := oggHead + int(page[26])
		if len(page) < body || binary.LittleEndian.Uint32(page[14:]) != serial {
			continue
		}

		length := body
		for _, segment := range page[oggHead:body] {
			length += int(segment)
		}
		granule := int64(binary.LittleEndian.Uint64(page[6:]))
		if granule >= 0 && length <= len(page) {
			return granule
		}
	}
}

// read fills p with the bytes at offset, and returns them. At the end of the file, it returns fewer
// bytes.
func read(r io.ReaderAt, p []byte, offset int64) ([]byte, error) {
	n, err := r.ReadAt(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading header: %w", err)
	}
	return p[:n], nil
}
