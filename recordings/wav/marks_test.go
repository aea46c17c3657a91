package wav

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// longFiles returns a file with noise of the given length for each codec with a state.
func longFiles(t testing.TB, seconds int) map[string][]byte {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 8))
	noise := func(length int) []byte {
		b := make([]byte, length)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	return map[string][]byte{
		"g722":   noise(8000 * seconds),
		"gsm":    noise(50 * gsmBytes * seconds),
		"gsm_ms": noise(25 * 65 * seconds),
	}
}

// factsOf returns the facts of one of the longFiles.
func factsOf(t testing.TB, codec string, file []byte) Facts {
	t.Helper()
	length := int64(len(file))
	if codec == "gsm_ms" {
		f := Facts{
			Format: Format{Codec: codec, SampleRate: 8000, Channels: 1, BlockAlign: 65, BlockFrames: 320},
			Length: length,
		}
		f.count()
		return f
	}
	rate := 8000
	if codec == "g722" {
		rate = 16000
	}
	f, err := Headerless(codec, rate, 1, length)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// having returns a function that returns index.
func having(index []byte) func() ([]byte, error) {
	return func() ([]byte, error) { return index, nil }
}

func mustOpen(t testing.TB, file []byte, f Facts, index []byte) (*Samples, *counted) {
	t.Helper()
	r := &counted{ReaderAt: bytes.NewReader(file)}
	s, err := Open(r, f, having(index))
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// TestIndex shows that the middle of a recording has the same samples with and without an index,
// and that reading it with an index reads only a small part of the file.
func TestIndex(t *testing.T) {
	for codec, file := range longFiles(t, 60) {
		facts := factsOf(t, codec, file)
		s, _ := mustOpen(t, file, facts, nil)
		if got := s.Index(); got != nil {
			t.Errorf("%s: an index of %d bytes before anything was read, want none", codec, len(got))
		}

		whole := make([]int16, facts.Frames)
		for at := 0; at < len(whole); at += 1000 {
			n := min(1000, len(whole)-at)
			if _, err := s.ReadFrames(whole[at:at+n], int64(at)); err != nil {
				t.Fatal(err)
			}
		}

		index := s.Index()
		if len(index) == 0 {
			t.Fatalf("%s: no index after everything was read", codec)
		}
		random := rand.New(rand.NewPCG(9, 10))

		for range 50 {
			first := random.IntN(len(whole) - 100)
			got := make([]int16, 100)
			indexed, file := mustOpen(t, file, facts, index)
			n, err := indexed.ReadFrames(got, int64(first))
			if err != nil || n != 100 {
				t.Fatalf("%s: reading 100 samples from %d = %d, %v, want 100", codec, first, n, err)
			}
			if !slices.Equal(got, whole[first:first+100]) {
				t.Fatalf("%s: 100 samples from %d with an index differ from the whole", codec, first)
			}
			if limit := 5 * windowBytes; file.bytes > limit {
				t.Errorf("%s: reading 100 samples read %d bytes, want at most %d", codec, file.bytes, limit)
			}
			if !bytes.Equal(indexed.Index(), index) {
				t.Errorf("%s: the index was changed by its use", codec)
			}
		}
	}
}

// TestIndexIsChecked shows that a wrong or damaged index is ignored.
func TestIndexIsChecked(t *testing.T) {
	for codec, file := range longFiles(t, 10) {
		facts := factsOf(t, codec, file)
		s, _ := mustOpen(t, file, facts, nil)
		whole := readView(t, s)
		index := s.Index()

		shorter := file[:len(file)-130*gsmBytes]
		other, _ := mustOpen(t, shorter, factsOf(t, codec, shorter), nil)
		readView(t, other)
		damaged := map[string][]byte{
			"truncated":       index[:len(index)-1],
			"longer":          append(slices.Clone(index), 0),
			"tiny":            index[:3],
			"of another file": other.Index(),
		}
		for i := range index {
			if i < indexHead && i%4 == 0 || i%101 == 0 {
				b := slices.Clone(index)
				b[i] ^= 0x10
				damaged[fmt.Sprint("byte ", i)] = b
			}
		}

		first := facts.Frames - 20
		want := whole[44+2*first:][:20]
		for name, b := range damaged {
			s, read := mustOpen(t, file, facts, b)
			got := make([]int16, 10)
			if _, err := s.ReadFrames(got, first); err != nil {
				t.Fatalf("%s: with a damaged index (%s): %v", codec, name, err)
			}
			if !bytes.Equal(bytesOf(got), want) {
				t.Errorf("%s: a damaged index (%s) changes the samples", codec, name)
			}
			if minimum := len(file) * 9 / 10; read.bytes < minimum {
				t.Errorf("%s: with a damaged index (%s), %d bytes are read, want at least %d, as without an index",
					codec, name, read.bytes, minimum)
			}
		}
	}
}

func bytesOf(samples []int16) (b []byte) {
	for _, s := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return b
}

// TestIndexIsBounded shows that the size of an index is bounded for recordings of any length.
func TestIndexIsBounded(t *testing.T) {
	const hours = 10
	for codec, perSecond := range map[string]int64{"g722": 50, "gsm": 50, "gsm_ms": 25} {
		m := newBlocks(bytes.NewReader(nil), factsOf(t, codec, nil)).marks
		m.blocks = hours * 3600 * perSecond

		for n := range m.blocks {
			m.passed(n)
		}

		if n := len(m.index(Facts{})); n == 0 || n > 600_000 {
			t.Errorf("%s: the index of %d hours has %d bytes, want 1 to 600,000", codec, hours, n)
		}
		if apart := m.step / perSecond; apart > 32 {
			t.Errorf("%s: marks of %d hours are %d s apart, want at most 32", codec, hours, apart)
		}
	}
}

// TestThinnedMarks shows that the remaining marks are still correct after thinning.
func TestThinnedMarks(t *testing.T) {
	file := longFiles(t, 2*maxMarks/50+1)["gsm"]
	facts := factsOf(t, "gsm", file)
	s, _ := mustOpen(t, file, facts, nil)
	s.blocks.marks.step = 1 // leads to more marks than are stored
	whole := readView(t, s)
	m := s.blocks.marks
	if want := (m.blocks - 1) / 4; m.step != 4 || m.count() != want {
		t.Errorf("%d marks, %d blocks apart, want %d marks, 4 blocks apart", m.count(), m.step, want)
	}

	for i := range int64(maxMarks) {
		var got [gsmFrame]int16
		first := (2*i*997 + 1) % m.blocks * gsmFrame
		if _, err := s.ReadFrames(got[:], first); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytesOf(got[:]), whole[44+2*first:][:2*gsmFrame]) {
			t.Fatalf("the samples from %d differ from the whole", first)
		}
	}
}

// FuzzIndex opens audio with arbitrary indexes that have a correct checksum.
func FuzzIndex(f *testing.F) {
	files := longFiles(f, 12)
	for codec, file := range files {
		s, _ := mustOpen(f, file, factsOf(f, codec, file), nil)
		readView(f, s)
		f.Add(codec, s.Index(), int64(80_000))
	}

	f.Fuzz(func(t *testing.T, codec string, index []byte, first int64) {
		file := files[codec]
		if file == nil {
			return
		}

		facts := factsOf(t, codec, file)
		if len(index) >= indexHead {
			index = slices.Clone(index)
			sum := checksum(facts, index[:indexHead-4], index[indexHead:])
			binary.LittleEndian.PutUint32(index[indexHead-4:], sum)
		}

		s, _ := mustOpen(t, file, facts, index)
		n, err := s.ReadFrames(make([]int16, 500), first)
		if first < 0 || first >= facts.Frames-500 {
			return
		}
		if err != nil || n != 500 {
			t.Errorf("ReadFrames = %d, %v, want 500", n, err)
		}
	})
}
