package mp3

import "math"

// The level of noise in a band is the level of the band, raised to the power 0.3. Noise of the same
// level in all bands would be audible in bands where nothing masks it. Noise proportional to the
// level of the band would cost too many bits.
const (
	noiseExponent = 0.3
	quietest      = 1.0 // energy of a line below which the noise is flat
)

// log2 approximates the binary logarithm of x > 0, linearly between the powers of 2.
func log2(x float32) float32 {
	return float32(float32(int32(math.Float32bits(x))-0x3f800000) * (1.0 / (1 << 23)))
}

// shape chooses the scale factors so that the noise in a band depends on the energy of the band. It
// also sets the offset of the gain relative to other granules.
func (g *granule) shape(mpeg1 bool) {
	var levels [39]float32
	top := g.noiseLevels(&levels)
	g.offset = int(math.Floor(float64(float32(4*top)) + 0.5))
	g.subGain = [3]int{}

	scaled, wide := 21, 11
	if g.kind == short {
		scaled, wide = 36, 18
		g.shareWindows(&levels, top)
	}

	for b := range levels[:scaled] {
		if g.edges[b] < g.used {
			levels[b] = max(0, top-levels[b])
		} else {
			levels[b] = 0
		}
	}

	g.factors(levels[:scaled], wide)
	g.pack(mpeg1, scaled)
	g.amplify(scaled)
}

// noiseLevels computes the levels of noise as exponents of 2, and returns the highest level.
func (g *granule) noiseLevels(levels *[39]float32) (top float32) {
	for b := range len(g.edges) - 1 {
		sum := float32(0)
		from, to := g.edges[b], g.edges[b+1]
		for _, x := range g.lines[from:to] {
			sum += float32(x * x)
		}
		power := log2(max(quietest, sum/float32(to-from)))
		levels[b] = float32(noiseExponent / 2 * power)
		g.heights[b] = float32(0.5*power) - levels[b] + 0.5
		if from < g.used {
			top = max(top, levels[b])
		}
	}
	return top
}

// factors computes scale factors from depths. A depth is the distance between the noise of a band
// and the highest level, as an exponent of 2. The steps of the factors are 3 dB, or 6 dB if that
// range is too small. Factors have at most 4 bits in bands whose numbers are less than wide, and at
// most 3 bits in later bands.
func (g *granule) factors(depths []float32, wide int) {
	g.scale = 0
	for b, depth := range depths {
		if limit := factorLimit(b, wide); float32(2*depth) >= limit+0.5 {
			g.scale = 1
		}
	}
	for b, depth := range depths {
		if g.scale == 0 {
			depth = float32(2 * depth)
		}
		g.sf[b] = uint8(min(factorLimit(b, wide), float32(math.Floor(float64(depth)+0.5))))
	}
}

func factorLimit(b, wide int) float32 {
	if b < wide {
		return 15
	}
	return 7
}

// shareWindows sets the gains of the windows of short blocks, in steps of 12 dB. It raises the levels
// by these gains, so that the scale factors need to contain only the rest.
func (g *granule) shareWindows(levels *[39]float32, top float32) {
	for w := range 3 {
		highest := float32(math.Inf(-1))
		for b := w; b < 39; b += 3 {
			if g.edges[b] < g.used {
				highest = max(highest, levels[b])
			}
		}
		n := int(min(7, max(0, (top-highest)/2)))
		g.subGain[w] = n
		for b := w; b < 39; b += 3 {
			levels[b] += float32(2 * n)
		}
	}
}

// amplify multiplies mags by the scale factors.
func (g *granule) amplify(scaled int) {
	for b := range len(g.edges) - 1 {
		n := 0
		if b < scaled {
			n = 6 * int(g.sf[b]) * (1 + g.scale)
		}
		if g.kind == short {
			n += 24 * g.subGain[b%3]
		}
		if n == 0 {
			continue
		}

		factor := amplifiers[n]
		m := g.mags[g.edges[b]:g.edges[b+1]]
		for i := range m {
			m[i] = float32(m[i] * factor)
		}
	}
}

// amplifiers contains the powers 2^(n/16).
var amplifiers = func() (a [512]float32) {
	for n := range a {
		a[n] = float32(exp2(n))
	}
	return a
}()

// scaleLengths contains the lengths of scale factors in MPEG-1 in bits, for the lower and the upper
// bands, by scalefac_compress (ISO 11172-3, 2.4.2.7).
var scaleLengths = [16][2]int{
	{0, 0}, {0, 1}, {0, 2}, {0, 3}, {3, 0}, {1, 1}, {1, 2}, {1, 3},
	{2, 1}, {2, 2}, {2, 3}, {3, 1}, {3, 2}, {3, 3}, {4, 2}, {4, 3},
}

// A group is a run of scale factors with the same length. It ends before to.
type group struct{ to, length int }

// pack finds the shortest coding of the scale factors.
func (g *granule) pack(mpeg1 bool, scaled int) {
	if mpeg1 {
		g.pack1(scaled)
	} else {
		g.pack2()
	}
}

// pack1 packs the scale factors for MPEG-1, where two groups share a list of possible lengths.
func (g *granule) pack1(scaled int) {
	lower := 11
	if g.kind == short {
		lower = 18
	}
	lowerWidth := g.width(0, lower)
	upperWidth := g.width(lower, scaled)

	g.sfBits = 1 << 20
	for i, lengths := range scaleLengths {
		if lengths[0] < lowerWidth || lengths[1] < upperWidth {
			continue
		}
		bits := lengths[0]*lower + lengths[1]*(scaled-lower)
		if bits < g.sfBits {
			g.sfBits = bits
			g.compress = i
			g.groups = [4]group{{lower, lengths[0]}, {scaled, lengths[1]}, {scaled, 0}, {scaled, 0}}
		}
	}
}

// pack2 packs the scale factors for MPEG-2, where each of four groups has its own length (ISO
// 13818-3, 2.4.3.2).
func (g *granule) pack2() {
	borders := [5]int{0, 6, 11, 16, 21}
	if g.kind == short {
		borders = [5]int{0, 9, 18, 27, 36}
	}

	var lengths [4]int
	g.sfBits = 0
	for i := range lengths {
		from, to := borders[i], borders[i+1]
		lengths[i] = g.width(from, to)
		g.groups[i] = group{to, lengths[i]}
		g.sfBits += lengths[i] * (to - from)
	}
	g.compress = (lengths[0]*5+lengths[1])<<4 | lengths[2]<<2 | lengths[3]
}

// width returns the number of bits that the largest scale factor in the range needs.
func (g *granule) width(from, to int) (n int) {
	for _, v := range g.sf[from:to] {
		for v>>n != 0 {
			n++
		}
	}
	return n
}
