package keys

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"io"
	"runtime"
	"testing"
)

// TestJ06Compressed opens valid tokens that are compressed, which only an insider could make. They
// are refused before anything is decompressed, so that a small token cannot fill the memory (RFC
// 8725, section 3.6).
func TestJ06Compressed(t *testing.T) {
	ring := sealRing(bytes.Repeat([]byte{7}, 32))
	sat := ring.Sealer("sat", "SAT", "here")
	seal := func(more string, payload []byte) string {
		t.Helper()
		now := sat.ends()
		e, err := sat.end(now, "k1")
		if err != nil {
			t.Fatal(err)
		}
		header := `{"alg":"dir","enc":"A256GCM","kid":"k1","typ":"SAT","ch":"here"` + more + `}`
		forged := end{kid: e.kid, head: base64.RawURLEncoding.EncodeToString([]byte(header)), aead: e.aead}
		return forged.seal(payload)
	}

	opens := func(s *Sealer, token string) bool {
		var got struct{ Sub string }
		return s.Open(token, &got) && got.Sub == "alice"
	}

	plain := []byte(`{"sub":"alice"}`)
	if !opens(sat, seal("", plain)) {
		t.Fatal("the token without compression is refused")
	}
	if opens(ring.Sealer("refresh", "SAT", "here"), seal("", plain)) {
		t.Error("another purpose has the same keys")
	}
	const zip = `,"zip":"DEF"`
	if opens(sat, seal(zip, plain)) || opens(sat, seal(zip, deflated(t, bytes.NewReader(plain)))) {
		t.Error("a compressed token is accepted")
	}

	for _, size := range []int64{8 << 20, 64 << 20} { // a token of the first size is still parsed
		bomb := seal(zip, deflated(t, io.LimitReader(zeros{}, size)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		accepted := opens(sat, bomb)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; accepted || grown > 2<<20 {
			t.Errorf("%d zeros in %d bytes took %d bytes of memory; accepted: %t, want at most 2 MiB and false",
				size, len(bomb), grown, accepted)
		}
	}
}

// zeros is an endless stream of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// deflated returns a stream compressed with DEF (RFC 7516, section 4.1.3).
func deflated(t *testing.T, from io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, from); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
