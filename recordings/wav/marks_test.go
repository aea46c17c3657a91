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
	files := map[string][]byte{"g722": make([]byte, 8000*seconds), "gsm": make([]byte, 50*gsmBytes*seconds),
		"gsm_ms": make([]byte, 25*65*seconds)}
	for _, codec := range []string{"g722", "gsm", "gsm_ms"} {
		for i := range files[codec] {
			files[codec][i] = byte(random.Uint32())
		}
	}
	return files
}

// factsOf returns the facts of one of the longFiles.
func factsOf(t testing.TB, codec string, file []byte) Facts {
	t.Helper()
	if codec == "gsm_ms" {
		f := Facts{Format: Format{Codec: codec, SampleRate: 8000, Channels: 1, BlockAlign: 65,
			BlockFrames: 320}, Length: int64(len(file))}
		f.count()
		return f
	}
	f, err := Headerless(codec, map[string]int{"g722": 16000, "gsm": 8000}[codec], 1, int64(len(file)))
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
			t.Errorf("%s: an index of %d bytes before anything was read", codec, len(got))
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
			at := random.IntN(len(whole) - 100)
			got := make([]int16, 100)
			with, read := mustOpen(t, file, facts, index)
			if n, err := with.ReadFrames(got, int64(at)); n != 100 || err != nil ||
				!slices.Equal(got, whole[at:at+100]) {
				t.Fatalf("%s: 100 samples from %d with an index differ from the whole, %v",
					codec, at, err)
			}
			if read.bytes > 5*windowBytes {
				t.Errorf("%s: reading 100 samples read %d bytes, want at most five windows", codec, read.bytes)
			}
			if again := with.Index(); !bytes.Equal(again, index) {
				t.Errorf("%s: the index was changed by its use", codec)
			}
		}
	}
}

// TestIndexIsChecked shows that a wrong or damaged index is ignored.
func TestIndexIsChecked(t *testing.T) {
	files := longFiles(t, 10)
	for codec, file := range files {
		facts := factsOf(t, codec, file)
		s, _ := mustOpen(t, file, facts, nil)
		whole := readView(t, s)
		index := s.Index()
		foreign := factsOf(t, codec, file[:len(file)-130*gsmBytes])
		stranger, _ := mustOpen(t, file[:len(file)-130*gsmBytes], foreign, nil)
		readView(t, stranger)
		damaged := map[string][]byte{"cut": index[:len(index)-1], "longer": append(slices.Clone(index), 0),
			"tiny": index[:3], "another's": stranger.Index()}

		for at := range index {
			if at < indexHead && at%4 == 0 || at%101 == 0 {
				b := slices.Clone(index)
				b[at] ^= 0x10
				damaged[fmt.Sprint("byte ", at)] = b
			}
		}

		for name, b := range damaged {
			s, read := mustOpen(t, file, facts, b)
			got := make([]int16, 10)
			at := facts.Frames - 20
			if _, err := s.ReadFrames(got, at); err != nil || !bytes.Equal(bytesOf(got), whole[44+2*at:][:20]) {
				t.Errorf("%s: a damaged index (%s) changes the samples, %v", codec, name, err)
			}
			if read.bytes < len(file)*9/10 {
				t.Errorf("%s: a damaged index (%s) was used", codec, name)
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

		index := m.index(Facts{})
		if len(index) == 0 || len(index) > 600_000 {
			t.Errorf("%s: the index of %d hours has %d bytes, want some, and at most 600,000", codec, hours,
				len(index))
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
	if m := s.blocks.marks; m.step != 4 || m.count() != (m.blocks-1)/4 {
		t.Errorf("%d marks, %d blocks apart, want %d, 4 apart", m.count(), m.step, (m.blocks-1)/4)
	}

	for n := range int64(maxMarks) {
		var got [gsmFrame]int16
		at := (2*n*997 + 1) % s.blocks.marks.blocks * gsmFrame
		if _, err := s.ReadFrames(got[:], at); err != nil ||
			!bytes.Equal(bytesOf(got[:]), whole[44+2*at:][:2*gsmFrame]) {
			t.Fatalf("the samples from %d differ from the whole, %v", at, err)
		}
	}
}

// FuzzIndex opens audio with arbitrary indexes, with a correct checksum.
func FuzzIndex(f *testing.F) {
	files := longFiles(f, 12)
	for codec, file := range files {
		s, _ := mustOpen(f, file, factsOf(f, codec, file), nil)
		readView(f, s)
		f.Add(codec, s.Index(), int64(80_000))
	}

	f.Fuzz(func(t *testing.T, codec string, index []byte, at int64) {
		file := files[codec]
		if file == nil {
			return
		}

		facts := factsOf(t, codec, file)
		s, _ := mustOpen(t, file, facts, nil)
		if m := s.blocks.marks; len(index) >= indexHead { // set the checksum, because only that is checked
			b := slices.Clone(index)
			binary.LittleEndian.PutUint32(b[indexHead-4:], m.sum(facts, b[:indexHead-4], b[indexHead:]))
			index = b
		}

		s, _ = mustOpen(t, file, facts, index)
		got := make([]int16, 500)
		if n, err := s.ReadFrames(got, at); at >= 0 && at < facts.Frames-500 && (n != 500 || err != nil) {
			t.Errorf("ReadFrames = %d, %v, want 500", n, err)
		}
	})
}
