package mp3

// attacks finds attacks, which are sudden rises or falls of energy. In a long block, the noise of a
// rise would be audible before the rise, and the noise of a fall after the fall. Therefore, a
// granule with an attack has three short blocks.
//
// Attacks depend only on the samples. They are found by comparing the energies of parts of 64
// samples, which are kept for a few granules.
type attacks struct {
	in       *input
	channels int
	back     int
	tags     [8]int64 // number of each entry's granule, plus 2; negative if only the energies are known
	energies [8][2][9]float32
	changes  [8][2]uint8 // one bit for each third of the granule
}

const (
	filterDelay = 240 // delay of the subbands in samples, measured at the middle of the window
	riseBy      = 3   // minimum factor between an attack and the highest recent energy
	fallBy      = 5   // minimum factor between the lowest recent energy and a fall
	loud        = 4e4 // minimum energy of 64 samples in an attack
)

// lookBack returns how many parts count as recent. They span 12 ms, so that the pulses of a voice
// are not attacks. Their number is at least 3 and at most 9, which is the number of parts of a
// granule.
func lookBack(rate int) int { return max(3, min(9, rate*12/64000)) }

// find finds the attacks in granule n. It uses the energies of n and of the previous granule.
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

// sudden reports whether now is far above or below all energies in before.
func sudden(before []float32, now float32) bool {
	most, least := before[0], before[0]
	for _, x := range before[1:] {
		most, least = max(most, x), min(least, x)
	}
	return now > loud && now > float32(riseBy*most) || least > loud && least > float32(fallBy*now)
}

// measure computes the energies of the parts of granule n. It uses the differences between samples,
// which makes low frequencies count less.
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
	a.tags[n&7] = -n - 2 // only the energies are known
	return nil
}

// within reports whether an attack lies where granule n would have its short blocks. The short
// blocks would cover the last two thirds of the previous granule and the first two thirds of
// granule n.
func (a *attacks) within(n int64, ch int) (bool, error) {
	if err := a.find(n - 1); err != nil {
		return false, err
	}
	if err := a.find(n); err != nil {
		return false, err
	}
	return a.changes[(n-1)&7][ch]&6 != 0 || a.changes[n&7][ch]&3 != 0, nil
}

// kind returns the window type of granule n. A granule between two granules with short blocks also
// has short blocks, because it has no room for the slopes of a long window.
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
