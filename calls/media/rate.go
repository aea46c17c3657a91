package media

// halfBand interpolates between two samples at 16 kHz, or removes frequencies above 4 kHz. It holds
// one half of a symmetric windowed sinc (Blackman), scaled so that the whole filter has the sum
// 2^15.
var halfBand = [8]int32{20531, -6023, 2783, -1322, 576, -212, 56, -5}

// A halfRate converts frames between 8 and 16 kHz, in one direction. Both directions delay the
// audio by a millisecond.
type halfRate struct {
	past [31]int16 // the last input samples, oldest first; 16 are used at 8 kHz
}

// double converts a frame from 8 to 16 kHz.
func (h *halfRate) double(dst *[frameSamples]int16, src *[frameBytes]int16) {
	past := h.past[:16]
	for i, v := range src {
		copy(past, past[1:])
		past[15] = v
		sum := int32(1 << 14)
		for k, c := range halfBand {
			sum += c * (int32(past[7-k]) + int32(past[8+k]))
		}
		dst[2*i], dst[2*i+1] = past[7], clip(int64(sum>>15))
	}
}

// halve converts a frame from 16 to 8 kHz. The middle of the filter is the sample itself.
func (h *halfRate) halve(dst *[frameBytes]int16, src *[frameSamples]int16) {
	for i := range dst {
		copy(h.past[:], h.past[2:])
		h.past[29], h.past[30] = src[2*i], src[2*i+1]
		sum := int64(h.past[15])<<15 + 1<<15
		for k, c := range halfBand {
			sum += int64(c) * (int64(h.past[14-2*k]) + int64(h.past[16+2*k]))
		}
		dst[i] = clip(sum >> 16)
	}
}

// clip limits a sample to 16 bits.
func clip(v int64) int16 { return int16(min(max(v, -1<<15), 1<<15-1)) }
