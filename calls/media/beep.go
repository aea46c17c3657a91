package media

import (
	"embed"
	"slices"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// beeps contains the tone, 1400 Hz for 0.4 s. There is one file for each codec, named after the
// codec. All packets in a file have the same size and last 20 ms. ffmpeg wrote the files with "-f
// data". The source of the tone and, for Opus, the options of the encoder were:
//
//	sine=frequency=1400:sample_rate=48000:duration=0.4,volume=2,afade=t=in:d=0.02,afade=t=out:st=0.38:d=0.02
//	-c:a libopus -b:a 24k -vbr off -frame_duration 20 -application voip
//
//go:embed beep
var beeps embed.FS

const (
	beepStep = 20 * time.Millisecond
	opusBeep = 60  // bytes per packet
	g711Beep = 160 // bytes per packet, also for G.722
)

// beepFor returns the packets of the tone in a codec, or nil if the codec has no file.
func beepFor(codec string) [][]byte {
	tone, err := beeps.ReadFile("beep/" + codec)
	if err != nil {
		return nil
	}
	size := g711Beep
	if codec == sdp.Opus {
		size = opusBeep
	}
	return slices.Collect(slices.Chunk(tone, size))
}

// Beep implements calls.Media.
func (l *leg) Beep() {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	s := l.liveSection(calls.Audio, 0)
	if s == nil || l.closed.Load() || !s.agreed.Direction.Sends() {
		return
	}
	codec := l.heard(s)
	if packets := beepFor(codec.Name); packets != nil {
		l.engine.group.Go(func() {
			defer func() { l.engine.handlePanic(l, recover()) }()
			s.out.inject(func() { l.beep(&s.out, codec, packets) })
		})
	}
}

// heard returns the codec in which the client hears the audio of a section. In a room, this may be another
// codec than the first, with a different clock. The timestamps of a tone in the first codec would then be
// ahead of those of the room, and the client would drop the room's packets until these have caught up. The
// caller holds the engine's mu.
func (l *leg) heard(s *section) sdp.Codec {
	if v := l.voice.Load(); v != nil {
		if o := v.out.Load(); o != nil && o.to == s {
			return o.codec
		}
	}
	return s.agreed.Codecs[0]
}

// beep sends the packets of the tone, one every 20 ms.
func (l *leg) beep(out *sender, codec sdp.Codec, packets [][]byte) {
	w := l.engine.newWorker()
	at := out.timestampAt(time.Now(), uint32(codec.Clock))
	ticker := time.NewTicker(beepStep)
	defer ticker.Stop()
	for i, payload := range packets {
		select {
		case <-l.done:
			return
		case <-ticker.C:
		}
		out.sendSound(w, codec, i == 0, at, payload)
		at += uint32(codec.Clock) * uint32(beepStep/time.Millisecond) / 1000
	}
}

// sendSound sends a packet that the engine generates. marker is set for the first packet of a
// sound.
func (out *sender) sendSound(w *worker, codec sdp.Codec, marker bool, at uint32, payload []byte) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.client.cipher == nil {
		return
	}
	p := generatedPacket{payloadType: codec.Type, marker: marker, timestamp: at, payload: payload}
	out.sendGenerated(w, p, time.Now())
}

// inject runs f, which sends packets that the engine generates. While f runs, packets from the
// stream's source are dropped. After f, the source's next packet begins a new epoch; see [sender].
// Concurrent calls run one after the other.
func (out *sender) inject(f func()) {
	out.generating.Lock()
	defer out.generating.Unlock()
	out.endEpochAndHold(true)
	defer out.endEpochAndHold(false)
	f()
}

// endEpochAndHold ends the epoch, and sets whether packets from the source are dropped.
func (out *sender) endEpochAndHold(held bool) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.epoch.from = nil
	out.held = held
}
