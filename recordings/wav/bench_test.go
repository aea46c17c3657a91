package wav

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
)

// audioFiles returns ten seconds of noise in each codec, with their facts.
func audioFiles(t testing.TB) map[string]struct {
	file  []byte
	facts Facts
} {
	t.Helper()
	random := rand.New(rand.NewPCG(11, 12))

	noise := make([]byte, 400_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}

	made := map[string]struct {
		file  []byte
		facts Facts
	}{}

	for codec, file := range longFiles(t, 10) {
		made[codec] = struct {
			file  []byte
			facts Facts
		}{file, factsOf(t, codec, file)}
	}

	le := binary.LittleEndian
	for codec, format := range map[string]struct{ tag, align, bits uint16 }{
		"pcm_u8": {tagPCM, 1, 8}, "pcm_s16le": {tagPCM, 2, 16}, "pcm_s24le": {tagPCM, 3, 24},
		"pcm_s32le": {tagPCM, 4, 32},
		"pcm_f32le": {tagFloat, 4, 32}, "pcm_f64le": {tagFloat, 8, 64}, "mulaw": {tagMuLaw, 1, 8},
		"alaw":          {tagALaw, 1, 8},
		"adpcm_ima_wav": {tagIMAADPCM, 256, 4}, "adpcm_ms": {tagMSADPCM, 256, 4},
	} {
		const channels, rate = 1, 8000
		fmtChunk := le.AppendUint16(nil, format.tag)
		fmtChunk = le.AppendUint16(fmtChunk, channels)
		fmtChunk = le.AppendUint32(fmtChunk, rate)
		fmtChunk = le.AppendUint32(fmtChunk, rate*uint32(format.align)) // bytes per second
		fmtChunk = le.AppendUint16(fmtChunk, format.align)
		fmtChunk = le.AppendUint16(fmtChunk, format.bits)

		blocks := len(noise) / int(format.align)
		data := noise[:blocks*int(format.align)]
		file := []byte(riff(piece("fmt ", string(fmtChunk)), piece("data", string(data))))
		facts, err := Parse(bytes.NewReader(file), int64(len(file)))
		if err != nil || facts.Codec != codec {
			t.Fatalf("%s: %+v, %v", codec, facts, err)
		}
		made[codec] = struct {
			file  []byte
			facts Facts
		}{file, facts}
	}

	return made
}

// BenchmarkView reads views from start to end. MB/s counts the bytes of the view.
func BenchmarkView(b *testing.B) {
	for codec, audio := range audioFiles(b) {
		b.Run(codec, func(b *testing.B) {
			s, _ := mustOpen(b, audio.file, audio.facts, nil)
			v := NewView(s)
			buf := make([]byte, 32<<10)
			b.SetBytes(v.Size())
			b.ReportAllocs()

			for b.Loop() {
				if _, err := v.Seek(0, io.SeekStart); err != nil {
					b.Fatal(err)
				}
				for {
					if _, err := v.Read(buf); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(int64(b.N)*s.Frames()), "ns/frame")
		})
	}
}

// TestReadingAllocatesNothing shows that reading allocates no memory, whatever the codec.
func TestReadingAllocatesNothing(t *testing.T) {
	for codec, audio := range audioFiles(t) {
		s, _ := mustOpen(t, audio.file, audio.facts, nil)
		for _, source := range []Source{s, Leg(s, 1)} {
			v := NewView(source)
			readView(t, source)
			buf, at := make([]byte, 10_000), int64(0)
			allocated := testing.AllocsPerRun(50, func() {
				at = (at + 33_333) % (v.Size() - int64(len(buf)))
				if _, err := v.Seek(at, io.SeekStart); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(v, buf); err != nil {
					t.Fatal(err)
				}
			})

			if allocated != 0 {
				t.Errorf("%s: %v allocations for a range, want none", codec, allocated)
			}
		}
	}
}

// TestReadingOnReadsOnce shows that sequential reads of a view read the file only once.
func TestReadingOnReadsOnce(t *testing.T) {
	for codec, audio := range audioFiles(t) {
		s, read := mustOpen(t, audio.file, audio.facts, nil)
		v := NewView(s)
		for buf := make([]byte, 1001); ; {
			if _, err := v.Read(buf); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		// With codecs whose samples are independent, a frame that is split across two reads is read
		// from the file twice.
		if most := len(audio.file) + len(audio.file)/50 + windowBytes; read.bytes > most {
			t.Errorf("%s: %d bytes were read of %d, want most of them once", codec, read.bytes, len(audio.file))
		}
	}
}
