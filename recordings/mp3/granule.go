package mp3

import "math"

// A granule contains 576 lines of one channel with their side information.
type granule struct {
	kind  int // window type
	edges []int
	lines [576]float32 // in frame order
	mags  [576]float32 // |line|^(3/4), with scale factors applied
	q     [576]uint16  // quantized mags
	used  int          // number of lines up to the last nonzero one, rounded up to an even number

	gain     int         // global_gain
	minGain  int         // lowest gain at which all values can be coded
	heights  [39]float32 // levels of the bands above their noise, as exponents of 2
	offset   int         // gain relative to the frame's other granules
	sf       [39]uint8
	scale    int // scalefac_scale
	subGain  [3]int
	compress int // scalefac_compress
	groups   [4]group
	sfBits   int

	big       int    // number of lines coded in pairs
	quads     int    // number of lines coded in pairs or in groups of four
	regions   [2]int // region0_count, region1_count
	first     int    // start of the second region if the window is not normal
	ends      [2]int // ends of the first two regions
	tables    [3]int
	quadTable int
	bits      int // part2_3_length
}

const (
	maxValue  = 8191 + 15
	maxBits   = 4095
	rounding  = 0.4054 // below 0.5, because decoders raise values to the power of 4/3
	unit      = 150    // gain at which a step is one unit of a 16-bit sample
	floorGain = unit - 12
)

// steps contains the factor by which mags are multiplied for each gain.
var steps = allSteps()

func allSteps() (s [256]float32) {
	for gain := range s {
		s[gain] = float32(exp2(-3 * (gain - unit)))
	}
	return s
}

// computeMags computes mags from lines.
func (g *granule) computeMags() {
	used := 0
	for i, x := range &g.lines {
		x = float32(math.Abs(float64(x)))
		r := float32(math.Sqrt(float64(x)))
		g.mags[i] = float32(math.Sqrt(float64(float32(x * r))))
		if x > 0.01 {
			used = i + 1
		}
	}
	g.used = (used + 1) &^ 1
}

// findMinGain finds the lowest gain at which the largest value can be coded.
func (g *granule) findMinGain() {
	top := float32(0)
	for _, m := range g.mags[:g.used] {
		top = max(top, m)
	}
	g.minGain = floorGain
	for g.minGain < 255 && float32(top*steps[g.minGain]) > maxValue {
		g.minGain++
	}
}

// quantize sets the gain, quantizes the values, and counts their bits.
func (g *granule) quantize(gain int) {
	g.gain = gain
	step := steps[gain]
	used := g.used
	for used > 0 && float32(g.mags[used-1]*step) < 1-rounding {
		used--
	}

	mags, q := g.mags[:used], g.q[:used]
	for i, m := range mags {
		q[i] = uint16(int32(float32(m*step) + rounding))
	}

	for ; used&3 != 0; used++ {
		g.q[used] = 0
	}
	g.count(used)
}

// count counts the bits of the values. All values from used on are 0.
func (g *granule) count(used int) {
	q := g.q[:used]
	big := used
	for big >= 4 && (q[big-1]|q[big-2]|q[big-3]|q[big-4]) <= 1 {
		big -= 4
	}
	if big >= 2 && (q[big-1]|q[big-2]) == 0 {
		big -= 2
	}

	quads := used
	if (quads-big)&3 != 0 { // a pair of zeros was omitted
		quads += 2
		if quads > 576 {
			quads = 576
			big += 2
		} else if quads > used {
			g.q[used], g.q[used+1] = 0, 0
		}
	}

	g.big, g.quads = big, quads
	n := 0
	g.quadTable, n = quadBits(g.q[big:quads])
	g.bits = g.sfBits + n + g.split()
}

// regionsOf returns how to divide this many bands into three regions. The results are
// region0_count and region1_count, which are one less than the number of bands in the first two.
func regionsOf(bands int) (first, second int) {
	first = max(0, bands/3-1)
	second = max(0, (bands-first-1)/2-1)
	return min(first, 15), min(second, 7)
}

// setRegions divides the pairs into regions. If the window is not normal, there are only two.
func (g *granule) setRegions() {
	if g.kind != normal {
		g.ends[0] = min(g.big, g.first)
		g.ends[1] = g.big
		return
	}

	bands := 0 // number of bands with pairs
	for g.edges[bands] < g.big {
		bands++
	}
	first, second := regionsOf(bands)
	g.regions[0] = first
	g.regions[1] = second
	g.ends[0] = min(g.big, g.edges[first+1])
	g.ends[1] = min(g.big, g.edges[first+second+2])
}

// split divides the pairs into regions and chooses a table for each region. It returns the total
// number of bits.
func (g *granule) split() (sum int) {
	g.setRegions()

	from := 0
	for i, to := range [3]int{g.ends[0], g.ends[1], g.big} {
		q := g.q[from:to]
		top := uint16(0)
		for _, v := range q {
			top = max(top, v)
		}
		n := 0
		g.tables[i], n = pairBits(q, top)
		sum += n
		from = to
	}

	if g.kind != normal && g.ends[0] == g.big {
		g.tables[1] = g.tables[0] // some decoders place the border elsewhere
	}
	return sum
}
