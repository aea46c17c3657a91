package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// mannWhitney returns the two-sided p-value of the hypothesis that two samples come from the same
// distribution. It uses the normal approximation of U, corrected for ties and continuity.
func mannWhitney(a, b []time.Duration) float64 {
	type one struct {
		took  time.Duration
		first bool
	}

	all := make([]one, 0, len(a)+len(b))
	for _, d := range a {
		all = append(all, one{d, true})
	}
	for _, d := range b {
		all = append(all, one{d, false})
	}

	slices.SortFunc(all, func(x, y one) int { return cmp.Compare(x.took, y.took) })
	var ranks, ties float64 // ranks is the sum of the ranks of the values in a
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].took == all[i].took {
			j++
		}
		shared := float64(i+1+j) / 2
		for _, o := range all[i:j] {
			if o.first {
				ranks += shared
			}
		}
		n := float64(j - i)
		ties += n*n*n - n
		i = j
	}

	n, m := float64(len(a)), float64(len(b))
	u := ranks - n*(n+1)/2
	spread := math.Sqrt(n * m / 12 * (n + m + 1 - ties/((n+m)*(n+m-1))))
	if spread == 0 {
		return 1
	}
	z := max(0, math.Abs(u-n*m/2)-0.5) / spread
	return math.Erfc(z / math.Sqrt2)
}

// fastest returns the smallest of all values, sorted. share is the fraction of the values to
// return.
func fastest(all []time.Duration, share float64) []time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[:int(math.Ceil(float64(len(all))*share))]
}

// quantile returns the value of a sorted sample below which this share of the values lies.
func quantile(sorted []time.Duration, share float64) time.Duration {
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*share))]
}
