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
	key, err := sat.derive(sat.keys(), "k1")
	if err != nil {
		t.Fatal(err)
	}
	seal := func(header string, payload []byte) string {
		head := base64.RawURLEncoding.EncodeToString([]byte(header))
		forged := tokenKey{kid: key.kid, head: head, aead: key.aead}
		return forged.seal(payload)
	}
	opens := func(s *Sealer, token string) bool {
		var got struct{ Sub string }
		return s.Open(token, &got) && got.Sub == "alice"
	}

	const (
		plain      = `{"alg":"dir","enc":"A256GCM","kid":"k1","typ":"SAT","ch":"here"}`
		compressed = `{"alg":"dir","enc":"A256GCM","kid":"k1","typ":"SAT","ch":"here","zip":"DEF"}`
	)
	payload := []byte(`{"sub":"alice"}`)
	if !opens(sat, seal(plain, payload)) {
		t.Fatal("the token without compression is refused")
	}
	if opens(ring.Sealer("refresh", "SAT", "here"), seal(plain, payload)) {
		t.Error("another purpose has the same keys")
	}
	if opens(sat, seal(compressed, payload)) {
		t.Error("a token that claims to be compressed is accepted")
	}
	if opens(sat, seal(compressed, deflated(t, bytes.NewReader(payload)))) {
		t.Error("a compressed token is accepted")
	}

	for _, size := range []int64{8 << 20, 64 << 20} { // a token of the first size is still parsed
		bomb := seal(compressed, deflated(t, io.LimitReader(zeros{}, size)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		accepted := opens(sat, bomb)
		runtime.ReadMemStats(&after)
		if accepted {
			t.Errorf("%d zeros in %d bytes are accepted", size, len(bomb))
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
			t.Errorf("%d zeros in %d bytes took %d bytes of memory, want at most 2 MiB", size, len(bomb), grown)
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
