package levels

import "math"

// Constants of BS.1770-4, in LUFS or LU.
const (
	absoluteGate = -70.0  // quieter blocks are ignored
	relativeGate = -10.0  // below the loudness of all blocks
	offset       = -0.691 // from the power of a block to its loudness
)

// The histogram of loudness extends from absoluteGate to loudest.
const (
	loudest   = 30
	binsPerLU = 100
)

// A loudness measures the integrated loudness of BS.1770-4. It collects the loudness of overlapping
// blocks of 400 ms. A block consists of four hops of 100 ms, and each hop begins another block.
type loudness struct {
	slots  int                                          // number of slots in the current hop
	hop    float64                                      // sum of the powers of these slots
	hops   [4]float64                                   // powers of the last four hops, as a ring
	count  int                                          // number of complete hops
	blocks [(loudest - absoluteGate) * binsPerLU]uint32 // histogram
}

const slotsPerHop = slotsPerSecond / 10

// addSlot adds a slot with the given power, which is the sum over all channels.
func (l *loudness) addSlot(power float64) {
	l.hop += power
	l.slots++
	if l.slots < slotsPerHop {
		return
	}

	l.hops[l.count%len(l.hops)] = l.hop / slotsPerHop
	l.count++
	l.slots = 0
	l.hop = 0
	if l.count < len(l.hops) {
		return
	}

	var block float64
	for _, hop := range l.hops {
		block += hop / float64(len(l.hops))
	}
	if lufs := offset + decibels(block); lufs > absoluteGate {
		l.blocks[min(int((lufs-absoluteGate)*binsPerLU), len(l.blocks)-1)]++
	}
}

// integrated returns the loudness of the blocks that pass both gates. If there are none, it returns
// NaN.
func (l *loudness) integrated() float64 {
	gate := l.meanFrom(0) + relativeGate
	return l.meanFrom(max(0, int(math.Ceil((gate-absoluteGate)*binsPerLU))))
}

// meanFrom returns the mean loudness of the blocks in a bin of the histogram and all higher bins. If
// they contain no blocks, it returns NaN.
func (l *loudness) meanFrom(bin int) float64 {
	var power, blocks float64
	for i := bin; i < len(l.blocks); i++ {
		if l.blocks[i] == 0 {
			continue
		}
		n := float64(l.blocks[i])
		lufs := absoluteGate + (float64(i)+0.5)/binsPerLU // of the middle of the bin
		power += n * math.Pow(10, lufs/10)
		blocks += n
	}
	return 10 * math.Log10(power/blocks)
}
