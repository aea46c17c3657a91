package mp3

// bands holds the edges of the scale factor bands at a sample rate. The lines from edge b up to edge
// b+1 share a scale factor, except that the last band has none.
type bands struct {
	long   [23]int // edges in a long block
	short  [14]int // edges in each window of short blocks
	triple [40]int // edges in short blocks, for all three windows; set by bandsOf

	// In a granule whose window is not normal, the second region of Huffman codes begins at a fixed
	// line: at regionShort if the granule has short blocks, and otherwise at regionLong. At 8 kHz,
	// the encoder puts all lines into the first region, because decoders disagree about this line.
	regionShort int
	regionLong  int
}

// The edges are from ISO 11172-3, table B.8, and from ISO 13818-3, table B.2. 8 kHz has its own
// edges in MPEG-2.5. 11.025 and 12 kHz use the edges of 16 kHz.
var (
	bands44 = bands{
		long: [23]int{0, 4, 8, 12, 16, 20, 24, 30, 36, 44, 52, 62, 74, 90, 110, 134, 162, 196, 238, 288, 342,
			418, 576},
		short:       [14]int{0, 4, 8, 12, 16, 22, 30, 40, 52, 66, 84, 106, 136, 192},
		regionShort: 36,
		regionLong:  36,
	}
	bands48 = bands{
		long: [23]int{0, 4, 8, 12, 16, 20, 24, 30, 36, 42, 50, 60, 72, 88, 106, 128, 156, 190, 230, 276, 330,
			384, 576},
		short:       [14]int{0, 4, 8, 12, 16, 22, 28, 38, 50, 64, 80, 100, 126, 192},
		regionShort: 36,
		regionLong:  36,
	}
	bands32 = bands{
		long: [23]int{0, 4, 8, 12, 16, 20, 24, 30, 36, 44, 54, 66, 82, 102, 126, 156, 194, 240, 296, 364,
			448, 550, 576},
		short:       [14]int{0, 4, 8, 12, 16, 22, 30, 42, 58, 78, 104, 138, 180, 192},
		regionShort: 36,
		regionLong:  36,
	}
	bands22 = bands{
		long: [23]int{0, 6, 12, 18, 24, 30, 36, 44, 54, 66, 80, 96, 116, 140, 168, 200, 238, 284, 336, 396,
			464, 522, 576},
		short:       [14]int{0, 4, 8, 12, 18, 24, 32, 42, 56, 74, 100, 132, 174, 192},
		regionShort: 36,
		regionLong:  54,
	}
	bands24 = bands{
		long: [23]int{0, 6, 12, 18, 24, 30, 36, 44, 54, 66, 80, 96, 114, 136, 162, 194, 232, 278, 332, 394,
			464, 540, 576},
		short:       [14]int{0, 4, 8, 12, 18, 26, 36, 48, 62, 80, 104, 136, 180, 192},
		regionShort: 36,
		regionLong:  54,
	}
	bands16 = bands{
		long: [23]int{0, 6, 12, 18, 24, 30, 36, 44, 54, 66, 80, 96, 116, 140, 168, 200, 238, 284, 336, 396,
			464, 522, 576},
		short:       [14]int{0, 4, 8, 12, 18, 26, 36, 48, 62, 80, 104, 134, 174, 192},
		regionShort: 36,
		regionLong:  54,
	}
	bands8 = bands{
		long: [23]int{0, 12, 24, 36, 48, 60, 72, 88, 108, 132, 160, 192, 232, 280, 336, 400, 476, 566, 568,
			570, 572, 574, 576},
		short:       [14]int{0, 8, 16, 24, 36, 52, 72, 96, 124, 160, 162, 164, 166, 192},
		regionShort: 576,
		regionLong:  576,
	}
)

// bandsByRate holds the bands by version and sampling frequency, both encoded as in the frame
// header. Version 1 is reserved.
var bandsByRate = [4][3]*bands{
	0: {&bands16, &bands16, &bands8},  // MPEG-2.5: 11.025, 12 and 8 kHz
	2: {&bands22, &bands24, &bands16}, // MPEG-2
	3: {&bands44, &bands48, &bands32}, // MPEG-1
}

// bandsOf returns the bands for a version and a sampling frequency, both encoded as in the frame
// header. The version must not be the reserved one.
func bandsOf(version, rateBits int) bands {
	b := *bandsByRate[version][rateBits]

	// In a short block, the lines of a band precede those of the next band. Within the band, the
	// windows follow each other. All windows have the same width.
	i := 0
	for band := range len(b.short) - 1 {
		width := b.short[band+1] - b.short[band]
		for window := range 3 {
			b.triple[i] = 3*b.short[band] + window*width
			i++
		}
	}
	b.triple[i] = 576
	return b
}
