package wav

import (
	"cmp"
	"slices"
	"sync"
)

// Tables with the samples of all codewords of ITU-T G.711 as 16-bit numbers.
var (
	muLaw = expand(muLawSample)
	aLaw  = expand(aLawSample)
)

// expand returns the table for a law. sample decodes one codeword.
func expand(sample func(b byte) int16) *[256]int16 {
	var table [256]int16
	for i := range table {
		table[i] = sample(byte(i))
	}
	return &table
}

// muLawSample decodes mu-law (G.711, table 2): a sign, three bits of exponent and four bits of
// mantissa, all inverted. It scales 14 bits to 16.
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

// Tables with the codewords of both laws for the upper 14 bits of a sample.
var (
	muLawCodes = sync.OnceValue(func() *[1 << 14]byte { return invert(muLaw) })
	aLawCodes  = sync.OnceValue(func() *[1 << 14]byte { return invert(aLaw) })
)

// invert returns a table of codewords for the upper 14 bits of a sample. For each range of four
// samples, the table contains the codeword whose sample is nearest to the middle of the range.
func invert(samples *[256]int16) *[1 << 14]byte {
	byValue := make([]byte, len(samples))
	for i := range byValue {
		byValue[i] = byte(i)
	}
	slices.SortStableFunc(byValue, func(a, b byte) int { return cmp.Compare(samples[a], samples[b]) })

	var codes [1 << 14]byte
	near := 0
	for v := -1 << 13; v < 1<<13; v++ { // in ascending order, like byValue
		sample := 4*v + 2
		for near+1 < len(byValue) &&
			abs(int(samples[byValue[near+1]])-sample) <= abs(int(samples[byValue[near]])-sample) {
			near++
		}
		codes[uint16(v)&(1<<14-1)] = byValue[near]
	}
	return &codes
}

func abs(v int) int { return max(v, -v) }
