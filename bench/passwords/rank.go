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
	type value struct {
		took time.Duration
		ofA  bool
	}
	values := make([]value, 0, len(a)+len(b))
	for _, took := range a {
		values = append(values, value{took: took, ofA: true})
	}
	for _, took := range b {
		values = append(values, value{took: took})
	}
	slices.SortFunc(values, func(x, y value) int { return cmp.Compare(x.took, y.took) })

	var ranksOfA, ties float64 // sums
	for first := 0; first < len(values); {
		end := first // becomes the end of the values that are equal to the first one
		for end < len(values) && values[end].took == values[first].took {
			end++
		}
		rank := float64(first+1+end) / 2 // equal values share the mean of their ranks
		for _, v := range values[first:end] {
			if v.ofA {
				ranksOfA += rank
			}
		}
		equal := float64(end - first)
		ties += equal*equal*equal - equal
		first = end
	}

	n, m := float64(len(a)), float64(len(b))
	u := ranksOfA - n*(n+1)/2
	spread := math.Sqrt(n * m / 12 * (n + m + 1 - ties/((n+m)*(n+m-1))))
	if spread == 0 {
		return 1
	}
	z := max(0, math.Abs(u-n*m/2)-0.5) / spread
	return math.Erfc(z / math.Sqrt2)
}

// fastest returns the smallest values of a sample, sorted. share is the fraction of the values that
// it returns.
func fastest(sample []time.Duration, share float64) []time.Duration {
	sorted := slices.Sorted(slices.Values(sample))
	return sorted[:int(math.Ceil(float64(len(sorted))*share))]
}

// quantile returns the value in a sorted sample below which the given share of the values lies.
func quantile(sorted []time.Duration, share float64) time.Duration {
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*share))]
}
