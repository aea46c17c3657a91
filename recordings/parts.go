package recordings

// The parts kept with a recording's media. They are computed when it is uploaded.
const (
	peaksPart = "peaks" // the outline of the waveform
	indexPart = "index" // checkpoints of the decoder, for codecs that need them
)

var partNames = []string{peaksPart, indexPart}
