package wav

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
)

// An audioFile is a file in memory, with its facts.
type audioFile struct {
	file  []byte
	facts Facts
}

// audioFiles returns ten seconds of noise in each codec.
func audioFiles(t testing.TB) map[string]audioFile {
	t.Helper()
	random := rand.New(rand.NewPCG(11, 12))
	noise := make([]byte, 400_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}

	files := make(map[string]audioFile)
	for codec, file := range longFiles(t, 10) {
		files[codec] = audioFile{file, factsOf(t, codec, file)}
	}
	for codec, format := range map[string]struct{ tag, align, bits uint16 }{
		"pcm_u8":        {tagPCM, 1, 8},
		"pcm_s16le":     {tagPCM, 2, 16},
		"pcm_s24le":     {tagPCM, 3, 24},
		"pcm_s32le":     {tagPCM, 4, 32},
		"pcm_f32le":     {tagFloat, 4, 32},
		"pcm_f64le":     {tagFloat, 8, 64},
		"mulaw":         {tagMuLaw, 1, 8},
		"alaw":          {tagALaw, 1, 8},
		"adpcm_ima_wav": {tagIMAADPCM, 256, 4},
		"adpcm_ms":      {tagMSADPCM, 256, 4},
	} {
		const channels, rate = 1, 8000
		le := binary.LittleEndian
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
		if err != nil {
			t.Fatalf("%s: %v", codec, err)
		}
		if facts.Codec != codec {
			t.Fatalf("the codec is %s, want %s", facts.Codec, codec)
		}
		files[codec] = audioFile{file, facts}
	}
	return files
}

// readOnce reads a view from start to end, in pieces.
func readOnce(t testing.TB, v *View, buf []byte) {
	t.Helper()
	for {
		_, err := v.Read(buf)
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
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
				readOnce(b, v, buf)
			}
			frames := int64(b.N) * s.Frames()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
		})
	}
}

// TestReadingAllocatesNothing shows that reading allocates no memory with any codec.
func TestReadingAllocatesNothing(t *testing.T) {
	for codec, audio := range audioFiles(t) {
		s, _ := mustOpen(t, audio.file, audio.facts, nil)
		for _, source := range []Source{s, Leg(s, 1)} {
			v := NewView(source)
			readView(t, source)
			buf := make([]byte, 10_000)
			var offset int64
			allocated := testing.AllocsPerRun(50, func() {
				offset = (offset + 33_333) % (v.Size() - int64(len(buf)))
				if _, err := v.Seek(offset, io.SeekStart); err != nil {
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
		readOnce(t, NewView(s), make([]byte, 1001))

		// With codecs whose samples are independent, a frame that is split across two reads is read
		// from the file twice.
		limit := len(audio.file) + len(audio.file)/50 + windowBytes
		if read.bytes > limit {
			t.Errorf("%s: %d bytes were read, want at most %d", codec, read.bytes, limit)
		}
	}
}
