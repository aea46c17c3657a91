package mp3

import "math/bits"

// A code is a Huffman code. It contains the right-aligned bits and their number.
type code struct {
	bits uint32
	len  uint8
}

// A book is one of the tables for coding pairs of values (ISO 11172-3, table B.7). The code for x
// and y is codes[16x+y], without the signs and the linbits.
type book struct {
	codes   [256]code
	linbits int
}

var (
	books = allBooks()
	quads = [2][16]code{quadBook(2742), quadBook(2773)} // from the roots of tables A and B
	// linbits16 contains the linbits of the tables 16 to 23. linbits24 contains the linbits of the
	// tables 24 to 31. The tables in each group have the same codes.
	linbits16 = [8]int{1, 2, 3, 4, 6, 8, 10, 13}
	linbits24 = [8]int{4, 5, 6, 7, 8, 9, 11, 13}
)

// allBooks reads the tables for pairs. The roots are indexes of nodes in trees.
func allBooks() *[32]book {
	var all [32]book
	roots := map[int]int{1: 0, 2: 7, 3: 24, 5: 41, 6: 72, 7: 103, 8: 174, 9: 245, 10: 316, 11: 443, 12: 570,
		13: 697, 15: 1208}
	for n, root := range roots {
		walk(root, 0, 0, func(leaf uint8, c code) { all[n].codes[leaf] = c })
	}
	for i := range 8 {
		walk(1719, 0, 0, func(leaf uint8, c code) { all[16+i].codes[leaf] = c })
		walk(2230, 0, 0, func(leaf uint8, c code) { all[24+i].codes[leaf] = c })
		all[16+i].linbits, all[24+i].linbits = linbits16[i], linbits24[i]
	}
	return &all
}

func quadBook(root int) (b [16]code) {
	walk(root, 0, 0, func(leaf uint8, c code) { b[leaf] = c })
	return b
}

// walk calls visit for each leaf below a node, with the code of the leaf.
func walk(node int, prefix uint32, length uint8, visit func(leaf uint8, c code)) {
	v := trees[node]
	if v&0xff00 == 0 {
		visit(uint8(v), code{prefix, length})
		return
	}
	walk(branch(node, 8), prefix<<1, length+1, visit)
	walk(branch(node, 0), prefix<<1|1, length+1, visit)
}

// branch returns the child of a node for the bit 0, if shift is 8, or for the bit 1, if shift is 0.
func branch(node, shift int) int {
	for trees[node]>>shift&0xff >= 250 {
		node += int(trees[node] >> shift & 0xff)
	}
	return node + int(trees[node]>>shift&0xff)
}

// A choice is a group of tables that can code values up to the same maximum. lens contains the
// length of each pair's code, including signs. A word contains the lengths for all tables in the
// group with 16 bits each, so that one addition is enough for all of them.
type choice struct {
	tables [3]int
	count  int
	lens   [256]uint64
}

// choiceOf maps the largest value in a region to the index of its choice in choices. The last choice
// is for values above 15.
var (
	choices  = allChoices()
	choiceOf = [16]uint8{0, 0, 1, 2, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5}
)

func allChoices() *[7]choice {
	var all [7]choice
	for i, tables := range [][]int{{1}, {2, 3}, {5, 6}, {7, 8, 9}, {10, 11, 12}, {13, 15}, {16, 24}} {
		c := &all[i]
		c.count = copy(c.tables[:], tables)

		for pair := range c.lens {
			for t, n := range tables {
				length := uint64(books[n].codes[pair].len)
				if pair>>4 > 0 {
					length++
				}
				if pair&15 > 0 {
					length++
				}
				c.lens[pair] |= length << (16 * t)
			}
		}
	}
	return &all
}

// quadLens contains the code lengths of four values of at most 1 in both tables, including signs.
// The length for the second table is in the upper half of the word.
var quadLens = allQuadLens()

func allQuadLens() (lens [16]uint32) {
	for v := range lens {
		signs := uint32(bits.OnesCount(uint(v)))
		lens[v] = uint32(quads[0][v].len) + signs | (uint32(quads[1][v].len)+signs)<<16
	}
	return lens
}

// pairBits returns the best table for the values in q, and the number of bits that the values take
// with this table. q has an even number of values, and top is the largest.
func pairBits(q []uint16, top uint16) (table, length int) {
	if top == 0 {
		return 0, 0
	}
	if top > 15 {
		return longBits(q, top)
	}

	c := &choices[choiceOf[top]]
	sum := uint64(0)
	for i := 1; i < len(q); i += 2 {
		sum += c.lens[uint8(q[i-1]<<4|q[i])]
	}
	table, length = c.tables[0], int(sum&0xffff)

	for i := 1; i < c.count; i++ {
		if n := int(sum >> (16 * i) & 0xffff); n < length {
			table, length = c.tables[i], n
		}
	}
	return table, length
}

// longBits is like pairBits, for regions with values above 15. These are coded as 15, and linbits
// contain the excess.
func longBits(q []uint16, top uint16) (table, length int) {
	lens := &choices[6].lens
	sum, escapes := uint64(0), 0
	for i := 1; i < len(q); i += 2 {
		x, y := q[i-1], q[i]
		if x >= 15 {
			x = 15
			escapes++
		}
		if y >= 15 {
			y = 15
			escapes++
		}
		sum += lens[uint8(x<<4|y)]
	}

	need := bits.Len16(top - 15)
	a, b := 0, 0
	for linbits16[a] < need {
		a++
	}
	for linbits24[b] < need {
		b++
	}

	lengthA := int(sum&0xffff) + escapes*linbits16[a]
	lengthB := int(sum>>16&0xffff) + escapes*linbits24[b]
	if lengthA <= lengthB {
		return 16 + a, lengthA
	}
	return 24 + b, lengthB
}

// quadBits returns the better table for coding values of at most 1 in groups of four, and the number
// of bits that they take.
func quadBits(q []uint16) (table, length int) {
	sum := uint32(0)
	for i := 3; i < len(q); i += 4 {
		sum += quadLens[(q[i-3]<<3|q[i-2]<<2|q[i-1]<<1|q[i])&15]
	}
	if second := int(sum >> 16); second < int(sum&0xffff) {
		return 1, second
	}
	return 0, int(sum & 0xffff)
}
