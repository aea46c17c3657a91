package opus

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/servers"
)

// corpus returns a file of the corpus.
func corpus(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ffmpeg returns the output of ffmpeg. In args, %in stands for a file with the content in.
func ffmpeg(t testing.TB, in []byte, args string) []byte {
	t.Helper()
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		servers.Missing(t, "the command ffmpeg")
	}

	name := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(name, in, 0o600); err != nil {
		t.Fatal(err)
	}

	c := exec.Command("ffmpeg", strings.Fields("-v error "+strings.ReplaceAll(args, "%in", name)+" -")...)
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		t.Fatalf("ffmpeg %s: %v: %s", args, err, complaints.Bytes())
	}
	return out
}

// open opens a file in memory.
func open(t testing.TB, b []byte) *Source {
	t.Helper()
	s, err := Open(bytes.NewReader(b), int64(len(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// samplesOf returns all samples of a source.
func samplesOf(t testing.TB, s *Source) []int16 {
	t.Helper()
	samples := make([]int16, s.Frames()*int64(s.Channels()))
	if n, err := s.ReadFrames(samples, 0); err != nil || int64(n) != s.Frames() {
		t.Fatalf("ReadFrames = %d, %v, want %d frames", n, err, s.Frames())
	}
	return samples
}

// packetsOf returns the packets of a file, including its two headers.
func packetsOf(t testing.TB, b []byte) (packets [][]byte) {
	t.Helper()
	w := newWindow(bytes.NewReader(b), int64(len(b)))
	h, err := readHead(w)
	if err != nil {
		t.Fatal(err)
	}

	pages := walker{window: w, serial: h.serial}
	for {
		_, err := pages.nextPage()
		if err == io.EOF {
			return packets
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pages.packets {
			packets = append(packets, bytes.Clone(p))
		}
	}
}

// A muxer writes an Ogg file.
type muxer struct {
	file         bytes.Buffer
	segments     int   // maximum number of segments in a page
	granule      int64 // position at the end of the last packet
	laces        []byte
	body         []byte
	ends         bool // whether a packet ends in the current page
	beginsWithin bool // whether the current page begins within a packet
}

// mux returns a file with these packets. Audio begins at position start. Each page has at most the
// given number of segments.
func mux(packets [][]byte, start int64, segments int) []byte {
	m := &muxer{segments: segments}
	for i, p := range packets {
		if i == 2 {
			m.granule = start
		}
		m.packet(p)
		if i < 2 { // headers have their own pages
			m.flush(false)
		}
	}
	m.flush(false)
	return m.file.Bytes()
}

// packet adds a packet to the current page. It flushes each page that is full.
func (m *muxer) packet(p []byte) {
	rest := p
	for {
		if len(m.laces) == m.segments {
			m.flush(len(rest) != len(p))
		}
		n := min(255, len(rest))
		m.laces = append(m.laces, byte(n))
		m.body = append(m.body, rest[:n]...)
		rest = rest[n:]
		if n < 255 {
			break
		}
	}
	m.granule += int64(duration(p))
	m.ends = true
}

// flush writes the current page. within is true if the next page begins within a packet.
func (m *muxer) flush(within bool) {
	if len(m.laces) == 0 {
		return
	}
	le := binary.LittleEndian
	granule := m.granule
	if !m.ends {
		granule = -1
	}

	flags := byte(0)
	if m.beginsWithin {
		flags = 1
	}

	m.file.WriteString("OggS\x00")
	m.file.WriteByte(flags)
	m.file.Write(le.AppendUint64(nil, uint64(granule)))
	m.file.Write(append([]byte("one!"), make([]byte, 8)...)) // serial, sequence and checksum
	m.file.WriteByte(byte(len(m.laces)))
	m.file.Write(m.laces)
	m.file.Write(m.body)
	m.laces, m.body = nil, nil
	m.ends, m.beginsWithin = false, within
}
