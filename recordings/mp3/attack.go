package mp3

// An attack is a sudden rise of energy, or a fall. The noise of a long block would be
// heard before the one and after the other, so such a granule has three short ones.
// Whether it does depends on the samples alone: energies of parts of 64 samples, which
// are remembered for a few granules.
type attacks struct {
	in       *input
	channels int
	back     int
	tags     [8]int64 // of what granules the entries below are, one more than their number
	energies [8][2][9]float32
	changes  [8][2]uint8 // by third of the granule, a bit each
}

const (
	filterDelay = 240 // samples by which subbands are late, at the middle of the window
	riseBy      = 3   // times the most that was there shortly before
	fallBy      = 5   // times under the least that was there
	loud        = 4e4 // energy of 64 samples below which nothing is an attack
)

// lookBack is how many parts are shortly before: 12 ms, so that the pulses of a
// voice are no attacks, but no fewer than 3, and no more than a granule has.
func lookBack(rate int) int { return max(3, min(9, rate*12/64000)) }

// find fills the entry of granule n, and that of the one before.
func (a *attacks) find(n int64) error {
	if a.tags[n&7] == n+2 {
		return nil
	}
	for m := n - 1; m <= n; m++ {
		if err := a.measure(m); err != nil {
			return err
		}
	}
	for ch := range a.channels {
		var e [18]float32
		copy(e[:9], a.energies[(n-1)&7][ch][:])
		copy(e[9:], a.energies[n&7][ch][:])
		changes := uint8(0)
		for k := 9; k < 18; k++ {
			if sudden(e[k-a.back:k], e[k]) {
				changes |= 1 << ((k - 9) / 3)
			}
		}
		a.changes[n&7][ch] = changes
	}
	a.tags[n&7] = n + 2
	return nil
}

// sudden tells whether an energy is far from all of those before.
func sudden(before []float32, now float32) bool {
	most, least := before[0], before[0]
	for _, x := range before[1:] {
		most, least = max(most, x), min(least, x)
	}
	return now > loud && now > float32(riseBy*most) || least > loud && least > float32(fallBy*now)
}

// measure finds the energies of the parts of a granule, of its differences from
// sample to sample, in which low notes count less.
func (a *attacks) measure(n int64) error {
	if t := a.tags[n&7]; t == n+2 || t == -n-2 {
		return nil
	}
	for ch := range a.channels {
		pcm, err := a.in.samples(ch, 576*n-lead-filterDelay-1, 577)
		if err != nil {
			return err
		}
		for k := range 9 {
			x := (*[65]float32)(pcm[64*k:])
			sum := float32(0)
			for i := range 64 {
				d := x[i+1] - x[i]
				sum += float32(d * d)
			}
			a.energies[n&7][ch][k] = sum
		}
	}
	a.tags[n&7] = -n - 2 // the energies alone
	return nil
}

// within tells whether an attack lies where granule n would have its short blocks:
// in the last two thirds of the granule before it and the first two of its own.
func (a *attacks) within(n int64, ch int) (bool, error) {
	if err := a.find(n - 1); err != nil {
		return false, err
	}
	if err := a.find(n); err != nil {
		return false, err
	}
	return a.changes[(n-1)&7][ch]&6 != 0 || a.changes[n&7][ch]&3 != 0, nil
}

// kind picks the window of granule n. Between short ones there is no room for the
// slopes of a long one.
func (a *attacks) kind(n int64, ch int) (int, error) {
	var at [3]bool
	for i := range at {
		var err error
		if at[i], err = a.within(n-1+int64(i), ch); err != nil {
			return 0, err
		}
	}
	switch {
	case at[1] || at[0] && at[2]:
		return short, nil
	case at[2]:
		return start, nil
	case at[0]:
		return stop, nil
	}
	return normal, nil
}
