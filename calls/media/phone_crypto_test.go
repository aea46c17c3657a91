package media

import (
	"strings"
	"testing"

	"github.com/pion/rtp"

	"github.com/selvage/selvage/calls/sdp"
)

// TestManySources shows that a phone may use any number of SSRCs one after the other. The cipher
// remembers only a few of them, and rejects repeated packets of the current one.
func TestManySources(t *testing.T) {
	key := sdp.Crypto{Suite: "AES_CM_128_HMAC_SHA1_80", Key: strings.Repeat("k", 30)}
	out, err := contextFor(key)
	if err != nil {
		t.Fatal(err)
	}
	in, err := newPhoneCipher(key)
	if err != nil {
		t.Fatal(err)
	}

	var sealed []byte
	for ssrc := range uint32(100) {
		packet := &rtp.Packet{Header: rtp.Header{Version: 2, SSRC: ssrc}, Payload: []byte("hello")}
		plain, err := packet.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		sealed, err = out.EncryptRTP(nil, plain, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := in.DecryptRTP(nil, sealed, &rtp.Header{})
		if err != nil {
			t.Fatalf("DecryptRTP of the first packet from SSRC %d: %v", ssrc, err)
		}
		if string(got) != string(plain) {
			t.Errorf("DecryptRTP from SSRC %d = %x, want %x", ssrc, got, plain)
		}
		if n := len(in.sources); n > maxSources {
			t.Fatalf("after %d SSRCs, the cipher remembers %d, want at most %d", ssrc+1, n, maxSources)
		}
	}
	if got, err := in.DecryptRTP(nil, sealed, &rtp.Header{}); err == nil {
		t.Errorf("DecryptRTP of a repeated packet = %x, want an error", got)
	}

	forged := append([]byte(nil), sealed...)
	forged[11]++ // an SSRC that the phone has not used
	before := in.Context
	if got, err := in.DecryptRTP(nil, forged, &rtp.Header{}); err == nil {
		t.Errorf("DecryptRTP of a forged packet = %x, want an error", got)
	}
	if in.Context != before {
		t.Error("a forged packet made the cipher forget its sources")
	}
}
