package media_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/test/servers"
)

// TestSecureFFmpeg sends a tone through an engine from one ffmpeg to another. ffmpeg has its own
// implementation of SRTP.
func TestSecureFFmpeg(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		servers.Missing(t, "ffmpeg")
	}

	samples, err := toneThrough(t, ffmpeg)
	for attempt := 1; err != nil && attempt < 5; attempt++ { // another program may have taken a port
		samples, err = toneThrough(t, ffmpeg)
	}
	must(t, err)

	changes := 0
	for i := range len(samples) - 1 {
		if (samples[i] < 0) != (samples[i+1] < 0) {
			changes++
		}
	}
	if changes < 450 || changes > 550 { // 500 Hz crosses zero 500 times in half a second
		t.Errorf("the sound crosses zero %d times in half a second, want 450 to 550", changes)
	}
}

// toneThrough sends a tone through an engine from one ffmpeg to another, and returns half a second of
// the received audio. If either process ends, it returns an error.
func toneThrough(t *testing.T, ffmpeg string) ([]int16, error) {
	t.Helper()
	e, from, to := newEngine(t), newSecurePhone(t, suite80), newSecurePhone(t, suite80)
	from.dial(calls.Terms{SRTP: calls.SRTP{Required: true}}, e)
	answer := to.dial(calls.Terms{SRTP: calls.SRTP{Required: true}}, e)
	from.leg.Link(calls.Audio, to.leg)
	must(t, from.conn.Close())
	must(t, to.conn.Close())

	file := filepath.Join(t.TempDir(), "phone.sdp")
	text := fmt.Sprintf("v=0\no=- 1 1 IN IP4 127.0.0.1\ns=-\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio %d RTP/SAVP 0\n%s",
		to.port(), strings.ReplaceAll(keyIn(t, answer).line(), "\r\n", "\n"))
	must(t, os.WriteFile(file, []byte(text), 0o600))
	receiver := exec.CommandContext(t.Context(), ffmpeg,
		"-v", "error",
		"-protocol_whitelist", "file,rtp,srtp,udp,crypto",
		"-i", file,
		"-f", "s16le", "-ar", "8000", "-")
	sound, err := receiver.StdoutPipe()
	must(t, err)
	sender := exec.CommandContext(t.Context(), ffmpeg,
		"-v", "error",
		"-re", "-f", "lavfi", "-i", "sine=frequency=500:sample_rate=8000",
		"-c:a", "pcm_mulaw", "-f", "rtp",
		"-srtp_out_suite", suite80,
		"-srtp_out_params", base64.StdEncoding.EncodeToString([]byte(from.key)),
		fmt.Sprintf("srtp://127.0.0.1:%d?localport=%d", from.to.Port, from.port()))

	must(t, receiver.Start())
	must(t, sender.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sender.Wait()
		_ = receiver.Process.Kill() // otherwise, the receiver would wait for more packets
	}()
	samples := make([]int16, 4000)
	err = binary.Read(sound, binary.LittleEndian, samples)
	_ = sender.Process.Kill()
	<-ended
	_ = receiver.Wait()
	return samples, err
}
