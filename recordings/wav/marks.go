package wav

import (
	"encoding/binary"
	"hash/crc32"
)

// Marks are markSeconds apart in recordings of up to two hours; longer ones have
// them farther apart, so that there are never more than maxMarks.
const (
	markSeconds = 4
	maxMarks    = 2048
)

// A stateful decoder decodes a block according to those before it.
type stateful interface {
	decoder
	reset()                   // to the start of the audio
	save(state []byte) []byte // appends how it stands, always in as many bytes
	restore(state []byte)     // takes that back; of what it did not write, something that is safe
}

// marks are the states of a decoder at some blocks, from which it goes on, and
// where it stands.
type marks struct {
	decoder stateful
	blocks  int64 // in the audio
	next    int64 // the block that the decoder stands before
	step    int64 // blocks from one mark to the next; the start needs none
	size    int   // of a state
	states  []byte
}

func newMarks(d stateful, blocks int64, blocksPerSecond int) *marks {
	d.reset()
	return &marks{decoder: d, blocks: blocks, step: max(1, markSeconds*int64(blocksPerSecond)),
		size: len(d.save(nil))}
}

// seek brings the decoder as near before block n as it can without decoding, and
// gives the block that it stands before.
func (m *marks) seek(n int64) int64 {
	mark := min(n/m.step, m.count())
	switch {
	case m.next <= n && m.next >= mark*m.step: // it goes on from where it is
	case mark == 0:
		m.decoder.reset()
		m.next = 0
	default:
		m.decoder.restore(m.states[int(mark-1)*m.size:][:m.size])
		m.next = mark * m.step
	}
	return m.next
}

func (m *marks) count() int64 { return int64(len(m.states) / m.size) }

// passed notes that block n is decoded, and marks the place if it is the next one
// to be marked.
func (m *marks) passed(n int64) {
	m.next = n + 1
	if m.next != (m.count()+1)*m.step || m.next >= m.blocks {
		return
	}
	if m.states = m.decoder.save(m.states); m.count() == maxMarks {
		m.thin()
	}
}

// thin drops every second mark.
func (m *marks) thin() {
	for i := range maxMarks / 2 {
		copy(m.states[i*m.size:], m.states[(2*i+1)*m.size:][:m.size])
	}
	m.states, m.step = m.states[:maxMarks/2*m.size], 2*m.step
}

// An index is written as what it is and of which audio, and the states; a number
// of four bytes that sums all up stands before the states.
const (
	indexMagic = "selvage marks 1\n"
	indexHead  = len(indexMagic) + 4*8 + 4
)

// index writes the marks of the audio with some facts, nil if there are none or
// not all.
func (m *marks) index(f Facts) []byte {
	if m.count() == 0 || m.count() != (m.blocks-1)/m.step {
		return nil
	}
	b := m.head(f)
	return append(binary.LittleEndian.AppendUint32(b, m.sum(f, b, m.states)), m.states...)
}

// head is an index up to its sum.
func (m *marks) head(f Facts) []byte {
	b := append(make([]byte, 0, indexHead+len(m.states)), indexMagic...)
	for _, n := range []int64{f.Offset, f.Length, int64(f.BlockAlign), m.step} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func (m *marks) sum(f Facts, head, states []byte) uint32 {
	sum := crc32.ChecksumIEEE([]byte(f.Codec))
	sum = crc32.Update(sum, crc32.IEEETable, head)
	return crc32.Update(sum, crc32.IEEETable, states)
}

// use takes the marks of an index, if it is whole and of this audio. The states
// are not copied.
func (m *marks) use(index []byte, f Facts) {
	if len(index) < indexHead {
		return
	}
	states := index[indexHead:]
	stepped := *m
	stepped.step = int64(binary.LittleEndian.Uint64(index[indexHead-12:]))
	switch {
	case stepped.step < m.step, int64(len(states)) != (m.blocks-1)/stepped.step*int64(m.size):
	case string(stepped.head(f)) != string(index[:indexHead-4]):
	case stepped.sum(f, index[:indexHead-4], states) == binary.LittleEndian.Uint32(index[indexHead-4:]):
		m.step, m.states = stepped.step, states[:len(states):len(states)]
	}
}
