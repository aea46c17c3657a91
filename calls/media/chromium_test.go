package media_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/test/servers"
)

// page contains WebRTC peers, which tests refer to by name. It uses WebRTC in the same way as the
// SDK.
const page = `<!doctype html><body><script>
const peers = {}
const gathered = pc => new Promise(done => {
  const look = () => pc.iceGatheringState === 'complete' && done(pc.localDescription.sdp)
  pc.addEventListener('icegatheringstatechange', look); look()
})
async function open_(name, media) {
  const pc = peers[name] = new RTCPeerConnection({iceServers: [], iceCandidatePoolSize: 10})
  pc.ontrack = e => { // sound that nobody plays has no energy
    const player = document.body.appendChild(document.createElement(e.track.kind))
    player.srcObject = new MediaStream([e.track]); player.play()
  }
  const stream = await navigator.mediaDevices.getUserMedia(media)
  stream.getTracks().forEach(t => pc.addTrack(t, stream))
  return pc
}
async function offer(name, media) {
  const pc = peers[name] || await open_(name, media)
  await pc.setLocalDescription(await pc.createOffer())
  return gathered(pc)
}
async function addVideo(name) {
  const stream = await navigator.mediaDevices.getUserMedia({video: true})
  stream.getTracks().forEach(t => peers[name].addTrack(t, stream))
  return offer(name)
}
async function answer(name, sdp, media) {
  const pc = await open_(name, media)
  await pc.setRemoteDescription({type: 'offer', sdp})
  await pc.setLocalDescription(await pc.createAnswer())
  return gathered(pc)
}
async function accept(name, sdp) { await peers[name].setRemoteDescription({type: 'answer', sdp}) }
async function direct(name, kind, direction) {
  peers[name].getTransceivers().find(t => t.sender.track?.kind === kind).direction = direction
  return offer(name)
}
async function stats(name) {
  const all = {}
  for (const s of (await peers[name].getStats()).values()) {
    if (s.type === 'inbound-rtp') all[s.kind] = {packets: s.packetsReceived, lost: s.packetsLost,
      frames: s.framesDecoded || 0, energy: s.totalAudioEnergy || 0, pli: s.pliCount || 0}
    if (s.type === 'remote-inbound-rtp') all['remote_' + s.kind] = {rtt: s.roundTripTime || 0, lost: s.packetsLost}
    if (s.type === 'candidate-pair' && s.nominated) all.pair = s.state
  }
  return all
}
</script>`

// A browser is a page in Chromium with fake devices: a beep and a moving image.
type browser struct {
	t   *testing.T
	ctx context.Context
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() || os.Getenv("SELVAGE_TEST_SERVERS") == "none" {
		t.Skip("needs a browser")
	}
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		servers.Missing(t, "the command chromium-headless-shell")
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(server.Close)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"),
		chromedp.Flag("disable-features", "WebRtcHideLocalIpsWithMdns"),
		chromedp.Flag("allow-loopback-in-peer-connection", true),
	)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	_, err = chromedp.Run(ctx, chromedp.Navigate(server.URL))
	must(t, err)
	return &browser{t: t, ctx: ctx}
}

// run calls a function of the page and stores its result.
func (b *browser) run(result any, function string, arguments ...any) {
	b.t.Helper()
	var list []string
	for _, a := range arguments {
		text, err := json.Marshal(a)
		must(b.t, err)
		list = append(list, string(text))
	}

	script := function + "(" + strings.Join(list, ", ") + ").then(r => JSON.stringify(r ?? null))"
	raw, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", function, err)
	}
	if result != nil {
		must(b.t, json.Unmarshal([]byte(raw), result))
	}
}

// inbound holds statistics of the media of one kind that a peer receives.
type inbound struct {
	Packets, Lost, Frames, Pli int
	Energy, RTT                float64
}

// until polls the statistics of a peer, by kind, until wanted returns true.
func (b *browser) until(name, what string, wanted func(map[string]inbound) bool) map[string]inbound {
	b.t.Helper()
	var raw json.RawMessage
	stats := map[string]inbound{}
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		b.run(&raw, "stats", name)
		clear(stats)
		_ = json.Unmarshal(raw, &stats) // fails only for the state of the pair, which is a string
		if wanted(stats) {
			return stats
		}
		select {
		case <-b.ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	b.t.Fatalf("%s: timed out waiting until %s; the last statistics are %s", name, what, raw)
	return nil
}

// plays reports whether a peer hears sound and sees pictures.
func plays(stats map[string]inbound) bool {
	audio, video := stats["audio"], stats["video"]
	return audio.Packets > 20 && audio.Energy > 0 && video.Frames > 10
}

// TestChromium makes calls with Chromium: an echo, then two peers with audio and video.
func TestChromium(t *testing.T) {
	b := newBrowser(t)
	e := newEngine(t)
	both := map[string]bool{"audio": true, "video": true}

	t.Run("echo", func(t *testing.T) {
		var offer string
		b.run(&offer, "offer", "echo", both)
		m, answer, err := e.Answer(newWatcher(), offer, calls.Terms{})
		must(t, err)
		defer m.Close()
		m.Link(calls.Audio, m)
		m.Link(calls.Video, m)
		b.run(nil, "accept", "echo", answer)
		b.until("echo", "sound and pictures come back", plays)
	})

	t.Run("two legs", func(t *testing.T) {
		alice, bob := b.pair(e, both)
		defer alice.Close()
		defer bob.Close()
		b.until("alice", "bob is heard and seen", plays)
		b.until("bob", "alice is heard and seen", plays)
	})
}

// TestChromiumUpdate changes a call with Chromium: it adds video, changes directions and reloads
// the page.
func TestChromiumUpdate(t *testing.T) {
	b := newBrowser(t)
	e := newEngine(t)
	var offer string
	b.run(&offer, "offer", "one", map[string]bool{"audio": true})
	m, answer, err := e.Answer(newWatcher(), offer, calls.Terms{})
	must(t, err)
	m.Link(calls.Audio, m)
	m.Link(calls.Video, m)
	b.run(nil, "accept", "one", answer)
	b.until("one", "sound comes back", func(stats map[string]inbound) bool { return stats["audio"].Energy > 0 })

	update := func(what, name string, arguments ...any) {
		t.Helper()
		b.run(&offer, name, arguments...)
		if answer, err = m.Update(offer); err != nil {
			t.Fatalf("Update for %s: %v", what, err)
		}
		b.run(nil, "accept", "one", answer)
	}
	update("video", "addVideo", "one")
	seen := b.until("one", "pictures come back", plays)["video"].Frames

	update("sending alone", "direct", "one", "video", "sendonly")
	update("both ways", "direct", "one", "video", "sendrecv")
	b.until("one", "pictures come back again", func(stats map[string]inbound) bool {
		return stats["video"].Frames > seen+10
	})

	b.run(&offer, "offer", "again", map[string]bool{"audio": true, "video": true})
	if answer, err = m.Renew(offer); err != nil {
		t.Fatalf("Renew: %v", err)
	}
	b.run(nil, "accept", "again", answer)
	b.until("again", "sound and pictures come back after Renew", plays)
}

// TestChromiumTCP makes a call with Chromium while UDP is blocked.
func TestChromiumTCP(t *testing.T) {
	b := newBrowser(t)
	e := newEngine(t, func(c *media.Config) { c.NoUDP = true })
	alice, bob := b.pair(e, map[string]bool{"audio": true, "video": true})
	defer alice.Close()
	defer bob.Close()
	b.until("alice", "bob is heard and seen over TCP", plays)
	b.until("bob", "alice is heard and seen over TCP", plays)
}

// pair returns the legs of two linked peers, alice and bob.
func (b *browser) pair(e *media.Engine, kinds map[string]bool) (alice, bob calls.Media) {
	b.t.Helper()
	var text string
	b.run(&text, "offer", "alice", kinds)
	alice, answer, err := e.Answer(newWatcher(), text, calls.Terms{})
	must(b.t, err)
	b.run(nil, "accept", "alice", answer)

	bob, offer, err := e.Offer(newWatcher(), alice, calls.Terms{})
	must(b.t, err)
	b.run(&text, "answer", "bob", offer, kinds)
	if err := bob.Accept(text); err != nil {
		b.t.Fatalf("Accept: %v\n%s", err, text)
	}
	for _, kind := range []calls.Kind{calls.Audio, calls.Video} {
		alice.Link(kind, bob)
		bob.Link(kind, alice)
	}
	return alice, bob
}
