package mp3

import "math"

// The functions in this file compute constants for tables. They use only operations that have the
// same result on all machines. The last bit of the results of most functions in package math may differ
// between architectures.

// cosPi returns cos(π·n/d), for d > 0.
func cosPi(n, d int) float64 {
	n %= 2 * d
	if n < 0 {
		n += 2 * d
	}
	if n > d { // cos(2π-x) = cos(x)
		n = 2*d - n
	}

	sign := 1.0
	if 2*n > d { // cos(π-x) = -cos(x)
		n, sign = d-n, -1
	}

	if 4*n > d {
		return sign * taylor(float64(d-2*n)*math.Pi/float64(2*d), 1)
	}
	return sign * taylor(float64(n)*math.Pi/float64(d), 0)
}

// sinPi returns sin(π·n/d).
func sinPi(n, d int) float64 { return cosPi(2*n-d, 2*d) }

// taylor returns the Taylor series of the cosine if k is 0, and of the sine if k is 1. It requires
// 0 <= x <= π/4.
func taylor(x float64, k int) float64 {
	term := 1.0
	if k == 1 {
		term = x
	}
	sum := term
	xx := float64(x * x)
	for ; k < 22; k += 2 {
		term = -float64(term*xx) / float64((k+1)*(k+2))
		sum += term
	}
	return sum
}

// exp2 returns 2^(n/16).
func exp2(n int) float64 {
	whole, part := n>>4, n&15
	return math.Ldexp(sixteenths[part], whole)
}

// sixteenths contains the powers 2^(i/16).
var sixteenths = roots()

func roots() (r [16]float64) {
	root := math.Sqrt(math.Sqrt(math.Sqrt(math.Sqrt2))) // 2^(1/16); square roots are exact on all machines
	quarter := [4]float64{1, math.Sqrt(math.Sqrt2), math.Sqrt2, float64(math.Sqrt2 * math.Sqrt(math.Sqrt2))}
	within := [4]float64{1, root, float64(root * root), float64(float64(root*root) * root)}
	for i := range r {
		r[i] = float64(quarter[i/4] * within[i%4])
	}
	return r
}
