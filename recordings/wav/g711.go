package wav

// The samples of all codewords of ITU-T G.711, in 16 bits.
var (
	muLaw = expand(muLawSample)
	aLaw  = expand(aLawSample)
)

// expand returns the table of a law.
func expand(sample func(b byte) int16) *[256]int16 {
	var table [256]int16
	for i := range table {
		table[i] = sample(byte(i))
	}
	return &table
}

// muLawSample decodes mu-law (G.711, table 2): sign, three bits of exponent and four of mantissa,
// all inverted. It scales 14 bits to 16.
func muLawSample(b byte) int16 {
	b = ^b
	size := (int16(b&0x0F)<<3+0x84)<<(b>>4&7) - 0x84
	if b&0x80 != 0 {
		return -size
	}
	return size
}

// aLawSample decodes A-law (G.711, table 1), in which every second bit is inverted. It scales 13
// bits to 16.
func aLawSample(b byte) int16 {
	b ^= 0x55
	size := int16(b&0x0F)<<4 + 8
	if exponent := b >> 4 & 7; exponent > 0 {
		size = (size + 0x100) << (exponent - 1)
	}
	if b&0x80 == 0 {
		return -size
	}
	return size
}

// companded returns a decoder that uses a table.
func companded(table *[256]int16) func(dst []int16, src []byte) {
	return func(dst []int16, src []byte) {
		for i, b := range src[:len(dst)] {
			dst[i] = table[b]
		}
	}
}
