package clients

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// The test recording is ten hours of silence in mu-law, with a tone that lasts half a minute.
const (
	hours    = 10
	rate     = 8000
	toneFrom = 7*3600 + 1234 // in seconds
	toneFor  = 30
)

// tenHours returns the recording as a WAV file, and the size of the file. Each sample has one byte.
func tenHours() (size int64, body io.Reader) {
	const quiet, pitch = 0xFF, 500
	samples := int64(hours * 3600 * rate)

	head := append([]byte{}, "RIFF"...)
	head = binary.LittleEndian.AppendUint32(head, uint32(36+samples))
	head = append(head, "WAVEfmt "...)
	head = binary.LittleEndian.AppendUint32(head, 16)
	for _, v := range []uint16{7, 1} { // mu-law, one channel
		head = binary.LittleEndian.AppendUint16(head, v)
	}
	head = binary.LittleEndian.AppendUint32(head, rate)
	head = binary.LittleEndian.AppendUint32(head, rate)
	for _, v := range []uint16{1, 8} {
		head = binary.LittleEndian.AppendUint16(head, v)
	}

	head = append(head, "data"...)
	head = binary.LittleEndian.AppendUint32(head, uint32(samples))
	// The tone is a square wave between two loud mu-law samples.
	tone := bytes.Repeat(append(bytes.Repeat([]byte{0x90}, rate/pitch/2),
		bytes.Repeat([]byte{0x10}, rate/pitch/2)...), toneFor*pitch)
	silence := func(seconds int64) io.Reader { return io.LimitReader(constant(quiet), seconds*rate) }
	return int64(len(head)) + samples, io.MultiReader(bytes.NewReader(head), silence(toneFrom),
		bytes.NewReader(tone), silence(hours*3600-toneFrom-toneFor))
}

// A constant is an endless reader that repeats one byte.
type constant byte

func (c constant) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c)
	}
	return len(p), nil
}

// uploadTenHours uploads the recording and returns its Sid.
func uploadTenHours(t *testing.T, p *harness.Project) string {
	t.Helper()
	size, body := tenHours()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.HTTP+p.LaML("/Recordings"), body)
	if err != nil {
		t.Fatal(err)
	}

	r.ContentLength = size
	r.Header.Set("Content-Type", "audio/wav")
	r.SetBasicAuth(p.ID, p.Key)

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("uploading ten hours returned %d %s, %v", res.StatusCode, text, err)
	}
	return harness.Answer{Status: res.StatusCode, Body: text}.Object(t)["sid"].(string)
}

// player adds an <audio> element for a URL to the page, with a loudness meter.
const player = `
new Promise((done, failed) => {
	const audio = window.audio = document.createElement('audio')
	audio.crossOrigin = 'anonymous'
	audio.preload = 'metadata'
	audio.onloadedmetadata = () => done(audio.duration)
	audio.onerror = () => failed(new Error(audio.error.message))
	audio.src = %q
	document.body.append(audio)
	const context = window.context = new AudioContext()
	const meter = context.createAnalyser()
	const source = context.createMediaElementSource(audio)
	source.connect(meter)
	meter.connect(context.destination)
	window.loudest = () => {
		const samples = new Float32Array(meter.fftSize)
		meter.getFloatTimeDomainData(samples)
		return Math.max(...samples.map(Math.abs))
	}
})`

// playAt seeks to a position and plays. After half a second, it returns the loudness and the
// position.
const playAt = `
new Promise(async (done, failed) => {
	audio.pause()
	audio.onerror = () => failed(new Error(audio.error.message))
	audio.currentTime = %v
	await context.resume()
	await new Promise((seeked) => { audio.onseeked = seeked })
	await audio.play()
	const began = audio.currentTime
	audio.ontimeupdate = () => {
		if (audio.currentTime < began + 0.5) return
		audio.ontimeupdate = null
		done({ loudest: loudest(), at: audio.currentTime })
	}
})`

// TestChromiumSeeksInTenHours shows that Chromium knows the length of an MP3 immediately, and plays
// the right part after a seek. The server never stores the MP3.
func TestChromiumSeeksInTenHours(t *testing.T) {
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	url := p.HTTP + p.LaML("/Recordings/"+uploadTenHours(t, p)+".mp3")

	b := ownTab(t, chromedp.Flag("autoplay-policy", "no-user-gesture-required"))
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		// The error can be ignored, because the navigation fails if the page does not arrive.
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>a player of somebody else</title>")
	}))
	t.Cleanup(page.Close)

	b.do(goTo(page.URL))
	if length := eval[float64](b, fmt.Sprintf(player, url)); math.Abs(length-hours*3600) > 0.3 {
		t.Errorf("Chromium reports a length of %v s, want %d", length, hours*3600)
	}

	for _, seek := range []struct {
		to   int
		loud bool
	}{
		{toneFrom + 10, true}, {toneFrom - 20, false}, {hours*3600 - 60, false}, {toneFrom + 20, true}, {1, false},
	} {
		heard := eval[struct{ Loudest, At float64 }](b, fmt.Sprintf(playAt, seek.to))
		if loud := heard.Loudest > 0.1; loud != seek.loud || math.Abs(heard.At-float64(seek.to)) > 10 {
			t.Errorf("after a seek to %d s, Chromium plays at %v s and at %v of full scale, want loud: %v",
				seek.to,
				heard.At, heard.Loudest, seek.loud)
		}
	}
}
