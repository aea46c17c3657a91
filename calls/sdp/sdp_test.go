package sdp_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/problem"
)

// offers returns the offers of browsers in testdata. The keys are the file names without .sdp. The
// offers from Chromium 156 and Firefox 153 were captured as the SDK sends them. The offer from
// Safari was written in the form that Safari uses.
func offers(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.sdp")
	if err != nil || len(files) == 0 {
		t.Fatalf("no offers in testdata: %v", err)
	}
	all := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".sdp")] = string(b)
	}
	return all
}

// summary formats each section as one line.
func summary(sections []sdp.Section) string {
	var lines []string
	for _, s := range sections {
		line := s.Mid + " " + s.Kind
		if s.Rejected {
			lines = append(lines, line+" rejected")
			continue
		}
		for _, c := range s.Codecs {
			line += fmt.Sprintf(" %s=%d", c.Name, c.Type)
		}
		lines = append(lines, line+" "+string(s.Direction))
	}
	return strings.Join(lines, "; ")
}

func TestBrowsers(t *testing.T) {
	want := map[string]string{
		"chromium-audio":       "0 audio opus=111 G722=9 telephone-event=110 sendrecv",
		"chromium-audio-video": "0 audio opus=111 G722=9 telephone-event=110 sendrecv; 1 video VP8=96 sendrecv",
		"chromium-screen":      "1 audio opus=111 G722=9 telephone-event=110 recvonly; 0 video VP8=96 recvonly",
		"chromium-data":        "0 audio opus=111 G722=9 telephone-event=110 recvonly; 1 application rejected",
		"firefox-audio":        "0 audio opus=109 G722=9 telephone-event=101 sendrecv",
		"firefox-audio-video":  "0 audio opus=109 G722=9 telephone-event=101 sendrecv; 1 video VP8=120 sendrecv",
		"firefox-screen":       "1 audio opus=109 G722=9 telephone-event=101 recvonly; 0 video VP8=120 recvonly",
		"safari-audio-video":   "0 audio opus=111 G722=9 telephone-event=110 sendrecv; 1 video VP8=100 sendrecv",
	}

	for name, text := range offers(t) {
		offer, err := sdp.Parse(text)
		if err != nil {
			t.Errorf("Parse(%s) = %v", name, err)
			continue
		}
		answer := sdp.Description{}
		for _, s := range offer.Sections {
			if s.Kind == sdp.Audio && (len(s.Ufrag) < 4 || len(s.Fingerprint.Value) != 95 || s.Setup != "actpass" ||
				s.SSRC == 0 || s.Stream == "") {
				t.Errorf("Parse(%s) = %+v, want ICE credentials, a SHA-256 fingerprint, actpass, an SSRC and a stream",
					name, s)
			}
			answer.Sections = append(answer.Sections, s.Answer())
		}

		answer.Sort()
		if got := summary(answer.Sections); got != want[name] {
			t.Errorf("the answer to %s is\n%s, want\n%s", name, got, want[name])
		}
		if written := answer.String(); strings.Contains(written, "a=group") || strings.Contains(written, "rtx") {
			t.Errorf("the answer to %s is\n%s\nwant no a=group and no rtx", name, written)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	section := "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n"
	tests := []struct{ name, text, message string }{
		{"nothing", "", "does not begin with v=0"},
		{"too much", "v=0\r\n" + strings.Repeat("a=x\r\n", sdp.MaxSize/5+1), "longer than"},
		{"no section", "v=0\r\n", "no section"},
		{"five sections", "v=0\r\n" + strings.Repeat(section, 5), "more than 4 sections"},
		{"the same mid", "v=0\r\n" + section + section, "the same a=mid"},
		{"no mid", "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\n", "no a=mid"},
		{"an odd mid", "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:a b\r\n", "a=mid is malformed"},
		{"65 codecs", "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF" + strings.Repeat(" 0", 65) + "\r\n", "more than 64 codecs"},
		{"65 candidates", "v=0\r\n" + section + strings.Repeat("a=candidate:x\r\n", 65), "more than 64 candidates"},
		{"many attributes", "v=0\r\n" + strings.Repeat("a=x\r\n", 1025), "more than 1024 attributes"},
		{"a control character", "v=0\r\n" + section + "a=fmtp:0 a\rb\r\n", "malformed line"},

		{"a line without =", "v=0\r\nhello\r\n", "malformed line"},
		{"a short password", "v=0\r\n" + section + "a=ice-pwd:short\r\n", "a=ice-pwd"},
		{"a broken fingerprint", "v=0\r\n" + section + "a=fingerprint:sha-256 XY\r\n", "a=fingerprint"},
		{"no clock rate", "v=0\r\n" + section + "a=rtpmap:0 opus\r\n", "a=rtpmap"},
		{"a big port", "v=0\r\nm=audio 70000 UDP/TLS/RTP/SAVPF 0\r\n", "port"},
		{"a big payload type", "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 128\r\na=mid:0\r\n", "payload type"},
	}
	for _, tt := range tests {
		_, err := sdp.Parse(tt.text)
		if !errors.Is(err, problem.Invalid) || !strings.Contains(err.Error(), tt.message) {
			t.Errorf("Parse of %s = %v, want an error with %q", tt.name, err, tt.message)
		}
	}
}

func TestAnswer(t *testing.T) {
	audio := "m=audio 9 UDP/TLS/RTP/SAVPF 8 0 9 101\r\na=mid:0\r\na=rtpmap:101 telephone-event/8000\r\n"
	h264 := "m=video 9 UDP/TLS/RTP/SAVPF 100 102\r\na=mid:0\r\n" +
		"a=rtpmap:100 H264/90000\r\na=rtpmap:102 H264/90000\r\n" +
		"a=fmtp:100 packetization-mode=0;profile-level-id=42e01f\r\n" +
		"a=fmtp:102 packetization-mode=1;profile-level-id=%s\r\n"
	tests := []struct {
		name, offer string
		first       []string
		want        string
	}{
		{"the best codec", audio, nil, "0 audio G722=9 telephone-event=101 sendrecv"},
		{"the codec in use", audio, []string{"PCMA"}, "0 audio PCMA=8 telephone-event=101 sendrecv"},
		{"an unknown codec in use", audio, []string{"VP8"}, "0 audio G722=9 telephone-event=101 sendrecv"},
		{"H.264", fmt.Sprintf(h264, "42e01f"), nil, "0 video H264=102 sendrecv"},
		{"H.264 of a high profile", fmt.Sprintf(h264, "640c1f"), nil, "0 video rejected"},
		{"no codec", "m=audio 9 UDP/TLS/RTP/SAVPF 13\r\na=mid:0\r\na=rtpmap:13 CN/8000\r\n", nil, "0 audio rejected"},
		{"no encryption", "m=audio 9 RTP/AVP 0\r\na=mid:0\r\n", nil, "0 audio rejected"},
		{"a closed section", "m=audio 0 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n", nil, "0 audio rejected"},
		{"sendonly", audio + "a=sendonly\r\n", nil, "0 audio G722=9 telephone-event=101 recvonly"},
		{"recvonly", audio + "a=recvonly\r\n", nil, "0 audio G722=9 telephone-event=101 sendonly"},
		{"inactive", audio + "a=inactive\r\n", nil, "0 audio G722=9 telephone-event=101 inactive"},
	}

	for _, tt := range tests {
		d, err := sdp.Parse("v=0\r\n" + tt.offer)
		if err != nil {
			t.Errorf("Parse of %s = %v", tt.name, err)
			continue
		}
		answer := d.Sections[0].Answer(tt.first...)
		if got := summary([]sdp.Section{answer}); got != tt.want {
			t.Errorf("the answer to %s is %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestOfferAccept(t *testing.T) {
	d, err := sdp.Parse(offers(t)["chromium-audio-video"])
	if err != nil {
		t.Fatal(err)
	}
	agreed := d.Sections[1].Answer()
	offer := agreed.Offer("7")
	if offer.Mid != "7" || offer.Setup != "actpass" || !slices.Equal(offer.Extensions, agreed.Extensions) ||
		!cmp.Equal(offer.Codecs, agreed.Codecs) {
		t.Errorf("Offer = %+v, want mid 7, setup actpass, and the codecs and extensions of %+v", offer, agreed)
	}

	// The answer uses a different payload type and no header extension.
	answered := sdp.Section{Kind: "video", Direction: sdp.SendOnly,
		Codecs: []sdp.Codec{{Type: 120, Name: "vp8", Clock: 90000}}}
	got := offer.Accept(&answered)
	if len(got.Codecs) != 1 || got.Codecs[0].Type != 120 || got.Direction != sdp.ReceiveOnly || got.Extensions != nil {
		t.Errorf("Accept = %+v, want VP8 as 120 and recvonly", got)
	}
}

// FuzzParse looks for descriptions that break the parser, or that change when they are written and
// parsed again.
func FuzzParse(f *testing.F) {
	for _, text := range offers(f) {
		f.Add(text)
	}
	section := "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF" + strings.Repeat(" 96", 64) + "\r\na=mid:0\r\n"
	f.Add(section + strings.Repeat("a=rtpmap:96 opus/48000/2\r\n", 1000))
	f.Add(section + strings.Repeat("a=fmtp:96 "+strings.Repeat("x", 400)+"\r\n", 150))
	f.Add(section + strings.Repeat("a=extmap:1 x\r\n", 1000))

	bound := fuzzcost.Bound{CPU: 20 * time.Millisecond, CPUPerByte: time.Microsecond,
		Heap: 1 << 20, PerByte: 64}
	f.Fuzz(func(t *testing.T, text string) {
		var d *sdp.Description
		var err error
		bound.Check(t, len(text), func() { d, err = sdp.Parse(text) })
		if err != nil {
			if !errors.Is(err, problem.Invalid) {
				t.Fatalf("Parse = %v, want %v", err, problem.Invalid)
			}
			return
		}

		written := []sdp.Description{*d}
		for i := range d.Sections {
			a := d.Sections[i].Answer()
			written = append(written, sdp.Description{Lite: true, Sections: []sdp.Section{a}})
			if !a.Rejected {
				written = append(written, sdp.Description{Sections: []sdp.Section{a.Offer("0")}})
			}
		}

		for _, written := range written {
			once, err := sdp.Parse(written.String())
			if err != nil {
				t.Fatalf("parsing a written description: %v\n%s", err, written.String())
			}
			twice, err := sdp.Parse(once.String())
			if err != nil || once.String() != twice.String() {
				t.Fatalf("parsing and writing the description again: error %v, got\n%s\nwant\n%s",
					err, twice.String(), once.String())
			}
		}
	})
}
