package wav

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// riff returns a file with these chunks and with the correct size in its header.
func riff(chunks ...string) string {
	body := "WAVE" + strings.Join(chunks, "")
	return "RIFF" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))) + body
}

// piece returns a chunk with padding.
func piece(id, body string) string {
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	return id + string(length) + body + strings.Repeat("\x00", len(body)%2)
}

// pcm is a format chunk for 8 kHz, 16 bits and one channel.
var pcm = piece("fmt ", "\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00")

func TestParse(t *testing.T) {
	audio := piece("data", strings.Repeat("\x01\x02", 100))
	stream := "data\x00\x00\x00\x00" + strings.Repeat("\x01\x02", 100)
	pcm16k := strings.Replace(pcm, "\x40\x1f", "\x80\x3e", 1)
	tests := []struct {
		name    string
		file    string
		frames  int64
		offset  int64
		repairs int
	}{
		{"plain", riff(pcm, audio), 100, 44, 0},
		{"the second format is ignored", riff(pcm, pcm16k, audio), 100, 68, 0},
		{"no audio", riff(pcm, piece("data", "")), 0, 44, 0},
		{"no audio, but a later chunk", riff(pcm, piece("data", ""), piece("LIST", "INFO")), 0, 44, 0},
		{"no audio, although announced", riff(pcm, "data\x10\x00\x00\x00"), 0, 44, 1},
		{"size never written", riff(pcm, stream), 100, 44, 1},
		{"half a chunk after the audio", riff(pcm, audio, "LIST\xff\x00\x00\x00"), 100, 44, 1},
		{"one byte too many", riff(pcm, audio) + "\x00", 100, 44, 1},
		{"last pad missing", strings.TrimSuffix(riff(pcm, audio, piece("note", "odd")), "\x00"), 100, 44, 0},
		{"fact chunk is ignored for PCM", riff(pcm, piece("fact", "\x05\x00\x00\x00"), audio), 100, 56, 0},
	}

	for _, tt := range tests {
		got, err := Parse(strings.NewReader(tt.file), int64(len(tt.file)))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got.Frames != tt.frames || got.Offset != tt.offset {
			t.Errorf("%s: %d frames at %d, want %d at %d", tt.name, got.Frames, got.Offset, tt.frames, tt.offset)
		}
		if len(got.Repairs) != tt.repairs {
			t.Errorf("%s: repairs %q, want %d repairs", tt.name, got.Repairs, tt.repairs)
		}
	}
}

// extensible returns a format chunk whose tag is in a GUID.
func extensible(tag, channels, align, bits uint16) string {
	le := binary.LittleEndian
	b := le.AppendUint16(nil, tagExtensible)
	b = le.AppendUint16(b, channels)
	b = le.AppendUint32(b, 8000)
	b = le.AppendUint32(b, 8000*uint32(align))
	b = le.AppendUint16(b, align)
	b = le.AppendUint16(b, bits)
	b = le.AppendUint16(b, 22) // length of the rest
	b = append(b, "\x00\x00\x00\x00\x00\x00"...)
	b = le.AppendUint16(b, tag)
	b = append(b, subformat...)
	return piece("fmt ", string(b))
}

func TestExtensible(t *testing.T) {
	tests := []struct {
		tag, channels, align, bits uint16
		codec                      string
		frames                     int64 // in 1300 bytes
	}{
		{tagPCM, 1, 2, 16, "pcm_s16le", 650},
		{tagPCM, 2, 6, 24, "pcm_s24le", 216},
		{tagFloat, 1, 4, 32, "pcm_f32le", 325},
		{tagFloat, 1, 8, 64, "pcm_f64le", 162},
		{tagALaw, 2, 2, 8, "alaw", 650},
		{tagMuLaw, 1, 1, 8, "mulaw", 1300},
		{tagIMAADPCM, 1, 256, 4, "adpcm_ima_wav", 5*505 + 1 + 4*8},
		{tagIMAADPCM, 2, 256, 4, "adpcm_ima_wav", 5*249 + 1 + 8},
		{tagMSADPCM, 1, 256, 4, "adpcm_ms", 5*500 + 2 + 2*13},
		{tagMSADPCM, 2, 256, 4, "adpcm_ms", 5*244 + 2 + 6},
		{tagGSM610, 1, 65, 0, "gsm_ms", 20 * 320},
	}

	for _, tt := range tests {
		format := extensible(tt.tag, tt.channels, tt.align, tt.bits)
		wav := riff(format, piece("data", strings.Repeat("\x01", 1300)))

		// A BW64 file has the same chunks after a ds64 chunk with 64-bit sizes.
		riffSize := string(binary.LittleEndian.AppendUint64(nil, uint64(len(wav)+28)))
		dataSize := "\x14\x05\x00\x00" + strings.Repeat("\x00", 16)
		bw64 := "BW64\xff\xff\xff\xffWAVE" + piece("ds64", riffSize+dataSize) + wav[12:]

		for _, file := range []string{wav, bw64} {
			t.Run(fmt.Sprintf("%.4s, tag %#x, channels %d", file, tt.tag, tt.channels), func(t *testing.T) {
				got, err := Parse(strings.NewReader(file), int64(len(file)))
				if err != nil {
					t.Fatal(err)
				}
				if got.Codec != tt.codec || got.Frames != tt.frames {
					t.Errorf("%d frames of %s, want %d of %s", got.Frames, got.Codec, tt.frames, tt.codec)
				}
				if got.Channels != int(tt.channels) {
					t.Errorf("%d channels, want %d", got.Channels, tt.channels)
				}
				if got.Plain() {
					t.Error("Plain = true, want false")
				}

				s, err := Open(strings.NewReader(file), got, nil)
				if err != nil {
					t.Fatal(err)
				}
				readView(t, s)
			})
		}
	}
}

func TestParseRefuses(t *testing.T) {
	audio := piece("data", "\x01\x02")
	unknownSubformat := piece("fmt ",
		"\xfe\xff\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00\x16\x00"+strings.Repeat("x", 22))
	unknownTag := strings.Replace(pcm, "\x01\x00\x01", "\x55\x00\x01", 1)
	tests := []struct {
		name string
		file string
		want error
	}{
		{"nothing", "", ErrNotWAV},
		{"a truncated header", "RIFF\x24\x00\x00\x00WAV", ErrNotWAV},
		{"RIFF that is not WAVE", "RIFF\x24\x00\x00\x00AVI LIST", ErrNotWAV},
		{"RF64 without ds64", "RF64\xff\xff\xff\xffWAVE" + pcm + audio, ErrBroken},
		{"data before fmt", riff(audio, pcm), ErrBroken},
		{"no data", riff(pcm), ErrBroken},
		{"a chunk beyond the end", riff(pcm, "LIST\xff\xff\xff\x7f", audio), ErrBroken},
		{"too many chunks", riff(pcm, strings.Repeat(piece("LIST", ""), 2*maxChunks), audio), ErrBroken},
		{"an unknown subformat", riff(unknownSubformat, audio), ErrCodec},
		{"an unknown tag", riff(unknownTag, audio), ErrCodec},
	}

	for _, tt := range tests {
		if got, err := Parse(strings.NewReader(tt.file), int64(len(tt.file))); !errors.Is(err, tt.want) {
			t.Errorf("%s: %+v, %v, want %v", tt.name, got, err, tt.want)
		}
	}
}

type failing struct{ io.Reader }

func (f failing) ReadAt(p []byte, _ int64) (int, error) { return f.Read(p) }

func TestParseReturnsReadErrors(t *testing.T) {
	broken := errors.New("the disk is broken")
	if _, err := Parse(failing{iotest.ErrReader(broken)}, 1000); !errors.Is(err, broken) {
		t.Errorf("Parse = %v, want %v", err, broken)
	}
}

// A counted reader counts the calls of ReadAt, and the bytes that they request.
type counted struct {
	io.ReaderAt
	calls, bytes int
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.calls++
	c.bytes += len(p)
	return c.ReaderAt.ReadAt(p, off)
}

// FuzzParse checks that Parse returns only documented errors and plausible facts, and reads only a
// small part of the file.
func FuzzParse(f *testing.F) {
	for name := range expectations(f) {
		file, err := os.ReadFile(filepath.Join(corpus, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file[:min(len(file), 4096)], int64(len(file)))
	}

	// A header with many small chunks takes the most time, because maxChunks of them are read.
	bound := fuzzcost.Bound{CPU: 2 * time.Millisecond, CPUPerByte: 100 * time.Nanosecond, Heap: 256 << 10, PerByte: 16}
	manyChunks := "RIFF\xff\xff\xff\xffWAVE" + strings.Repeat("JUNK\x00\x00\x00\x00", 1<<14)
	f.Add([]byte(manyChunks), int64(1<<17))
	longDS64 := "RF64\xff\xff\xff\xffWAVEds64\xff\xff\xff\xff" + strings.Repeat("\x00", 1<<12)
	f.Add([]byte(longDS64), int64(1<<40))

	f.Fuzz(func(t *testing.T, file []byte, size int64) {
		var r *counted
		var got Facts
		var err error
		bound.Check(t, len(file), func() {
			r = &counted{ReaderAt: bytes.NewReader(file)}
			got, err = Parse(r, size) // size is arbitrary, since the file may be shorter than stated
		})
		if r.calls > 4*maxChunks {
			t.Errorf("%d reads, want at most %d", r.calls, 4*maxChunks)
		}
		if limit := len(parser{}.head) * r.calls; r.bytes > limit {
			t.Errorf("%d reads of %d bytes, want at most %d bytes", r.calls, r.bytes, limit)
		}
		if err != nil {
			if !errors.Is(err, ErrNotWAV) && !errors.Is(err, ErrCodec) && !errors.Is(err, ErrBroken) {
				t.Errorf("Parse: %v, want ErrNotWAV, ErrCodec or ErrBroken", err)
			}
			return
		}

		if got.Codec == "" {
			t.Error("the codec is unknown")
		}
		for name, n := range map[string]int{
			"SampleRate":  got.SampleRate,
			"Channels":    got.Channels,
			"BlockAlign":  got.BlockAlign,
			"BlockFrames": got.BlockFrames,
		} {
			if n < 1 {
				t.Errorf("%s = %d, want at least 1", name, n)
			}
		}
		if got.Offset < 20 || got.Length < 0 || got.Offset+got.Length > size {
			t.Errorf("%d bytes of audio at %d, want them within the file of %d bytes", got.Length, got.Offset, size)
		}
		if got.Frames < 0 || got.Duration() < 0 {
			t.Errorf("%d frames that take %v, want no negative values", got.Frames, got.Duration())
		}
		if slices.Contains(got.Repairs, "") {
			t.Errorf("repairs %q, want no empty text", got.Repairs)
		}
	})
}
