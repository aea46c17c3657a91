package mp3

// An attack is a sudden rise or fall of the energy. In a long block, the noise of a rise would be
// audible before the rise, and the noise of a fall after the fall. Therefore, a granule with an
// attack has three short blocks.
//
// Attacks are found by comparing the energies of parts of a granule. They depend only on the
// samples.
const (
	partSamples   = 64
	partsPerThird = 3
	granuleParts  = 3 * partsPerThird // 576 samples

	// recentSamples is how far back recent energies extend, in samples for each kHz of the sample
	// rate. This is 12 ms, so that the pulses of a voice are not attacks.
	recentSamples = 12

	// filterDelay is the delay of the subbands in samples, measured at the middle of the window.
	filterDelay = 240

	riseFactor = 3   // minimum factor between an attack and the highest recent energy
	fallFactor = 5   // minimum factor between the lowest recent energy and a fall
	minEnergy  = 4e4 // minimum energy of a part in an attack
)

// A thirds is a set of thirds of a granule.
type thirds uint8

const (
	firstThird thirds = 1 << iota
	secondThird
	lastThird
)

// keptGranules is the number of granules whose results an attacks keeps. It is a power of two.
const keptGranules = 8

// attacks finds the attacks in granules. It keeps its results for the most recent granules.
type attacks struct {
	in       *input
	channels int
	recent   int // number of parts with which a part is compared, see recentParts
	kept     [keptGranules]granuleAttacks
}

// A granuleAttacks holds what is known about a granule.
type granuleAttacks struct {
	number   int64
	measured bool // whether energies is set
	searched bool // whether attacks is set
	energies [2][granuleParts]float32
	attacks  [2]thirds // the thirds that contain attacks, by channel
}

// recentParts returns how many parts count as recent at a sample rate. The limits are the shortest
// useful comparison and the length of the previous granule.
func recentParts(rate int) int {
	return max(3, min(granuleParts, rate*recentSamples/(1000*partSamples)))
}

// granule returns the entry of granule n. The entry is empty if the granule is not kept.
func (a *attacks) granule(n int64) *granuleAttacks {
	g := &a.kept[n&(keptGranules-1)]
	if g.number != n {
		*g = granuleAttacks{number: n}
	}
	return g
}

// kind returns the window type of granule n. A granule between two granules with short blocks also
// has short blocks, because the slopes of a long window would not fit between them.
func (a *attacks) kind(n int64, ch int) (int, error) {
	before, err := a.needsShort(n-1, ch)
	if err != nil {
		return 0, err
	}
	now, err := a.needsShort(n, ch)
	if err != nil {
		return 0, err
	}
	after, err := a.needsShort(n+1, ch)
	if err != nil {
		return 0, err
	}

	switch {
	case now, before && after:
		return short, nil
	case after:
		return start, nil
	case before:
		return stop, nil
	}
	return normal, nil
}

// needsShort reports whether an attack lies where granule n would have its short blocks. The short
// blocks would cover the last two thirds of the previous granule and the first two thirds of
// granule n.
func (a *attacks) needsShort(n int64, ch int) (bool, error) {
	previous, err := a.search(n - 1)
	if err != nil {
		return false, err
	}
	current, err := a.search(n)
	if err != nil {
		return false, err
	}

	inPrevious := previous.attacks[ch]&(secondThird|lastThird) != 0
	inCurrent := current.attacks[ch]&(firstThird|secondThird) != 0
	return inPrevious || inCurrent, nil
}

// search finds the attacks in granule n. It compares the energies of n with each other and with
// those of the previous granule.
func (a *attacks) search(n int64) (*granuleAttacks, error) {
	g := a.granule(n)
	if g.searched {
		return g, nil
	}
	previous, err := a.measure(n - 1)
	if err != nil {
		return nil, err
	}
	if _, err := a.measure(n); err != nil {
		return nil, err
	}

	for ch := range a.channels {
		var energies [2 * granuleParts]float32
		copy(energies[:granuleParts], previous.energies[ch][:])
		copy(energies[granuleParts:], g.energies[ch][:])
		for part := range granuleParts {
			at := granuleParts + part
			if isAttack(energies[at-a.recent:at], energies[at]) {
				g.attacks[ch] |= firstThird << (part / partsPerThird)
			}
		}
	}
	g.searched = true
	return g, nil
}

// isAttack reports whether an energy is far above or far below all recent energies.
func isAttack(recent []float32, energy float32) bool {
	highest, lowest := recent[0], recent[0]
	for _, e := range recent[1:] {
		highest = max(highest, e)
		lowest = min(lowest, e)
	}

	rises := energy > minEnergy && energy > float32(riseFactor*highest)
	falls := lowest > minEnergy && lowest > float32(fallFactor*energy)
	return rises || falls
}

// measure computes the energies of the parts of granule n. It uses the differences between samples,
// which makes low frequencies count less.
func (a *attacks) measure(n int64) (*granuleAttacks, error) {
	g := a.granule(n)
	if g.measured {
		return g, nil
	}

	const samples = granuleParts * partSamples
	first := samples*n - lead - filterDelay
	for ch := range a.channels {
		pcm, err := a.in.samples(ch, first-1, 1+samples) // the first difference needs one more sample
		if err != nil {
			return nil, err
		}
		for part := range granuleParts {
			x := (*[1 + partSamples]float32)(pcm[part*partSamples:])
			sum := float32(0)
			for i := range partSamples {
				d := x[i+1] - x[i]
				sum += float32(d * d)
			}
			g.energies[ch][part] = sum
		}
	}
	g.measured = true
	return g, nil
}
