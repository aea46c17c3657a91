package mp3

// history is how many samples before a granule affect its subbands.
const history = 480

// analysis is the window of the filterbank (ISO 11172-3, table C.1). Its values are those
// of the synthesis window, divided by 32. It is reversed, to match the order of the samples.
var analysis = analysisWindow()

func analysisWindow() (w [512]float32) {
	for i := range w {
		d := window[min(i, 512-i)]
		if i > 256 && i%64 != 0 {
			d = -d
		}
		w[511-i] = float32(float64(d) / (65536 * 32))
	}
	return w
}

// polyphase splits a granule into 32 subbands of 18 samples each (annex C.1.3). The granule begins at
// pcm[history]. In every second subband, every second sample is negated, because the MDCT requires
// this.
func polyphase(pcm *[history + 576]float32, sub *[32][18]float32) {
	var y [2][64]float32
	for t := 0; t < 18; t += 2 {
		windowed(pcm, 32*t, &y)
		split(&y[0], sub, t, false)
		split(&y[1], sub, t+1, true)
	}
}

// windowed multiplies 512 samples by the window, once beginning with pcm[at], and once beginning with
// pcm[at+32]. It then adds the products whose positions differ by multiples of 64. y[i][0] includes the newest sample.
func windowed(pcm *[history + 576]float32, at int, y *[2][64]float32) {
	x := (*[544]float32)(pcm[at:])
	for m := range 64 {
		c0, c1 := analysis[m], analysis[m+64]
		c2, c3 := analysis[m+128], analysis[m+192]
		c4, c5 := analysis[m+256], analysis[m+320]
		c6, c7 := analysis[m+384], analysis[m+448]
		a := float32(c0*x[m]) + float32(c1*x[m+64])
		b := float32(c2*x[m+128]) + float32(c3*x[m+192])
		c := float32(c4*x[m+256]) + float32(c5*x[m+320])
		d := float32(c6*x[m+384]) + float32(c7*x[m+448])
		y[0][63-m] = (a + b) + (c + d)
		a = float32(c0*x[m+32]) + float32(c1*x[m+96])
		b = float32(c2*x[m+160]) + float32(c3*x[m+224])
		c = float32(c4*x[m+288]) + float32(c5*x[m+352])
		d = float32(c6*x[m+416]) + float32(c7*x[m+480])
		y[1][63-m] = (a + b) + (c + d)
	}
}

// split computes sample t of all subbands. The matrix is symmetric around 16, like a cosine, which
// halves the work.
func split(y *[64]float32, sub *[32][18]float32, t int, negate bool) {
	var v, s [32]float32
	v[0] = y[16]
	for k := 1; k <= 16; k++ {
		v[k] = y[16+k] + y[16-k]
	}

	for k := 17; k < 32; k++ {
		v[k] = y[16+k] - y[80-k]
	}
	dct32(&v, &s)
	for i := 0; i < 32; i += 2 {
		sub[i][t] = s[i]
		odd := s[i+1]
		if negate {
			odd = -odd
		}
		sub[i+1][t] = odd
	}
}

// Halved secants, by which the odd half of a DCT is multiplied.
var (
	secants32 = secants[[16]float32](32)
	secants16 = secants[[8]float32](16)
	secants8  = secants[[4]float32](8)
	secants4  = secants[[2]float32](4)
	cos45     = float32(cosPi(1, 4))
)

func secants[T [16]float32 | [8]float32 | [4]float32 | [2]float32](n int) (t T) {
	for i := range len(t) {
		t[i] = float32(1 / (2 * cosPi(2*i+1, 2*n)))
	}
	return t
}

// dct32 computes s[i] = Σ v[k]·cos((2i+1)kπ/64). In Lee's algorithm, the even inputs need one
// transform of half the size, and the sums of neighboring odd inputs need another.
func dct32(v, s *[32]float32) {
	var even, odd, e, o [16]float32
	last := float32(0)
	for j := range 16 {
		even[j] = v[2*j]
		odd[j] = v[2*j+1] + last
		last = v[2*j+1]
	}
	dct16(&even, &e)
	dct16(&odd, &o)
	for i := range 16 {
		x := float32(o[i] * secants32[i])
		s[i] = e[i] + x
		s[31-i] = e[i] - x
	}
}

func dct16(v, s *[16]float32) {
	var e, o [8]float32
	dct8(v[0], v[2], v[4], v[6], v[8], v[10], v[12], v[14], &e)
	dct8(v[1], v[3]+v[1], v[5]+v[3], v[7]+v[5], v[9]+v[7], v[11]+v[9], v[13]+v[11], v[15]+v[13], &o)
	for i := range 8 {
		x := float32(o[i] * secants16[i])
		s[i] = e[i] + x
		s[15-i] = e[i] - x
	}
}

func dct8(v0, v1, v2, v3, v4, v5, v6, v7 float32, s *[8]float32) {
	e0, e1, e2, e3 := dct4(v0, v2, v4, v6)
	o0, o1, o2, o3 := dct4(v1, v3+v1, v5+v3, v7+v5)
	o0 = float32(o0 * secants8[0])
	o1 = float32(o1 * secants8[1])
	o2 = float32(o2 * secants8[2])
	o3 = float32(o3 * secants8[3])
	s[0], s[7] = e0+o0, e0-o0
	s[1], s[6] = e1+o1, e1-o1
	s[2], s[5] = e2+o2, e2-o2
	s[3], s[4] = e3+o3, e3-o3
}

func dct4(v0, v1, v2, v3 float32) (s0, s1, s2, s3 float32) {
	x := float32(v2 * cos45)
	e0, e1 := v0+x, v0-x
	y := float32((v3 + v1) * cos45)
	o0 := float32((v1 + y) * secants4[0])
	o1 := float32((v1 - y) * secants4[1])
	return e0 + o0, e1 + o1, e1 - o1, e0 - o0
}
