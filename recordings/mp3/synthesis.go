package mp3

// synthesisWindow is the window of the synthesis (ISO 11172-3, table B.3).
var synthesisWindow = func() (w [16][32]float32) {
	for i := range 512 {
		d := window[min(i, 512-i)]
		if i > 256 && i%64 != 0 {
			d = -d
		}
		w[i/32][i%32] = float32(float64(d) / 65536)
	}
	return w
}()

// A synthesis joins the subbands of a channel (ISO 11172-3, 2.4.3.2.2).
type synthesis struct {
	slots [16][64]float32 // the vector V of the standard, as a ring
	at    int             // the newest slot
}

// add computes the 32 samples for one sample of each subband.
func (s *synthesis) add(sub *[32]float32, out *[32]float32) {
	var t [32]float32
	cosine32(sub, &t)
	s.at = (s.at + 15) & 15
	v := &s.slots[s.at]
	v[16] = 0
	copy(v[:16], t[16:])
	for i := range 32 {
		v[48-i] = -t[i]
	}
	for i := 1; i < 16; i++ {
		v[48+i] = -t[i]
	}
	// The first loop wrote v[17] to v[48]. v[16] belongs to the middle of the cosine, and is 0.

	*out = [32]float32{}
	for i := range 8 {
		a := (*[32]float32)(s.slots[(s.at+2*i)&15][:32])
		b := (*[32]float32)(s.slots[(s.at+2*i+1)&15][32:])
		wa, wb := &synthesisWindow[2*i], &synthesisWindow[2*i+1]
		for j := range 32 {
			out[j] += float32(a[j]*wa[j]) + float32(b[j]*wb[j])
		}
	}
}

// cosine32 computes t[k] = Σ s[i]·cos((2i+1)kπ/64), the transpose of dct32. It uses Lee's algorithm
// in the opposite direction. The even outputs are computed from the sums of opposite inputs, and the
// odd outputs from the differences.
func cosine32(s, t *[32]float32) {
	var even, odd, e, o [16]float32
	for i := range 16 {
		even[i] = s[i] + s[31-i]
		odd[i] = float32((s[i] - s[31-i]) * secants32[i])
	}
	cosine16(&even, &e)
	cosine16(&odd, &o)
	for k := range 15 {
		t[2*k], t[2*k+1] = e[k], o[k]+o[k+1]
	}
	t[30], t[31] = e[15], o[15]
}

func cosine16(s, t *[16]float32) {
	var even, odd, e, o [8]float32
	for i := range 8 {
		even[i] = s[i] + s[15-i]
		odd[i] = float32((s[i] - s[15-i]) * secants16[i])
	}
	cosine8(&even, &e)
	cosine8(&odd, &o)
	for k := range 7 {
		t[2*k], t[2*k+1] = e[k], o[k]+o[k+1]
	}
	t[14], t[15] = e[7], o[7]
}

func cosine8(s, t *[8]float32) {
	var even, odd [4]float32
	for i := range 4 {
		even[i] = s[i] + s[7-i]
		odd[i] = float32((s[i] - s[7-i]) * secants8[i])
	}
	cosine4(&even)
	cosine4(&odd)
	t[0], t[1] = even[0], odd[0]+odd[1]
	t[2], t[3] = even[1], odd[1]+odd[2]
	t[4], t[5] = even[2], odd[2]+odd[3]
	t[6], t[7] = even[3], odd[3]
}

func cosine4(s *[4]float32) {
	a, b := s[0]+s[3], s[1]+s[2]
	c := float32((s[0] - s[3]) * secants4[0])
	d := float32((s[1] - s[2]) * secants4[1])
	x := float32((c - d) * cos45)
	s[0], s[1] = a+b, c+d+x
	s[2], s[3] = float32((a-b)*cos45), x
}
