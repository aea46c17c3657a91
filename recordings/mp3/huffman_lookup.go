package mp3

import "sync"

// A lookup decodes the codes of a book. The next bits of the stream select an entry. An entry
// contains either the value and the length of a code, or the index of a table for the next bits.
type lookup struct {
	entries []lookupEntry
	bits    int // number of bits that select an entry of the first table
}

// A lookupEntry is a code, or a reference to a table.
type lookupEntry struct {
	at    uint16 // value of the code, or index of the table
	bits  uint8  // length of the code within this table, or number of bits that select from the table
	table bool
}

// lookupBits is the number of bits that select an entry of a table.
const lookupBits = 8

// find returns the value and the length of the code at the beginning of peek.
func (l *lookup) find(peek uint32) (value, length int) {
	e := l.entries[peek>>(32-l.bits)]
	used := 0
	for width := l.bits; e.table; {
		used += width
		peek <<= width
		width = int(e.bits)
		e = l.entries[int(e.at)+int(peek>>(32-width))]
	}
	return int(e.at), used + int(e.bits)
}

// newLookup returns the lookup for codes. The value of a code is its index in codes.
func newLookup(codes []code) lookup {
	var l lookup
	l.bits = l.add(codes, 0, 0)
	return l
}

// add appends the table for the codes that begin with a prefix. It returns how many bits select an
// entry.
func (l *lookup) add(codes []code, prefix uint32, length int) (width int) {
	longest := 0
	for _, c := range codes {
		if c.hasPrefix(prefix, length) {
			longest = max(longest, int(c.len)-length)
		}
	}
	width = min(longest, lookupBits)

	start := len(l.entries)
	l.entries = append(l.entries, make([]lookupEntry, 1<<width)...)
	for value, c := range codes {
		if rest := int(c.len) - length; c.hasPrefix(prefix, length) && rest <= width {
			first := int(c.bits) & (1<<rest - 1) << (width - rest)
			for i := range 1 << (width - rest) {
				l.entries[start+first+i] = lookupEntry{at: uint16(value), bits: uint8(rest)}
			}
		}
	}

	for i := range 1 << width {
		if l.entries[start+i].bits == 0 {
			at := len(l.entries)
			bits := l.add(codes, prefix<<width|uint32(i), length+width)
			l.entries[start+i] = lookupEntry{at: uint16(at), bits: uint8(bits), table: true}
		}
	}
	return width
}

// hasPrefix reports whether a code is longer than the prefix and begins with it.
func (c code) hasPrefix(prefix uint32, length int) bool {
	return int(c.len) > length && c.bits>>(int(c.len)-length) == prefix
}

// A tables holds the tables for decoding. They are computed when the first file is decoded.
type tables struct {
	pairs  [32]*lookup // nil for tables 0, 4 and 14
	quads  [2]lookup
	powers [maxValue + 1 + 1<<13]float32 // values to the power of 4/3
}

var decoding = sync.OnceValue(func() *tables {
	t := new(tables)
	shared := make(map[int]*lookup)
	for n := range books {
		same := n // the first table with the same codes
		if n >= 16 {
			same = n &^ 7
		}
		if shared[same] == nil && books[n].codes != [256]code{} {
			l := newLookup(books[n].codes[:])
			shared[same] = &l
		}
		t.pairs[n] = shared[same]
	}

	for i := range t.quads {
		t.quads[i] = newLookup(quads[i][:])
	}
	for i := range t.powers {
		t.powers[i] = float32(float64(i) * cubeRoot(float64(i)))
	}
	return t
})

// cubeRoot returns the cube root of x. The result is the same on all machines.
func cubeRoot(x float64) float64 {
	if x == 0 {
		return 0
	}
	r := max(1, x/400)
	for range 40 { // Newton's method
		square := float64(r * r)
		r -= (float64(square*r) - x) / float64(3*square)
	}
	return r
}
