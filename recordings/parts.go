package recordings

// The parts of a recording's media: what was learnt from its bytes as they came in.
const (
	peaksPart = "peaks" // the outline of the sound
	indexPart = "index" // checkpoints of the decoder, for codecs that need some
)

var partNames = []string{peaksPart, indexPart}
