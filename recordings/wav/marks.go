package wav

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// In recordings of up to two hours, marks are markSeconds apart. Longer recordings have at most
// maxMarks marks, which are farther apart.
const (
	markSeconds = 4
	maxMarks    = 2048
)

// A resumable is a decoder that needs the earlier blocks to decode a block.
type resumable interface {
	decoder
	reset()                   // resets the state to the start of the audio
	save(state []byte) []byte // appends the current state, which always has the same size
	restore(state []byte)     // restores a saved state; any other bytes lead to a safe state
}

// marks contains saved states of a decoder at blocks where it can resume. It also tracks the
// position of the decoder.
type marks struct {
	decoder resumable
	blocks  int64 // number of blocks in the audio
	next    int64 // number of the next block to decode
	step    int64 // number of blocks between marks; the start has no mark
	size    int   // bytes per state
	states  []byte
}

func newMarks(d resumable, blocks int64, blocksPerSecond int) *marks {
	d.reset()
	return &marks{
		decoder: d,
		blocks:  blocks,
		step:    max(1, markSeconds*int64(blocksPerSecond)),
		size:    len(d.save(nil)),
	}
}

// seek moves the decoder to the nearest block, at or before block n, where it can resume without
// decoding anything. It returns the number of this block.
func (m *marks) seek(n int64) int64 {
	mark := min(n/m.step, m.count())
	isNearer := m.next <= n && m.next >= mark*m.step // the current position, compared to the mark
	if isNearer {
		return m.next
	}
	if mark == 0 {
		m.decoder.reset()
	} else {
		m.decoder.restore(m.states[int(mark-1)*m.size:][:m.size])
	}
	m.next = mark * m.step
	return m.next
}

func (m *marks) count() int64 { return int64(len(m.states) / m.size) }

// passed records that block n was decoded. If a mark is due after the block, passed adds it.
func (m *marks) passed(n int64) {
	m.next = n + 1
	if m.next != (m.count()+1)*m.step || m.next >= m.blocks {
		return
	}
	m.states = m.decoder.save(m.states)
	if m.count() == maxMarks {
		m.thin()
	}
}

// thin removes every second mark.
func (m *marks) thin() {
	for i := range maxMarks / 2 {
		copy(m.states[i*m.size:], m.states[(2*i+1)*m.size:][:m.size])
	}
	m.states = m.states[:maxMarks/2*m.size]
	m.step *= 2
}

// An index consists of a magic string, three numbers that identify the audio, the step, a checksum of
// 4 bytes, and the states.
const (
	indexMagic = "selvage marks 1\n"
	indexHead  = len(indexMagic) + 4*8 + 4
)

// index returns an index with the marks, or nil if marks are missing. f describes the
// audio.
func (m *marks) index(f Facts) []byte {
	if m.count() == 0 || m.count() != (m.blocks-1)/m.step {
		return nil
	}
	b := make([]byte, 0, indexHead+len(m.states))
	b = append(b, headOfIndex(f, m.step)...)
	b = binary.LittleEndian.AppendUint32(b, checksum(f, b, m.states))
	return append(b, m.states...)
}

// headOfIndex returns the part of an index before the checksum.
func headOfIndex(f Facts, step int64) []byte {
	b := []byte(indexMagic)
	for _, n := range []int64{f.Offset, f.Length, int64(f.BlockAlign), step} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// checksum returns the checksum of an index.
func checksum(f Facts, head, states []byte) uint32 {
	sum := crc32.ChecksumIEEE([]byte(f.Codec))
	sum = crc32.Update(sum, crc32.IEEETable, head)
	return crc32.Update(sum, crc32.IEEETable, states)
}

// use replaces the marks with those in an index, if the index is intact and belongs to this audio.
// It does not copy the states.
func (m *marks) use(index []byte, f Facts) {
	le := binary.LittleEndian
	if len(index) < indexHead {
		return
	}
	head, states := index[:indexHead-4], index[indexHead:]
	if le.Uint32(index[indexHead-4:]) != checksum(f, head, states) {
		return
	}

	step := int64(le.Uint64(head[len(head)-8:]))
	if step < m.step || !bytes.Equal(head, headOfIndex(f, step)) {
		return
	}
	if int64(len(states)) != (m.blocks-1)/step*int64(m.size) {
		return
	}
	m.step = step
	m.states = states[:len(states):len(states)]
}
